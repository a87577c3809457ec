/* What the ranks of a plan find out about its messages together: whether they are alike enough for rounds.
 * One rank that sends much more than the others has the plan left to the MPI library, on all ranks alike; one
 * whose messages are somewhat larger has not, nor has a pattern in which some pairs have nothing; one in
 * which most have nothing is decided by its own messages, as between neighbours. Every byte of every start is
 * checked either way. Nothing is asked for by name: the ranks are to be on hosts of their own.
 * On two ranks, of neighbours alone, who are always in step: what a table says of them stays.
 *
 * The blocking calls before the first plan are the library's, and timed: after how many starts that plan has
 * paid for itself follows from them.
 */
#include <math.h>

#include "check.h"

typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallvInit* alltoallv_init;

enum { unit = 64 << 10, starts = 2 };

typedef int Bytes(int from, int to);
static int alike(int from, int to) { return unit + from * 16 + to; }
static int one_sends_much_more(int from, int to) {
    return from == check_size - 1 ? 8 * unit : alike(from, to);
}
static int one_receives_much_more(int from, int to) { return to == 1 ? 8 * unit : alike(from, to); }
static int one_sends_somewhat_more(int from, int to) { return from == 0 ? unit + unit / 2 : alike(from, to); }
/* Of any messages at all: from each rank to the next two. */
static int ring(int from, int to) {
    const int ahead = (to - from + check_size) % check_size;
    return ahead == 1 || ahead == 2 ? 3 * unit : 0;
}
/* Of four: between each rank and two others. */
static int square(int from, int to) {
    const int apart = from ^ to;
    return apart == 1 || apart == 2 ? 3 * unit : 0;
}
/* What is the last one of rank 0 is the first one of another. */
static int star(int from, int to) { return (from == 0) != (to == 0) ? 3 * unit : 0; }
/* Few of all pairs: as between neighbours, whose small messages no plan of ours carries faster. */
static int to_the_next(int from, int to) { return (to - from + check_size) % check_size == 1 ? 3 * unit : 0; }
static int little_to_the_next(int from, int to) { return to_the_next(from, to) != 0 ? 7 << 10 : 0; }
/* The own block crosses nothing, and speaks for nothing. */
static int large_to_itself(int from, int to) { return from == to ? 16 * unit : alike(from, to); }

static void exchange(Bytes* bytes, int taken, const char* what) {
    int* const counts = malloc(4 * (size_t)check_size * sizeof(int));
    int *const sent = counts, *const sent_at = counts + check_size;
    int *const received = counts + 2 * check_size, *const received_at = counts + 3 * check_size;
    int send_total = 0, receive_total = 0;
    for (int peer = 0; peer < check_size; ++peer) {
        sent[peer] = bytes(check_rank, peer);
        received[peer] = bytes(peer, check_rank);
        sent_at[peer] = send_total;
        received_at[peer] = receive_total;
        send_total += sent[peer];
        receive_total += received[peer];
    }
    unsigned char *const from = guarded_new((size_t)send_total), *const to =
                                                                     guarded_new((size_t)receive_total);
    MPI_Request plan;
    alltoallv_init(from, sent, sent_at, MPI_BYTE, to, received, received_at, MPI_BYTE, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &plan);
    if (expect_thalweg()) {
        thalweg_last_call call;
        CHECK(look_last_call(&call, sizeof call) == 0, "%s: nothing is known of the call", what);
        CHECK(call.accelerated == taken, "%s: %s, %s", what, taken ? "declined" : "taken",
              taken ? call.reason : call.algorithm);
        /* In rounds by distance or in pairs, but where ranks are in step in neither order. */
        const char* const way = bytes == star ? "spread" : "pairwise";
        if (taken) CHECK(strncmp(call.algorithm, way, strlen(way)) == 0, "%s: by %s", what, call.algorithm);
    }
    for (int start = 0; start < starts; ++start) {
        memset(to, poison_value, (size_t)receive_total);
        for (int peer = 0; peer < check_size; ++peer)
            fill(from + sent_at[peer], (size_t)sent[peer], (unsigned)(start * 4096 + check_rank * 64 + peer));
        MPI_Start(&plan);
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        for (int peer = 0; peer < check_size; ++peer)
            verify(to + received_at[peer], (size_t)received[peer],
                   (unsigned)(start * 4096 + peer * 64 + check_rank), what);
    }
    MPI_Request_free(&plan);
    guarded_free(from, (size_t)send_total);
    guarded_free(to, (size_t)receive_total);
    free(counts);
}

/* A plan between the neighbours of a ring, who get `ahead` bytes from the rank before them and `back` from
 * the one behind. */
static void neighbours(int ahead, int back, const char* algorithm, const char* what) {
    int (*init)(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
    *(void**)&init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoallv_init");
    if (init == NULL) return;
    const int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    const int sources[] = {before, next}, destinations[] = {next, before};
    const int sent[] = {ahead, back}, received[] = {ahead, back}, at[] = {0, ahead};
    MPI_Comm ring;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2, destinations,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
    unsigned char *const from = guarded_new((size_t)(ahead + back)), *const to =
                                                                         guarded_new((size_t)(ahead + back));
    MPI_Request plan;
    init(from, sent, at, MPI_BYTE, to, received, at, MPI_BYTE, ring, MPI_INFO_NULL, &plan);
    thalweg_last_call call;
    if (expect_thalweg() && look_last_call(&call, sizeof call) == 0)
        CHECK(call.accelerated && strcmp(call.algorithm, algorithm) == 0, "%s: by %s, %s", what,
              call.algorithm, call.reason);
    for (int start = 0; start < starts; ++start) {
        memset(to, poison_value, (size_t)(ahead + back));
        fill(from, (size_t)ahead, (unsigned)(start * 4096 + check_rank));
        fill(from + ahead, (size_t)back, (unsigned)(start * 4096 + 64 + check_rank));
        MPI_Start(&plan);
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        verify(to, (size_t)ahead, (unsigned)(start * 4096 + before), what);
        verify(to + ahead, (size_t)back, (unsigned)(start * 4096 + 64 + next), what);
    }
    MPI_Request_free(&plan);
    guarded_free(from, (size_t)(ahead + back));
    guarded_free(to, (size_t)(ahead + back));
    MPI_Comm_free(&ring);
}

/* Calls that do not block between the neighbours of a graph, of whose messages nobody knows more than that
 * its edges have one each: `to_each` as above. */
static void from_call_to_call(Bytes* to_each, const char* algorithm, const char* what) {
    int* const peers = malloc(3 * (size_t)check_size * sizeof(int));
    int *const counts = peers + check_size, *const places = counts + check_size;
    int edges = 0;
    for (int peer = 0; peer < check_size; ++peer)
        if (to_each(check_rank, peer) != 0) peers[edges++] = peer;
    for (int i = 0; i < edges; ++i) counts[i] = unit, places[i] = i * unit;
    MPI_Comm graph;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, edges, peers, MPI_UNWEIGHTED, edges, peers, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    unsigned char *const from = guarded_new((size_t)edges * unit), *const to =
                                                                       guarded_new((size_t)edges * unit);
    int taken = 0;
    char why[128] = "";
    for (int call = 0; call < 12; ++call) {
        memset(to, poison_value, (size_t)edges * unit);
        for (int i = 0; i < edges; ++i)
            fill(from + places[i], unit, (unsigned)(call * 4096 + check_rank * 64 + peers[i]));
        MPI_Request request;
        MPI_Ineighbor_alltoallv(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, graph,
                                &request);
        thalweg_last_call last;
        if (expect_thalweg() && look_last_call(&last, sizeof last) == 0) {
            snprintf(why, sizeof why, "%s", last.reason);
            if (last.accelerated) ++taken;
            if (last.accelerated)
                CHECK(strcmp(last.algorithm, algorithm) == 0, "%s: by %s, %s", what, last.algorithm,
                      last.reason);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < edges; ++i)
            verify(to + places[i], unit, (unsigned)(call * 4096 + peers[i] * 64 + check_rank), what);
        MPI_Barrier(graph); /* where ranks meet for what they set up */
    }
    if (expect_thalweg()) CHECK(taken != 0, "%s: no call was taken (%s)", what, why);
    guarded_free(from, (size_t)edges * unit);
    guarded_free(to, (size_t)edges * unit);
    MPI_Comm_free(&graph);
    free(peers);
}

/* Fewer than before any is tried as a schedule; of the last three the time is kept. */
static void call_natively(void) {
    enum { calls = 7 };
    int* const ones = malloc(2 * (size_t)check_size * sizeof(int));
    int* const places = ones + check_size;
    unsigned char *const from = guarded_new((size_t)check_size * unit), *const to = guarded_new(
                                                                            (size_t)check_size * unit);
    for (int peer = 0; peer < check_size; ++peer) ones[peer] = unit, places[peer] = peer * unit;
    for (int call = 0; call < calls; ++call) {
        MPI_Alltoallv(from, ones, places, MPI_BYTE, to, ones, places, MPI_BYTE, MPI_COMM_WORLD);
        if (expect_thalweg()) CHECK(!was_accelerated(), "blocking call %d was taken", call);
    }
    guarded_free(from, (size_t)check_size * unit);
    guarded_free(to, (size_t)check_size * unit);
    free(ones);
}

/* Of the first plan: N* is what its figures say, with what the native calls took. */
static void check_break_even(void) {
    thalweg_plan_stats stats;
    int (*plan_stats)(size_t, thalweg_plan_stats*, size_t);
    *(void**)&plan_stats = dlsym(RTLD_DEFAULT, "thalweg_get_plan_stats");
    CHECK(plan_stats != NULL && plan_stats(0, &stats, sizeof stats) == THALWEG_OK,
          "nothing is known of the first plan");
    CHECK(stats.starts == starts && stats.init_seconds > 0 && stats.plan_seconds > 0,
          "its figures: %d starts", (int)stats.starts);
    CHECK(stats.once_measured == 1 && stats.once_seconds > 0, "the native calls were not measured");
    const double gain = stats.once_seconds - stats.plan_seconds;
    const double calls = gain > 0 ? stats.init_seconds / gain : INFINITY;
    CHECK(stats.break_even == calls || fabs(stats.break_even - calls) <= 1e-6 * calls,
          "N* is %g, not %g: init %g, once %g, plan %g", stats.break_even, calls, stats.init_seconds,
          stats.once_seconds, stats.plan_seconds);
    CHECK(stats.break_even_low <= stats.break_even && stats.break_even <= stats.break_even_high,
          "N* %g is not in [%g, %g]", stats.break_even, stats.break_even_low, stats.break_even_high);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    if (check_size == 2) {
        from_call_to_call(square, "pairwise:chunk_bytes=32K", "two neighbours");
        return check_end();
    }
    *(void**)&alltoallv_init = find_or_skip("MPI_Alltoallv_init");
    call_natively();
    exchange(alike, 1, "messages that are alike");
    if (expect_thalweg()) check_break_even();
    exchange(one_sends_much_more, 0, "one rank that sends much more");
    exchange(one_receives_much_more, 0, "one rank that receives much more");
    exchange(one_sends_somewhat_more, 1, "one rank that sends somewhat more");
    exchange(ring, 1, "a ring");
    exchange(square, 1, "a square");
    exchange(star, 1, "a star");
    exchange(to_the_next, 1, "large messages to the next rank alone");
    exchange(little_to_the_next, 0, "small messages to the next rank alone");
    exchange(large_to_itself, 1, "large own blocks");
    neighbours(2 * unit, 2 * unit, "pairwise:chunk_bytes=32K", "neighbours alike");
    neighbours(8 * unit, unit, "spread", "neighbours of whom one sends much more");
    from_call_to_call(square, "pairwise:chunk_bytes=8K", "neighbours on a square");
    from_call_to_call(star, "spread", "neighbours on a star");
    return check_end();
}
