/* A tool on one rank answers MPI_Alltoall and MPI_Barrier with PMPI_*; on the others it passes them on. So
 * the first must not be counted on: every call is the MPI library's. So it is, without a tool, where the
 * library's integers of Fortran are wide.
 *
 *     answering [tool|maker|asker|large|creator|creation]
 *         maker, asker, large, creator: the one rank's tool answers only MPI_Ialltoall,
 * MPI_Request_get_status_any, MPI_Bcast_c or MPI_Comm_dup so; creation: there is such a creator on another
 * rank
 */
#include "check.h"

static int is_tool, is_maker, is_asker, is_large, is_creator;

int MPI_Alltoall(const void* send, int count, MPI_Datatype type, void* receive, int receive_count,
                 MPI_Datatype receive_type, MPI_Comm comm) {
    int (*next)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm) = PMPI_Alltoall;
    if (!is_tool) *(void**)&next = dlsym(RTLD_NEXT, "MPI_Alltoall");
    return next(send, count, type, receive, receive_count, receive_type, comm);
}

int MPI_Ialltoall(const void* send, int count, MPI_Datatype type, void* receive, int receive_count,
                  MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
    int (*next)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Request*) =
        PMPI_Ialltoall;
    if (!is_maker) *(void**)&next = dlsym(RTLD_NEXT, "MPI_Ialltoall");
    return next(send, count, type, receive, receive_count, receive_type, comm, request);
}

int MPI_Barrier(MPI_Comm comm) {
    int (*next)(MPI_Comm) = PMPI_Barrier;
    if (!is_tool) *(void**)&next = dlsym(RTLD_NEXT, "MPI_Barrier");
    return next(comm);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
    int (*next)(MPI_Comm, MPI_Comm*) = PMPI_Comm_dup;
    if (!is_creator) *(void**)&next = dlsym(RTLD_NEXT, "MPI_Comm_dup");
    return next(comm, made);
}

/* Not all libraries have it, nor all headers by one type. */
typedef int Ask(int, const MPI_Request*, int*, int*, MPI_Status*);
Ask ask_any __asm__("MPI_Request_get_status_any");
int ask_any(int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
    const char* const name = is_asker ? "PMPI_Request_get_status_any" : "MPI_Request_get_status_any";
    Ask* next;
    *(void**)&next = dlsym(RTLD_NEXT, name);
    return next(count, requests, index, flag, status);
}
/* Until it is complete. */
static void ask(MPI_Request request) {
    int index, flag = dlsym(RTLD_NEXT, "MPI_Request_get_status_any") == NULL;
    while (!flag) ask_any(1, &request, &index, &flag, MPI_STATUS_IGNORE);
}

/* Open MPI has none. */
#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
int MPI_Bcast_c(void* data, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm) {
    int (*next)(void*, MPI_Count, MPI_Datatype, int, MPI_Comm) = PMPI_Bcast_c;
    if (!is_large) *(void**)&next = dlsym(RTLD_NEXT, "MPI_Bcast_c");
    return next(data, count, type, root, comm);
}
static int broadcast(int* data, MPI_Comm comm) { return MPI_Bcast_c(data, 1, MPI_INT, 0, comm); }
#else
static int broadcast(int* data, MPI_Comm comm) { return MPI_Bcast(data, 1, MPI_INT, 0, comm); }
#endif

int main(int argc, char** argv) {
    is_tool = argc > 1 && strcmp(argv[1], "tool") == 0;
    is_maker = argc > 1 && strcmp(argv[1], "maker") == 0;
    is_asker = argc > 1 && strcmp(argv[1], "asker") == 0;
    is_large = argc > 1 && strcmp(argv[1], "large") == 0;
    is_creator = argc > 1 && strcmp(argv[1], "creator") == 0;
    const int only_creation = is_creator || (argc > 1 && strcmp(argv[1], "creation") == 0);
    alarm(100);
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    enum { most = 8 };
    for (int round = 0; round < 3; ++round) {
        int out[most], in[most];
        MPI_Request request;
        for (int i = 0; i < check_size; ++i) out[i] = 100 * check_rank + i + round;
        MPI_Ialltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD, &request);
        ask(request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        int word = check_rank == 0 ? round : -1;
        MPI_Comm made;
        MPI_Comm_dup(MPI_COMM_WORLD, &made);
        broadcast(&word, made);
        CHECK(word == round, "%d from the root", word);
        MPI_Comm_free(&made);
        memset(in, 0, sizeof in);
        MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < check_size; ++i)
            CHECK(in[i] == 100 * i + check_rank + round, "%d from rank %d", in[i], i);
        if (!only_creation) CHECK(!was_accelerated(), "taken, though a rank's calls do not arrive");
    }
    return check_end();
}
