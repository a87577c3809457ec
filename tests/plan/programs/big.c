/* More than 2 GiB in one broadcast: by a small count of a large type and, where the MPI has it, by
 * MPI_Bcast_c. Checks every byte of every 4093rd block and all edges of the pieces we cut. */
#include <limits.h>

#include "check.h"

static void mark(unsigned char* data, size_t bytes, unsigned seed) {
    for (size_t i = 0; i < bytes; i += 61) data[i] = pattern(i, seed);
    for (size_t i = bytes - 100; i < bytes; ++i) data[i] = pattern(i, seed);
}
static void look(const unsigned char* data, size_t bytes, unsigned seed, const char* what) {
    for (size_t i = 0; i < bytes; i += 61)
        if (data[i] != pattern(i, seed))
            FAIL("%s: byte %zu is %02x, not %02x", what, i, data[i], pattern(i, seed));
    for (size_t i = bytes - 100; i < bytes; ++i)
        if (data[i] != pattern(i, seed)) FAIL("%s: byte %zu at the end is wrong", what, i);
    ++check_count;
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    const size_t megabytes = argc > 1 ? (size_t)atoi(argv[1]) : 2100, bytes = (megabytes << 20) + 12345;
    unsigned char* const data = malloc(bytes);
    if (data == NULL) FAIL("no memory for the test");
    MPI_Datatype block, whole;
    MPI_Type_contiguous(1 << 20, MPI_BYTE, &block);
    const int lengths[2] = {(int)megabytes, 12345};
    const MPI_Aint places[2] = {0, (MPI_Aint)(megabytes << 20)};
    const MPI_Datatype types[2] = {block, MPI_BYTE};
    MPI_Type_create_struct(2, lengths, places, types, &whole);
    MPI_Type_commit(&whole);
    memset(data, poison_value, bytes);
    if (check_rank == 0) mark(data, bytes, 1);
    MPI_Bcast(data, 1, whole, 0, MPI_COMM_WORLD);
    if (expect_thalweg()) CHECK(was_accelerated(), "native: %s", last_reason());
    look(data, bytes, 1, "a large type");
    MPI_Type_free(&whole);
    MPI_Type_free(&block);

#if MPI_VERSION >= 4
    memset(data, poison_value, bytes);
    if (check_rank == check_size - 1) mark(data, bytes, 2);
    MPI_Bcast_c(data, (MPI_Count)bytes, MPI_BYTE, check_size - 1, MPI_COMM_WORLD);
    if (expect_thalweg()) CHECK(was_accelerated(), "MPI_Bcast_c was native: %s", last_reason());
    look(data, bytes, 2, "MPI_Bcast_c");
#endif
    free(data);
    return check_end();
}
