/* A broadcast whose plan is cached takes no memory from the heap, also after an option was set to what it
 * was, and a small one takes the short way. What a call without memory leaves in the reserve for long, such
 * as its row of the report, is no reason to make anew what later calls can use again. The program's own
 * malloc counts the calls that come from the preload object. */
#include "allocation_count.h"

static unsigned char data[1 << 20];

static unsigned long reduced(int longs) {
    static long from[16384], to[16384];
    for (int i = 0; i < longs; ++i) from[i] = i + check_rank;
    from_us = 0;
    counting = 1;
    MPI_Allreduce(from, to, longs, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    counting = 0;
    if (expect_thalweg() && check_size > 1) CHECK(was_accelerated(), "native: %s", last_reason());
    for (int i = 0; i < longs; ++i)
        CHECK(to[i] == (long)check_size * i + check_size * (check_size - 1) / 2, "long %d of %d", i, longs);
    return from_us;
}

static unsigned long broadcast(MPI_Comm comm, int bytes) {
    from_us = 0;
    counting = 1;
    MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
    counting = 0;
    return from_us;
}

static void check_after_a_loss(void) {
    set_option("THALWEG_ALLREDUCE", "ring");
    for (int i = 0; i < 3; ++i) reduced(1000);
    refusing = 1;
    reduced(16384);
    refusing = 0;
    const unsigned long anew = reduced(16384), found = reduced(16384);
    printf("rank %d: without memory, then %lu allocations, then %lu\n", check_rank, anew, found);
    if (expect_thalweg() && check_size > 1) CHECK(2 * found < anew, "%lu and %lu allocations", anew, found);
    /* Nor does a communicator in use cost another one its plans. */
    MPI_Comm other;
    MPI_Comm_split(MPI_COMM_WORLD, 0, check_rank, &other);
    for (int i = 0; i < 3; ++i) broadcast(other, 4000);
    refusing = 1;
    broadcast(MPI_COMM_WORLD, 3000);
    refusing = 0;
    for (int i = 0; i < 3; ++i) broadcast(MPI_COMM_WORLD, 4000), broadcast(other, 4000);
    unsigned long taken = 0;
    for (int i = 0; i < 10; ++i) taken += broadcast(MPI_COMM_WORLD, 4000) + broadcast(other, 4000);
    CHECK(taken == 0, "%lu allocations in cached broadcasts on two communicators", taken);
    MPI_Comm_free(&other);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    find_us();
    CHECK(our_begin != 0, "the preload object is not mapped");
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
    check_after_a_loss();
    return check_end();
}
