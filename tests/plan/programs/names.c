/* More communicators and plans, made and freed, than their rank 0 has names for at a time
 * (THALWEG_TEST_PROCESSES makes them few): each is taken, because names come back; overlapping groups, freed
 * in other orders than they were made in. Then more at a time than there are names: what gets none is native,
 * on all ranks alike. */
#include "check.h"

enum { names = 64, rounds = 6, at_a_time = 24, bytes = 3000 };

/* 1: ours took it. */
static int use(MPI_Comm comm, unsigned seed) {
    int rank, size;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned char* const own = guarded_new(bytes);
    unsigned char* const all = guarded_new((size_t)size * bytes);
    fill(own, bytes, seed + (unsigned)rank);
    MPI_Iallgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm, &request);
    const int ours = was_accelerated();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; ++i) verify(all + i * bytes, bytes, seed + (unsigned)i, "one of many");
    guarded_free(own, bytes);
    guarded_free(all, (size_t)size * bytes);
    return ours;
}

/* The first one asks for the set-up, which the blocking one makes. */
static int set_up(MPI_Comm comm, unsigned seed) {
    use(comm, seed);
    unsigned char one = 1, sum[64];
    MPI_Allgather(&one, 1, MPI_BYTE, sum, 1, MPI_BYTE, comm);
    return use(comm, seed + 1);
}

/* Pairs that overlap, and all ranks. */
static MPI_Comm make(int i) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, i % 3 == 0 ? 0 : check_rank == i % check_size,
                   i % 2 ? check_rank : -check_rank, &comm);
    return comm;
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm comms[names];
    int size;
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < at_a_time; ++i) {
            comms[i] = make(i);
            MPI_Comm_size(comms[i], &size);
            const int ours = set_up(comms[i], (unsigned)(100 * round + i));
            if (size > 1) CHECK(ours, "communicator %d of round %d: %s", i, round, last_reason());
        }
        /* All in flight at once, completed in another order; freed in a third one, each round in its own. */
        for (int i = 0; i < at_a_time; ++i) use(comms[(i * 7 + round) % at_a_time], (unsigned)i);
        for (int i = 0; i < at_a_time; ++i) MPI_Comm_free(&comms[(i * 5 + round) % at_a_time]);
    }
    int served = 0;
    for (int i = 0; i < names; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        const int ours = set_up(comms[i], (unsigned)i);
        int all[2], mine[2] = {ours, -ours};
        MPI_Allreduce(mine, all, 2, MPI_INT, MPI_MAX, comms[i]);
        CHECK(all[0] == ours && all[1] == -ours, "some ranks have a name and some have none");
        served += ours;
    }
    CHECK(served >= at_a_time && served < names, "%d served", served);
    for (int i = 0; i < names; ++i) MPI_Comm_free(&comms[i]);
    return check_end();
}
