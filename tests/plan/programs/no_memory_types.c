/* Fortran's types of an alltoallw are translated into memory of ours: where there is none, nor enough in the
 * reserve, the call fails with MPI_ERR_NO_MEM, of which the communicator's error handler hears once. Among so
 * many neighbours as the reserve has no room for; on all ranks at once, because one alone would leave the
 * others waiting, as the library does. */
#define _GNU_SOURCE
#include "check.h"
#include "fortran.h"
#include "our_object.h"

#if defined(MPI_ABI_VERSION) /* whose header knows no Fortran */
int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    SKIP("this header has no Fortran");
}
#else

extern void* __libc_malloc(size_t);

static int fails; /* all allocations of ours */
static int injected, handled, told;

void* malloc(size_t bytes) {
    const uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    if (!fails || caller < ours_begin || caller >= ours_end) return __libc_malloc(bytes);
    ++injected;
    return NULL;
}

static void count_it(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    ++handled;
    told = class_of(*code);
}

enum { most = 8, block = 20000 };
static char sent[most * block], received[most * block];
static MPI_Fint types[most];
static int counts[most], places[most];
static MPI_Aint addresses[most];

/* Arguments of Fortran's are addresses. */
typedef void Blocking(void*, int*, void*, MPI_Fint*, void*, int*, void*, MPI_Fint*, MPI_Fint*, int*);
typedef void Nonblocking(void*, int*, void*, MPI_Fint*, void*, int*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*,
                         int*);

static int exchange(const char* name, MPI_Comm comm, int neighbours, int waits) {
    void* const at = neighbours ? (void*)addresses : (void*)places;
    MPI_Fint handle = MPI_Comm_c2f(comm), request = MPI_Request_c2f(MPI_REQUEST_NULL);
    int error = MPI_SUCCESS;
    Blocking* blocking;
    Nonblocking* nonblocking;
    memset(sent, 1 + check_rank, sizeof sent);
    memset(received, poison_value, sizeof received);
    if (waits) {
        *(void**)&blocking = fortran(name, 0);
        blocking(sent, counts, at, types, received, counts, at, types, &handle, &error);
    } else {
        *(void**)&nonblocking = fortran(name, 0);
        nonblocking(sent, counts, at, types, received, counts, at, types, &handle, &request, &error);
        MPI_Request made = MPI_Request_f2c(request);
        if (error == MPI_SUCCESS) MPI_Wait(&made, MPI_STATUS_IGNORE);
    }
    return error;
}

static void lose(const char* name, MPI_Comm comm, int waits) {
    injected = handled = 0;
    fails = 1;
    const int error = exchange(name, comm, 1, waits);
    fails = 0;
    CHECK(injected > 0, "%s: no memory was asked for", name);
    CHECK(class_of(error) == MPI_ERR_NO_MEM, "%s: class %d", name, class_of(error));
    CHECK(handled == 1 && told == MPI_ERR_NO_MEM, "%s: the error handler ran %d times, with class %d", name,
          handled, told);
}

static void have(const char* name, MPI_Comm comm, int neighbours, int waits) {
    handled = 0;
    CHECK(exchange(name, comm, neighbours, waits) == MPI_SUCCESS, "%s fails", name);
    CHECK(handled == 0, "%s: the error handler ran", name);
    const int messages = neighbours ? 2 : check_size;
    for (int i = 0; i < messages; ++i) {
        const int left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;
        const int from = !neighbours ? i : i == 0 ? left : right;
        for (int at = 0; at < block; ++at)
            CHECK(received[i * block + at] == 1 + from, "%s: byte %d from %d", name, at, from);
    }
}

/* Of more messages with oneself than the 32 MiB of the reserve hold ranks. */
static MPI_Comm crowd(void) {
    enum { edges = 9 << 20 };
    int* const selves = malloc(edges * sizeof(int));
    MPI_Comm made;
    for (int i = 0; i < edges; ++i) selves[i] = check_rank;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, edges, selves, MPI_UNWEIGHTED, edges, selves,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
    free(selves);
    return made;
}

int main(int argc, char** argv) {
    const int around = 1;
    MPI_Comm comm, ring, many = MPI_COMM_NULL;
    MPI_Errhandler handler;
    dl_iterate_phdr(find_ours, NULL);
    start_in_front(&argc, &argv);
    for (int i = 0; i < most; ++i) {
        types[i] = MPI_Type_c2f(MPI_BYTE);
        counts[i] = block;
        places[i] = i * block;
        addresses[i] = i * block;
    }
    MPI_Comm_create_errhandler(count_it, &handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &check_size, &around, 0, &ring);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Comm_set_errhandler(ring, handler);
    if (expect_thalweg()) {
        many = crowd();
        MPI_Comm_set_errhandler(many, handler);
    }
    for (int round = 0; round < 3; ++round) {
        if (many != MPI_COMM_NULL) {
            lose("mpi_neighbor_alltoallw", many, 1);
            lose("mpi_ineighbor_alltoallw", many, 0);
        }
        have("mpi_alltoallw", comm, 0, 1);
        have("mpi_ialltoallw", comm, 0, 0);
        have("mpi_neighbor_alltoallw", ring, 1, 1);
        have("mpi_ineighbor_alltoallw", ring, 1, 0);
    }
    if (many != MPI_COMM_NULL) MPI_Comm_free(&many);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&ring);
    return check_end();
}
#endif
