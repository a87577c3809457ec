/* Every algorithm given as an argument, every root, sizes around every edge: each byte of each receiver, and
 * the bytes beside the buffer. */
#include "check.h"

static const size_t sizes[] = {0,    1,     2,     3,     7,      64,     1000,   4095,    4096,
                               4097, 65521, 65536, 65537, 131071, 131073, 262145, 5 << 20, (5 << 20) + 3};

static void one(const char* algorithm, size_t bytes, int root, unsigned seed) {
    char what[256];
    snprintf(what, sizeof what, "%s, %zu bytes from %d", algorithm, bytes, root);
    unsigned char* const data = guarded_new(bytes);
    if (check_rank == root) fill(data, bytes, seed);
    CHECK(MPI_Bcast(data, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD) == MPI_SUCCESS, "%s failed", what);
    if (expect_thalweg() && check_size > 1 && bytes > 0)
        CHECK(was_accelerated(), "%s was left to MPI: %s", what, last_reason());
    verify(data, bytes, seed, what);
    guarded_free(data, bytes);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    unsigned seed = 1;
    if (argc < 2) FAIL("usage: matrix ALGORITHM…");
    for (int a = 1; a < argc; ++a) {
        set_option("THALWEG_BCAST", argv[a]);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s)
            for (int root = 0; root < check_size; ++root)
                /* Large messages: first, middle and last root are enough for the copying. */
                if (sizes[s] < 1000000 || root == 0 || root == check_size / 2 || root == check_size - 1)
                    one(argv[a], sizes[s], root, seed++);
        /* The same plan again with other bytes: nothing may be left over from the first run. */
        for (int again = 0; again < 3; ++again) one(argv[a], 65537, check_size - 1, seed++);
    }
    return check_end();
}
