/* What many communicators keep between their calls is bounded for the process, and so is what one keeps of
 * nonblocking reductions of many sizes. "kept LOW HIGH [reductions]": afterwards the process has grown by LOW
 * to HIGH MiB, without memory that it shares: of that Intel MPI touches tens of MiB as messages come. */
#include "check.h"

enum { communicators = 40, blocks = 1 << 18, bytes = 4 * blocks };

/* No two of the same size, so no run serves another one. Returns what the process has grown by, in MiB. */
static long reduce_many_sizes(void) {
    enum { sizes = 24, smallest = 1 << 21 };
    static int values[smallest + sizes];
    long before = 0;
    for (int i = 0; i < sizes; ++i) {
        MPI_Request request;
        const int count = smallest + i;
        for (int k = 0; k < count; ++k) values[k] = k + i;
        MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        if (expect_thalweg()) CHECK(was_accelerated(), "native: %s", last_reason());
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int k = 0; k < count; ++k)
            if (values[k] != check_size * (k + i)) FAIL("sum %d is wrong", k);
        if (i == 0) before = private_kib();
    }
    return (private_kib() - before) >> 10;
}

static void check_growth(long grown, long low, long high) {
    printf("rank %d has grown by %ld MiB\n", check_rank, grown);
    CHECK(grown >= low && grown <= high, "it has grown by %ld MiB, not %ld to %ld", grown, low, high);
}

int main(int argc, char** argv) {
    const int reductions = argc > 3;
    check_start(&argc, &argv, reductions ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    const long low = argc > 2 ? atol(argv[1]) : 0, high = argc > 2 ? atol(argv[2]) : 1 << 30;
    if (reductions) {
        check_growth(reduce_many_sizes(), low, high);
        return check_end();
    }
    static int data[2 * blocks];
    static unsigned char expected[bytes];
    MPI_Datatype vector;
    MPI_Type_vector(blocks, 1, 2, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    MPI_Comm comms[communicators];
    for (int i = 0; i < communicators; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    long before = 0;
    for (int round = 0; round < 2; ++round)
        for (int i = 0; i < communicators; ++i) {
            const unsigned seed = (unsigned)(communicators * round + i);
            const int root = i % check_size;
            fill(expected, bytes, seed);
            memset(data, poison_value, sizeof data);
            if (check_rank == root)
                for (int k = 0; k < blocks; ++k) memcpy(&data[2 * k], expected + 4 * k, 4);
            MPI_Bcast(data, 1, vector, root, comms[i]);
            if (expect_thalweg()) CHECK(was_accelerated(), "native: %s", last_reason());
            for (int k = 0; k < blocks; ++k)
                if (memcmp(&data[2 * k], expected + 4 * k, 4) != 0) FAIL("byte %d is wrong", 4 * k);
            if (round == 0 && i == 0) before = private_kib();
        }
    check_growth((private_kib() - before) >> 10, low, high);
    for (int i = 0; i < communicators; ++i) MPI_Comm_free(&comms[i]);
    MPI_Type_free(&vector);
    return check_end();
}
