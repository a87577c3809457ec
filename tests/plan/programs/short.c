/* What is shorter than anything of ours is handed on unseen between hosts; the others are looked at, and a
 * communicator that waits to be set up is met in short calls, too.
 *
 *     short [meets]        with meets: nonblocking broadcasts are ours once a short call has come by
 */
#include "check.h"

enum { short_bytes = 1000, long_bytes = 1 << 20, rounds = 30 };

static unsigned char data[long_bytes];

static void short_calls(MPI_Comm comm, int rank, int size, int round) {
    int sum = 0, all[64];
    memset(data, rank == 0 ? round : 0xee, short_bytes);
    MPI_Bcast(data, short_bytes, MPI_BYTE, 0, comm);
    for (int i = 0; i < short_bytes; ++i) CHECK(data[i] == (unsigned char)round, "byte %d: %d", i, data[i]);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size * (size - 1) / 2, "%d", sum);
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, comm);
    for (int i = 0; i < size; ++i) CHECK(all[i] == i, "block %d: %d", i, all[i]);
}

static void check_unseen(int reported) {
    short_calls(MPI_COMM_WORLD, check_rank, check_size, 0); /* the wrappers ask */
    const uint64_t before = looked_at();
    for (int i = 0; i < rounds; ++i) short_calls(MPI_COMM_WORLD, check_rank, check_size, i);
    CHECK((looked_at() != before) == reported, "%d calls of %d were looked at", (int)(looked_at() - before),
          3 * rounds);
}

/* One that is long, of few elements. */
static void check_long(void) {
    MPI_Datatype half;
    MPI_Type_contiguous(long_bytes / 2, MPI_BYTE, &half);
    MPI_Type_commit(&half);
    uint64_t before = looked_at();
    int ours = 0;
    for (int i = 1; i <= rounds; ++i) {
        memset(data, check_rank == 1 ? i : 0xee, sizeof data);
        MPI_Bcast(data, 2, half, 1, MPI_COMM_WORLD);
        for (int k = 0; k < long_bytes; ++k) CHECK(data[k] == i, "byte %d of %d: %d", k, i, data[k]);
        CHECK(looked_at() != before, "call %d was not looked at", i);
        before = looked_at();
        ours += was_accelerated();
        short_calls(MPI_COMM_WORLD, check_rank, check_size, i);
    }
    CHECK(ours > 0, "none of %d long broadcasts was ours: %s", rounds, last_reason());
    MPI_Type_free(&half);
}

/* Asked for by name they are ours, however short, and handed on again when that is over. */
static void check_steered(void) {
    set_option("THALWEG_BCAST_MIN_BYTES", "1");
    set_option("THALWEG_BCAST", "binomial");
    set_option("THALWEG_ALLREDUCE", "recursive_doubling");
    for (int i = 0; i < 3; ++i) short_calls(MPI_COMM_WORLD, check_rank, check_size, i);
    MPI_Bcast(data, 1, MPI_BYTE, 0, MPI_COMM_WORLD);
    CHECK(was_accelerated(), "a broadcast: %s", last_reason());
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(was_accelerated() && sum == check_size, "an allreduce: %s", last_reason());
    set_option("THALWEG_BCAST", NULL);
    set_option("THALWEG_BCAST_MIN_BYTES", NULL);
    set_option("THALWEG_ALLREDUCE", NULL);
}

/* Each kind of short call sets up a communicator whose first nonblocking one was left to the library. */
static void check_meets(void) {
    for (int kind = 0; kind < 3; ++kind) {
        MPI_Comm comm;
        MPI_Request request;
        int one = 1, all[64];
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int i = 0; i < 2; ++i) {
            short_calls(MPI_COMM_WORLD, check_rank, check_size, i); /* elsewhere */
            memset(data, check_rank == 0 ? i + 1 : 0xee, long_bytes);
            MPI_Ibcast(data, long_bytes, MPI_BYTE, 0, comm, &request);
            const int ours = was_accelerated();
            CHECK(ours == i, "kind %d, number %d: %s", kind, i, last_reason());
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            for (int k = 0; k < long_bytes; ++k) CHECK(data[k] == i + 1, "byte %d: %d", k, data[k]);
            if (kind == 0) MPI_Bcast(&one, 1, MPI_INT, 0, comm);
            if (kind == 1) MPI_Allreduce(&one, all, 1, MPI_INT, MPI_SUM, comm);
            if (kind == 2) MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, comm);
        }
        MPI_Comm_free(&comm);
        check_unseen(0); /* nobody waits any more */
    }
}

int main(int argc, char** argv) {
    const int meets = argc > 1 && strcmp(argv[1], "meets") == 0;
    check_start(&argc, &argv, meets ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    CHECK(check_size <= 64, "%d ranks", check_size);
    check_unseen(getenv("THALWEG_REPORT") != NULL);
    if (meets) check_meets();
    check_long();
    if (getenv("THALWEG_REPORT") == NULL) {
        check_unseen(0);
        check_steered();
        check_unseen(0);
    }
    return check_end();
}
