/* MPI_Iallgather, MPI_Iallgatherv, MPI_Iallreduce, MPI_Ibarrier, their persistent and their blocking forms
 * against their definition: in place and not, ragged blocks with gaps and in any order, strided types,
 * several in flight, operations that only MPI can combine. THALWEG_TEST_TAKEN=1: all were taken.
 */
#include <unistd.h>

#include "ways.h"

typedef int AllgatherInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                          MPI_Request*);
typedef int AllgathervInit(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype,
                           MPI_Comm, MPI_Info, MPI_Request*);
typedef int AllreduceInit(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request*);
typedef int BarrierInit(MPI_Comm, MPI_Info, MPI_Request*);
static AllgatherInit* allgather_init;
static AllgathervInit* allgatherv_init;
static AllreduceInit* allreduce_init;
static BarrierInit* barrier_init;

static void allgather(int way, size_t bytes, int in_place) {
    unsigned char* const own = guarded_new(bytes);
    unsigned char* const all = guarded_new(bytes * (size_t)check_size);
    MPI_Request request = MPI_REQUEST_NULL;
    const void* const send = in_place ? MPI_IN_PLACE : own;
    if (way == persistent)
        allgather_init(send, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
    for (unsigned round = 0; round < 3; ++round) {
        memset(all, poison_value, bytes * (size_t)check_size);
        fill(in_place ? all + bytes * (size_t)check_rank : own, bytes, 100 * round + (unsigned)check_rank);
        if (way == nonblocking)
            MPI_Iallgather(send, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
        if (way == blocking)
            MPI_Allgather(send, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
        expect_taken(1, "an allgather");
        begin(way, &request);
        end(way, &request, round == 2);
        for (int rank = 0; rank < check_size; ++rank)
            verify(all + bytes * (size_t)rank, bytes, 100 * round + (unsigned)rank,
                   "a block of an allgather");
    }
    guarded_free(own, bytes);
    guarded_free(all, bytes * (size_t)check_size);
}

static void free_types(MPI_Datatype* from, MPI_Datatype* to, MPI_Datatype* spaced) {
    MPI_Type_free(from);
    MPI_Type_free(to);
    MPI_Type_free(spaced);
}

/* Every second int of this rank's row, into every third. */
static void strided_allgather(int way) {
    enum { count = 700 };
    MPI_Datatype from, to, spaced;
    int* const own = malloc(2 * count * sizeof(int));
    int* const all = malloc((size_t)check_size * 3 * count * sizeof(int));
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Type_vector(count, 1, 2, MPI_INT, &from);
    MPI_Type_vector(count, 1, 3, MPI_INT, &to);
    MPI_Type_create_resized(to, 0, 3 * count * (MPI_Aint)sizeof(int), &spaced);
    MPI_Type_commit(&from);
    MPI_Type_commit(&spaced);
    for (int i = 0; i < 2 * count; ++i) own[i] = 10000 * check_rank + i;
    for (int i = 0; i < check_size * 3 * count; ++i) all[i] = -1;
    if (way == persistent)
        allgather_init(own, 1, from, all, 1, spaced, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else if (way == nonblocking)
        MPI_Iallgather(own, 1, from, all, 1, spaced, MPI_COMM_WORLD, &request);
    else
        MPI_Allgather(own, 1, from, all, 1, spaced, MPI_COMM_WORLD);
    expect_taken(1, "a strided allgather");
    /* Freed while it is in use, as MPI allows; Open MPI 5 crashes in its own persistent allgather then. */
    const int early = expect_thalweg() && was_accelerated();
    if (early) free_types(&from, &to, &spaced);
    begin(way, &request);
    end(way, &request, 1);
    if (!early) free_types(&from, &to, &spaced);
    for (int rank = 0; rank < check_size; ++rank)
        for (int i = 0; i < 3 * count; ++i) {
            const int want = i % 3 == 0 ? 10000 * rank + 2 * (i / 3) : -1;
            CHECK(all[rank * 3 * count + i] == want, "a strided allgather: block %d, byte %d is wrong", rank,
                  4 * i);
        }
    free(own);
    free(all);
}

/* Blocks of 0, 1, 2… times `unit` ints, from the last rank's to the first's, with holes. */
static void allgatherv(int way, int unit, int in_place, int spaced) {
    int* const counts = malloc((size_t)check_size * sizeof(int));
    int* const places = malloc((size_t)check_size * sizeof(int));
    int total = 3;
    MPI_Datatype type = MPI_INT;
    const int stride = spaced ? 2 : 1;
    if (spaced) {
        MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &type);
        MPI_Type_commit(&type);
    }
    for (int rank = check_size - 1; rank >= 0; --rank) {
        counts[rank] = rank * unit + (rank == 2 ? 1 : 0);
        places[rank] = total;
        total += counts[rank] + 2;
    }
    int* const own = malloc(((size_t)counts[check_rank] + 1) * sizeof(int));
    int* const all = malloc((size_t)total * (size_t)stride * sizeof(int));
    MPI_Request request = MPI_REQUEST_NULL;
    const void* const send = in_place ? MPI_IN_PLACE : own;
    if (way == persistent)
        allgatherv_init(send, counts[check_rank], MPI_INT, all, counts, places, type, MPI_COMM_WORLD,
                        MPI_INFO_NULL, &request);
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < total * stride; ++i) all[i] = -7;
        for (int i = 0; i < counts[check_rank]; ++i) {
            const int value = 1000000 * round + 1000 * check_rank + i;
            own[i] = value;
            if (in_place) all[(places[check_rank] + i) * stride] = value;
        }
        if (way == nonblocking)
            MPI_Iallgatherv(send, counts[check_rank], MPI_INT, all, counts, places, type, MPI_COMM_WORLD,
                            &request);
        if (way == blocking)
            MPI_Allgatherv(send, counts[check_rank], MPI_INT, all, counts, places, type, MPI_COMM_WORLD);
        if (total > 3 + 2 * check_size) expect_taken(1, "an allgatherv");
        begin(way, &request);
        end(way, &request, round == 2);
        int* const wanted = malloc((size_t)total * (size_t)stride * sizeof(int));
        for (int i = 0; i < total * stride; ++i) wanted[i] = -7;
        for (int rank = 0; rank < check_size; ++rank)
            for (int i = 0; i < counts[rank]; ++i)
                wanted[(places[rank] + i) * stride] = 1000000 * round + 1000 * rank + i;
        for (int i = 0; i < total * stride; ++i)
            CHECK(all[i] == wanted[i], "an allgatherv: byte %d is wrong: %d, not %d", 4 * i, all[i],
                  wanted[i]);
        free(wanted);
    }
    if (spaced) MPI_Type_free(&type);
    free(counts);
    free(places);
    free(own);
    free(all);
}

static void allreduce(int way, int count, int in_place) {
    double* const own = malloc((size_t)count * sizeof(double));
    double* const sum = malloc((size_t)count * sizeof(double));
    double* const first = malloc((size_t)count * sizeof(double));
    int* const numbers = malloc((size_t)count * sizeof(int));
    int* const largest = malloc((size_t)count * sizeof(int));
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < count; ++i) {
            own[i] = 1.0 / (1 + i + check_rank + round);
            if (in_place) sum[i] = own[i];
            numbers[i] = (i * 7 + check_rank * 13 + round) % 101;
        }
        const void* const send = in_place ? MPI_IN_PLACE : own;
        if (way == persistent) {
            allreduce_init(send, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &requests[0]);
            allreduce_init(numbers, largest, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &requests[1]);
        } else if (way == blocking) {
            MPI_Allreduce(send, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            MPI_Allreduce(numbers, largest, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        } else {
            MPI_Iallreduce(send, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
            MPI_Iallreduce(numbers, largest, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[1]);
        }
        expect_taken(1, "an allreduce");
        if (way == persistent) MPI_Startall(2, requests);
        end(way, &requests[1], 1);
        end(way, &requests[0], 1);
        for (int i = 0; i < count; ++i) {
            double exact = 0;
            int most = 0;
            for (int rank = 0; rank < check_size; ++rank) {
                exact += 1.0 / (1 + i + rank + round);
                const int number = (i * 7 + rank * 13 + round) % 101;
                if (number > most) most = number;
            }
            const double difference = sum[i] > exact ? sum[i] - exact : exact - sum[i];
            CHECK(difference < 1e-13 * exact, "a sum: element %d, a wrong byte 0: %.17g, not %.17g", i,
                  sum[i], exact);
            CHECK(largest[i] == most, "a maximum: element %d, a wrong byte 0", i);
        }
        /* The same bits everywhere. */
        memcpy(first, sum, (size_t)count * sizeof(double));
        MPI_Bcast(first, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        CHECK(memcmp(first, sum, (size_t)count * sizeof(double)) == 0, "ranks have different sums");
    }
    free(own);
    free(sum);
    free(first);
    free(numbers);
    free(largest);
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

/* Operations of the program are left to MPI, on all ranks. */
static void left_to_mpi(void) {
    MPI_Op own;
    MPI_Request request = MPI_REQUEST_NULL;
    int value = check_rank + 1, sum = 0;
    MPI_Op_create(add, 1, &own);
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, own, MPI_COMM_WORLD, &request);
    expect_taken(0, "an operation of the program");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == check_size * (check_size + 1) / 2, "an operation of the program");
    sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, own, MPI_COMM_WORLD);
    expect_taken(0, "an operation of the program");
    MPI_Op_free(&own);
    CHECK(sum == check_size * (check_size + 1) / 2, "an operation of the program");
}

/* Nobody passes before the last has come. */
static void barrier(int way) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (way == persistent) barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < 3; ++round) {
        double times[2] = {0, 0}, begun = 0;
        const int late = round % check_size;
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank == late) usleep(30000);
        times[0] = seconds_now(); /* one clock: the ranks of a test share a host */
        if (way == nonblocking) MPI_Ibarrier(MPI_COMM_WORLD, &request);
        expect_taken(1, "a barrier");
        begin(way, &request);
        end(way, &request, round == 2);
        times[1] = seconds_now();
        MPI_Allreduce(&times[0], &begun, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        CHECK(times[1] >= begun, "left a barrier %.6f s before the last rank came", begun - times[1]);
    }
}

/* Different ones at a time, completed together. */
static void beside_each_other(void) {
    enum { count = 5000 };
    static int own[count], sum[count], message[count];
    int* const all = malloc((size_t)check_size * count * sizeof(int));
    for (int round = 0; round < 10; ++round) {
        MPI_Request requests[4];
        for (int i = 0; i < count; ++i) {
            own[i] = check_rank + i + round;
            message[i] = check_rank == 0 ? i * round : -1;
        }
        MPI_Iallgather(own, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD, &requests[0]);
        MPI_Ibcast(message, count, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Iallreduce(own, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[3]);
        /* A blocking one in between. */
        int last = check_rank + round, largest = -1;
        MPI_Allreduce(&last, &largest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        CHECK(largest == check_size - 1 + round, "an allreduce beside others: byte 0 is wrong");
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < count; ++i) {
            CHECK(message[i] == i * round, "a broadcast beside others: byte %d is wrong", 4 * i);
            CHECK(sum[i] == check_size * (check_size - 1) / 2 + check_size * (i + round),
                  "a sum beside others: byte %d is wrong", 4 * i);
            for (int rank = 0; rank < check_size; ++rank)
                CHECK(all[rank * count + i] == rank + i + round,
                      "an allgather beside others: byte %d is wrong", 4 * i);
        }
    }
    free(all);
}

/* Of libucp a process has one copy, the MPI library's or ours. */
static void check_copies_of_libucp(void) {
    char line[4096], first[4096] = "";
    FILE* const maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL) {
        const char* const file = strchr(line, '/');
        if (file == NULL || strstr(file, "/libucp.so") == NULL) continue;
        if (first[0] == '\0') memcpy(first, file, strlen(file) + 1);
        CHECK(strcmp(first, file) == 0, "two copies of libucp: %s and %s", first, file);
    }
    fclose(maps);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    *(void**)&allgather_init = dlsym(RTLD_DEFAULT, "MPI_Allgather_init");
    *(void**)&allgatherv_init = dlsym(RTLD_DEFAULT, "MPI_Allgatherv_init");
    *(void**)&allreduce_init = dlsym(RTLD_DEFAULT, "MPI_Allreduce_init");
    *(void**)&barrier_init = dlsym(RTLD_DEFAULT, "MPI_Barrier_init");
    set_up_world();
    /* Persistent ones that are native are not ours to judge: those of Intel MPI and MPICH 4.0 leave the data
     * of the first start there, or hang. */
    const int plans = allgather_init != NULL && check_size > 1 && getenv("THALWEG_TEST_TAKEN") != NULL;
    for (int way = nonblocking; way <= blocking; ++way) {
        if (way == persistent && !plans) continue;
        for (int in_place = 0; in_place < 2; ++in_place) {
            allgather(way, 1, in_place);
            allgather(way, 5003, in_place);
            allgather(way, 200000, in_place);
            for (int spaced = 0; spaced < 2; ++spaced) {
                allgatherv(way, 1, in_place, spaced);
                allgatherv(way, 3001, in_place, spaced);
            }
            allreduce(way, 1, in_place);
            allreduce(way, 1001, in_place);
            allreduce(way, 40000, in_place);
        }
        strided_allgather(way);
        if (way != blocking) barrier(way);
    }
    left_to_mpi();
    beside_each_other();
    check_copies_of_libucp();
    return check_end();
}
