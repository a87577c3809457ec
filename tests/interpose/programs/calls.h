/* Modes of program.c that make each of many calls; included there. */
/* One of every call that has to do with requests; says how many requests the calls were about. */
static void mode_requests(void) {
    MPI_Request requests[3], plan;
    MPI_Status statuses[3];
    int flag = 0, index, some, indices[3], numbers[3] = {0, 1, 2};
    enum { rounds = 9 };
    const int asked[rounds] = {3, 3, 3, 3, 3, 3, 3, 3, 3};
    int completed = 0;
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < 3; ++i) MPI_Ibcast(&numbers[i], 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[i]);
        /* Complete already, so that each call below is made once. */
        int all = 0;
        while (!all) {
            all = 1;
            for (int i = 0; i < 3; ++i) {
                PMPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
                all = all && flag;
            }
        }
        switch (round) {
            case 0:
                for (int i = 0; i < 3; ++i) MPI_Wait(&requests[i], &statuses[i]);
                break;
            case 1:
                for (int i = 0; i < 3; ++i) MPI_Test(&requests[i], &flag, &statuses[i]);
                break;
            case 2:
                MPI_Waitall(3, requests, statuses);
                break;
            case 3:
                MPI_Testall(3, requests, &flag, statuses);
                break;
            case 4:
                MPI_Waitany(3, requests, &index, statuses);
                break;
            case 5:
                MPI_Testany(3, requests, &index, &flag, statuses);
                break;
            case 6:
                MPI_Waitsome(3, requests, &some, indices, statuses);
                break;
            case 7:
                MPI_Testsome(3, requests, &some, indices, statuses);
                break;
            default:
                for (int i = 0; i < 3; ++i) MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
        }
        completed += asked[round];
        PMPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    PMPI_Comm_free(&copy);
    MPI_Recv_init(numbers, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &plan);
    MPI_Start(&plan);
    PMPI_Wait(&plan, MPI_STATUS_IGNORE);
    MPI_Startall(1, &plan);
    PMPI_Wait(&plan, MPI_STATUS_IGNORE);
    MPI_Request_free(&plan);
    MPI_Grequest_start(nothing_of, nothing_to_free, nothing_to_cancel, NULL, &plan);
    MPI_Cancel(&plan);
    MPI_Grequest_complete(plan);
    PMPI_Wait(&plan, MPI_STATUS_IGNORE);
    if (rank == 0)
        printf("nonblocking %d\ncompleted %d\nstarted 2\nreleased 2\ncreated 1\n", 3 * rounds, completed);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int by_value(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

/* A message to oneself that has arrived. Of planned receives that are done MPICH does not say so to
 * MPI_Waitany and its like. */
static void deliver(MPI_Request request) {
    int done = 0;
    PMPI_Send(&rank, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
    while (!done) PMPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
}
static MPI_Request* arrived(MPI_Request* request, int* from) {
    *from = -1;
    PMPI_Irecv(from, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, request);
    deliver(*request);
    return request;
}

/* Everything that completes, starts or frees a request: nine calls, two and one. */
static void complete_in_every_way(void) {
    MPI_Request request;
    MPI_Status status;
    int from = -1, index = -1, done = 0, some = 0;
    MPI_Wait(arrived(&request, &from), &status);
    MPI_Test(arrived(&request, &from), &done, &status);
    wrong += !done;
    MPI_Waitall(1, arrived(&request, &from), &status);
    MPI_Testall(1, arrived(&request, &from), &done, &status);
    wrong += !done;
    MPI_Waitany(1, arrived(&request, &from), &index, &status);
    wrong += index != 0;
    MPI_Testany(1, arrived(&request, &from), &index, &done, &status);
    wrong += !done || index != 0;
    MPI_Waitsome(1, arrived(&request, &from), &some, &index, &status);
    wrong += some != 1;
    MPI_Testsome(1, arrived(&request, &from), &some, &index, &status);
    wrong += some != 1 || request != MPI_REQUEST_NULL;
    MPI_Request_get_status(*arrived(&request, &from), &done, &status);
    wrong += !done || from != rank;
    PMPI_Wait(&request, &status);
    from = -1;
    MPI_Recv_init(&from, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    deliver(request);
    PMPI_Wait(&request, &status);
    MPI_Startall(1, &request);
    deliver(request);
    PMPI_Wait(&request, &status);
    MPI_Request_free(&request);
    wrong += request != MPI_REQUEST_NULL || from != rank;
}

/* Each of some calls several times: of all kinds that a wrapper may hand on. */
static void mode_passing(void) {
    enum { rounds = 20 };
    int one = 1, sum = 0, *const all = calloc(2 * (size_t)size, sizeof *all);
    int* const more = calloc(2 * (size_t)size, sizeof *more);
    int* const counts = calloc(2 * (size_t)size, sizeof *counts);
    for (int i = 0; i < size; ++i) counts[i] = 1, counts[size + i] = i;
    for (int round = 0; round < rounds; ++round) {
        MPI_Request request;
        int from_root = rank == 0 ? round : -1;
        MPI_Bcast(&from_root, 1, MPI_INT, 0, MPI_COMM_WORLD);
        wrong += from_root != round;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != size;
        MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < size; ++i) wrong += all[i] != i;
        for (int i = 0; i < size; ++i) all[i] = rank * size + i + round;
        MPI_Alltoall(all, 1, MPI_INT, more, 1, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < size; ++i) wrong += more[i] != i * size + rank + round;
        MPI_Alltoallv(all, counts, counts + size, MPI_INT, more + size, counts, counts + size, MPI_INT,
                      MPI_COMM_WORLD);
        wrong += memcmp(more, more + size, (size_t)size * sizeof *more) != 0;
        MPI_Barrier(MPI_COMM_WORLD);
        sum = 0;
        MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        wrong += sum != (rank == 0 ? size : 0);
        from_root = rank == 0 ? round : -1;
        MPI_Ibcast(&from_root, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        wrong += from_root != round;
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        wrong += sum != size;
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        complete_in_every_way();
    }
    free(all), free(more), free(counts);
}
