/* What setting a communicator up cost is noted once: by the calls that paid for it. Later trials of the same
 * calls do not forget it, and calls of another kind, which found everything there, have paid nothing. The
 * ranks are to be on hosts of their own, over nothing that a test names. */
#include "check.h"

enum { count = 40, most_ranks = 8, most_calls = 20000 };

static int from[most_ranks * count], to[most_ranks * count];
static int counts[most_ranks], places[most_ranks], byte_places[most_ranks];
static MPI_Datatype types[most_ranks];
static MPI_Comm comm;

static int value_of(int sender, int receiver, int call, int i) {
    return sender * 1000003 + receiver * 10007 + call * 101 + i;
}

/* By MPI_Alltoallv or MPI_Alltoallw. */
static void exchange(int typed, int call) {
    for (int peer = 0; peer < check_size; ++peer)
        for (int i = 0; i < count; ++i) {
            from[places[peer] + i] = value_of(check_rank, peer, call, i);
            to[places[peer] + i] = -7;
        }
    if (typed)
        MPI_Alltoallw(from, counts, byte_places, types, to, counts, byte_places, types, comm);
    else
        MPI_Alltoallv(from, counts, places, MPI_INT, to, counts, places, MPI_INT, comm);
    for (int peer = 0; peer < check_size; ++peer)
        for (int i = 0; i < count; ++i)
            CHECK(to[places[peer] + i] == value_of(peer, check_rank, call, i), "call %d: from %d, int %d",
                  call, peer, i);
}

/* The figures of the plan with this number, once it has some. */
static int told(size_t plan, thalweg_plan_stats* stats) {
    int (*look)(size_t, thalweg_plan_stats*, size_t);
    *(void**)&look = dlsym(RTLD_DEFAULT, "thalweg_get_plan_stats");
    return look != NULL && look(plan, stats, sizeof *stats) == THALWEG_OK && stats->once_measured &&
           stats->plan_seconds > 0;
}

/* Until a trial is over; the number of its last call. */
static int until_told(int typed, size_t plan, thalweg_plan_stats* stats) {
    int call = 0;
    do {
        exchange(typed, call++);
        /* Behind the first communicators it is known what a set-up costs, and calls wait for as long as that
         * takes: too many where something else held one up. */
        if (plan > 1 && call == most_calls) SKIP("no trial in %d calls behind other communicators", call);
        CHECK(call < most_calls, "%s: no trial in %d calls: %s", typed ? "alltoallw" : "alltoallv", call,
              last_reason());
    } while (call < 26 || !told(plan, stats));
    return call;
}

/* On a communicator of its own, the first of whose plans has the number `plan`. False: there was no second
 * trial, which is put off where the first found one way much slower than the other. */
static int attempt(size_t plan) {
    thalweg_plan_stats first, second, later;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int call = until_told(0, plan, &first);
    CHECK(strcmp(first.operation, "alltoallv") == 0 && first.init_seconds > 0, "%s cost %g s to set up",
          first.operation, first.init_seconds);
    until_told(1, plan + 1, &second);
    CHECK(strcmp(second.operation, "alltoallw") == 0 && second.init_seconds == 0,
          "%s cost %g s to set up, where all was there", second.operation, second.init_seconds);
    /* Another trial changes what a call takes. */
    later = first;
    for (const int end = call + most_calls; call < end && later.once_seconds == first.once_seconds; ++call) {
        exchange(0, call);
        CHECK(told(plan, &later), "the figures are gone");
    }
    CHECK(later.init_seconds == first.init_seconds, "the set-up cost %g s, and after another trial %g s",
          first.init_seconds, later.init_seconds);
    MPI_Comm_free(&comm);
    return later.once_seconds != first.once_seconds;
}

int main(int argc, char** argv) {
    enum { attempts = 4 };
    int done = 0;
    check_start(&argc, &argv, wanted_level());
    for (int peer = 0; peer < check_size; ++peer) {
        counts[peer] = count;
        places[peer] = peer * count;
        byte_places[peer] = places[peer] * (int)sizeof(int);
        types[peer] = MPI_INT;
    }
    for (size_t i = 0; i < attempts && !done; ++i) done = attempt(2 * i);
    if (!done) SKIP("no second trial of %d communicators in %d calls", attempts, most_calls);
    return check_end();
}
