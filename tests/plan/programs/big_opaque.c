/* One element larger than 2 GiB, or than what is staged at a time, of a type that only MPI can pack (a
 * darray), and a byte behind it: of 2100 MiB the bytes are a prime number, which no rows of equal length
 * hold. "big_opaque MEGABYTES". Checks bytes all over it and all at its ends. */
#include "check.h"

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    int (*same_tags)(void); /* of faults.c, where that is here */
    *(void**)&same_tags = dlsym(RTLD_DEFAULT, "thalweg_test_same_group_tags");
    if (same_tags != NULL) same_tags();
    const size_t megabytes = argc > 1 ? (size_t)atoi(argv[1]) : 2100;
    const size_t ints = (megabytes << 18) + 3, bytes = 4 * ints + 1;
    const int global[1] = {(int)ints}, cyclic[1] = {MPI_DISTRIBUTE_CYCLIC}, block[1] = {3}, one[1] = {1};
    const int both[2] = {1, 1};
    const MPI_Aint places[2] = {0, (MPI_Aint)(4 * ints)};
    MPI_Datatype parts[2] = {MPI_DATATYPE_NULL, MPI_BYTE}, type;
    MPI_Type_create_darray(1, 0, 1, global, cyclic, block, one, MPI_ORDER_C, MPI_INT, &parts[0]);
    MPI_Type_create_struct(2, both, places, parts, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&parts[0]);
    unsigned char* const data = guarded_new(bytes);
    for (int root = 0; root < 2 && root < check_size; ++root) {
        if (check_rank == root)
            for (size_t i = 0; i < bytes; ++i)
                data[i] = i % 61 == 0 || i > bytes - 99 ? pattern(i, 5 + root) : 0;
        else
            memset(data, poison_value, bytes);
        CHECK(MPI_Bcast(data, 1, type, root, MPI_COMM_WORLD) == MPI_SUCCESS, "MPI_Bcast failed");
        if (expect_thalweg()) CHECK(was_accelerated(), "native: %s", last_reason());
        for (size_t i = 0; i < bytes; ++i) {
            const unsigned char want = i % 61 == 0 || i > bytes - 99 ? pattern(i, 5 + root) : 0;
            if (data[i] != want)
                FAIL("from %d: byte %zu of %zu is %02x, not %02x", root, i, bytes, data[i], want);
        }
        ++check_count;
    }
    if (same_tags != NULL) CHECK(same_tags() == 0, "two communicators were made by one tag");
    MPI_Type_free(&type);
    guarded_free(data, bytes);
    return check_end();
}
