/* A broadcast whose plan is cached takes no memory from the heap, also after an option was set to what it
 * was, and a small one takes the short way. The program's own malloc counts the calls that come from the
 * preload object. */
#include "allocation_count.h"

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    find_us();
    CHECK(our_begin != 0, "the preload object is not mapped");
    static unsigned char data[1 << 20];
    MPI_Datatype vector;
    MPI_Type_vector(1000, 8, 16, MPI_DOUBLE, &vector);
    MPI_Type_commit(&vector);
    /* Twice: the first time makes the plans and must take memory, or the counter is blind. */
    for (int warm = 0; warm < 2; ++warm) {
        counting = 1;
        from_us = 0;
        for (int i = 0; i < 50; ++i) {
            MPI_Bcast(data, 100000, MPI_BYTE, i % check_size, MPI_COMM_WORLD);
            MPI_Bcast(data, sizeof data, MPI_BYTE, 0, MPI_COMM_WORLD);
            MPI_Bcast(data, 1, vector, i % check_size, MPI_COMM_WORLD);
            /* What is said again in other words changes nothing, and one process's own settings are no reason
             * to plan anew. */
            counting = 0;
            set_option("THALWEG_BCAST", NULL);
            set_option("THALWEG_BCAST_MIN_BYTES", "0001");
            set_option("THALWEG_LOG", i % 2 ? "warn" : "error");
            counting = 1;
            if (expect_thalweg() && check_size > 1) CHECK(was_accelerated(), "native: %s", last_reason());
        }
        for (int i = 0; i < 1000; ++i) MPI_Bcast(data, 8, MPI_BYTE, 0, MPI_COMM_WORLD);
        counting = 0;
        if (warm == 0)
            CHECK(from_us > 0 || check_size == 1, "the counter sees nothing");
        else
            CHECK(from_us == 0, "%lu allocations in cached broadcasts", from_us);
    }
    MPI_Type_free(&vector);
    return check_end();
}
