/* What many communicators keep between their calls is bounded for the process. "kept LOW HIGH": afterwards
 * the process has grown by LOW to HIGH MiB. */
#include "check.h"

enum { communicators = 40, blocks = 1 << 18, bytes = 4 * blocks };

static long resident_kib(void) {
    char line[256];
    long kib = -1;
    FILE* const file = fopen("/proc/self/status", "r");
    while (kib < 0 && fgets(line, sizeof line, file)) sscanf(line, "VmRSS: %ld", &kib);
    fclose(file);
    return kib;
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    const long low = argc > 2 ? atol(argv[1]) : 0, high = argc > 2 ? atol(argv[2]) : 1 << 30;
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
            if (round == 0 && i == 0) before = resident_kib();
        }
    const long grown = (resident_kib() - before) >> 10;
    printf("rank %d has grown by %ld MiB\n", check_rank, grown);
    CHECK(grown >= low && grown <= high, "it has grown by %ld MiB, not %ld to %ld", grown, low, high);
    for (int i = 0; i < communicators; ++i) MPI_Comm_free(&comms[i]);
    MPI_Type_free(&vector);
    return check_end();
}
