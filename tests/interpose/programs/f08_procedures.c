/* The procedures of Intel MPI's mpi_f08, called as Intel's compilers call them: what Fortran programs call
 * that `use mpi_f08`, without a compiler that reads the library's module. Broadcasts and their like with
 * counts of both kinds, blocking, nonblocking and persistent, contiguous and every second element, on a
 * communicator that is split and freed; where an optional ierror is left out, a null pointer is passed. Says
 * how many calls of MPI_Bcast it made. At least two ranks. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

/* A descriptor of an array as Intel Fortran passes it ("Handle Fortran Array Descriptors" in its guide). */
typedef struct Descriptor {
    void* base;
    intptr_t element_bytes, offset, flags, rank, reserved;
    struct {
        intptr_t extent, stride_bytes, lower_bound;
    } dimension;
} Descriptor;

typedef int64_t Large;
void mpi_init_thread_f08_(int* required, int* provided, int* error);
void mpi_finalize_f08_(int* error);
void mpi_comm_rank_f08_(int* comm, int* rank, int* error);
void mpi_comm_size_f08_(int* comm, int* size, int* error);
void mpi_comm_split_f08_(int* comm, int* color, int* key, int* part, int* error);
void mpi_comm_free_f08_(int* comm, int* error);
void mpi_barrier_f08_(int* comm, int* error);
void mpi_wait_f08_(int* request, MPI_Status* status, int* error);
void mpi_start_f08_(int* request, int* error);
void mpi_request_free_f08_(int* request, int* error);
/* Each with counts of both kinds. */
#define BOTH(name, middle, ...)                        \
    void mpi_##name##_f08ts_ middle(int, __VA_ARGS__); \
    void mpi_##name##_c_f08ts_ middle(Large, __VA_ARGS__)
#define ONE_BUFFER(Count, ...) (Descriptor*, Count*, int* type, int* root, int* comm, __VA_ARGS__)
#define REDUCED(Count, ...) (Descriptor*, Descriptor*, Count*, int* type, int* op, int* comm, __VA_ARGS__)
#define GATHERED(Count, ...) \
    (Descriptor*, Count*, int* type, Descriptor*, Count*, int* other, int* comm, __VA_ARGS__)
BOTH(bcast, ONE_BUFFER, int* error);
BOTH(ibcast, ONE_BUFFER, int* request, int* error);
BOTH(bcast_init, ONE_BUFFER, int* info, int* request, int* error);
BOTH(allreduce, REDUCED, int* error);
BOTH(iallgather, GATHERED, int* request, int* error);

enum { n = 20000, most = 8, rounds = 6 };
static int data[2 * n], all[most * n], sums[n];
static int world, type, rank, ranks, error, broadcasts, wrong;

static Descriptor of(int* base, intptr_t extent, intptr_t step) {
    const Descriptor it = {base, sizeof(int), 0, 0, 1, 0, {extent, step * (intptr_t)sizeof(int), 1}};
    return it;
}

/* n elements with a step between them, on `root` alone; what lies between stays -1. */
static void prepare(int root, int step, int seed) {
    for (int i = 0; i < 2 * n; ++i) data[i] = -1;
    for (int i = 0; rank == root && i < n; ++i) data[step * i] = 3 * i + seed;
}
static void examine(int step, int seed) {
    for (int i = 0; i < 2 * n; ++i)
        wrong += data[i] != (i < step * n && i % step == 0 ? 3 * (i / step) + seed : -1);
    wrong += error != 0;
}

static void broadcast(int comm, int root, int step, int large, int nonblocking, int seed) {
    int count = n, request;
    Large many = n;
    MPI_Status status;
    prepare(comm == world ? root : rank, step, seed); /* a part that is one rank's own is its root */
    Descriptor section = of(data, n, step);
    if (!nonblocking) {
        if (large) mpi_bcast_c_f08ts_(&section, &many, &type, &root, &comm, &error);
        if (!large) mpi_bcast_f08ts_(&section, &count, &type, &root, &comm, seed % 2 ? &error : NULL);
        ++broadcasts;
    } else {
        if (large) mpi_ibcast_c_f08ts_(&section, &many, &type, &root, &comm, &request, &error);
        if (!large) mpi_ibcast_f08ts_(&section, &count, &type, &root, &comm, &request, NULL);
        mpi_wait_f08_(&request, &status, &error);
    }
    examine(step, seed);
}

static void others(int large, int seed) {
    int count = n, request, op = MPI_Op_c2f(MPI_SUM);
    Large many = n;
    MPI_Status status;
    for (int i = 0; i < n; ++i) data[i] = rank + seed, sums[i] = -1;
    Descriptor own = of(data, n, 1), sum = of(sums, n, 1), gathered = of(all, (intptr_t)n * ranks, 1);
    if (large) mpi_allreduce_c_f08ts_(&own, &sum, &many, &type, &op, &world, &error);
    if (!large) mpi_allreduce_f08ts_(&own, &sum, &count, &type, &op, &world, &error);
    for (int i = 0; i < n; ++i) wrong += sums[i] != ranks * (ranks - 1) / 2 + ranks * seed;
    for (int i = 0; i < n * ranks; ++i) all[i] = -1;
    if (large) mpi_iallgather_c_f08ts_(&own, &many, &type, &gathered, &many, &type, &world, &request, &error);
    if (!large)
        mpi_iallgather_f08ts_(&own, &count, &type, &gathered, &count, &type, &world, &request, &error);
    mpi_wait_f08_(&request, &status, &error);
    for (int i = 0; i < n * ranks; ++i) wrong += all[i] != i / n + seed;
}

static void plan(int large) {
    int count = n, request, root = 1, info = MPI_Info_c2f(MPI_INFO_NULL);
    Large many = n;
    MPI_Status status;
    Descriptor whole = of(data, n, 1);
    if (large) mpi_bcast_init_c_f08ts_(&whole, &many, &type, &root, &world, &info, &request, &error);
    if (!large) mpi_bcast_init_f08ts_(&whole, &count, &type, &root, &world, &info, &request, &error);
    for (int start = 0; start < 3; ++start) {
        prepare(root, 1, start);
        mpi_start_f08_(&request, &error);
        mpi_wait_f08_(&request, &status, &error);
        examine(1, start);
    }
    mpi_request_free_f08_(&request, &error);
}

int main(void) {
    int level = MPI_THREAD_MULTIPLE, provided, part, color, key;
    mpi_init_thread_f08_(&level, &provided, &error);
    world = MPI_Comm_c2f(MPI_COMM_WORLD);
    type = MPI_Type_c2f(MPI_INT);
    mpi_comm_rank_f08_(&world, &rank, &error);
    mpi_comm_size_f08_(&world, &ranks, NULL);
    if (ranks > most) return 2;
    broadcast(world, 0, 1, 0, 1, 1); /* native: it asks for the set-up, which the barrier is for */
    mpi_barrier_f08_(&world, &error);
    for (int round = 0; round < rounds; ++round)
        for (int large = 0; large < 2; ++large) {
            for (int step = 1; step < 3; ++step)
                for (int nonblocking = 0; nonblocking < 2; ++nonblocking)
                    broadcast(world, round % ranks, step, large, nonblocking, 10 * round + step);
            others(large, round);
        }
    for (int large = 0; large < 2; ++large) plan(large);
    color = rank;
    key = 0;
    mpi_comm_split_f08_(&world, &color, &key, &part, &error);
    broadcast(part, 0, 1, 1, 0, 7);
    mpi_comm_free_f08_(&part, &error);
    wrong += part != MPI_Comm_c2f(MPI_COMM_NULL);
    if (wrong) printf("rank %d wrong %d\n", rank, wrong);
    if (rank == 0 && !wrong) printf("done on %d ranks, broadcasts %d\n", ranks, broadcasts);
    mpi_finalize_f08_(NULL);
    return wrong != 0;
}
