/* What a call that is the library's costs through its wrapper where nothing of ours is in the caches: each is
 * timed against its PMPI twin, in turns, after other data have been through them: by this process alone, and
 * where a trial would have to be asked by all of its ranks, of which the slowest counts. `hosts`: the ranks
 * are on several, and what is short there is handed on, too. Prints a table. A broadcast's is what any
 * wrapper costs: a few lines of code and data and their pages. One that asks costs 1 to 3 us. With
 * unseen_broadcasts.json the longer one is tried, and what follows its trial is timed.
 *
 *     cold [PAIRS [hosts]]
 */
#include "check.h"

enum {
    flushed_bytes = 48 << 20,
    line = 64,
    most_pairs = 1000,
    attempts = 5,
    allowed_ns = 1000,
    in_caches = 150
};

static char from[line], to[line]; /* whose contents nobody looks at: other tests do */
enum { most_ranks = 8 };
static const int eight[most_ranks] = {8, 8, 8, 8, 8, 8, 8, 8}, none[most_ranks];
static MPI_Request request, plan;

typedef struct {
    const char* name;
    void (*through)(MPI_Comm);
    void (*past)(MPI_Comm);
    int together, where;
} Pair;

#define PAIR(name, ...)                                                    \
    static void through_##name(MPI_Comm comm) { MPI_##name(__VA_ARGS__); } \
    static void past_##name(MPI_Comm comm) { PMPI_##name(__VA_ARGS__); }
PAIR(Bcast, from, 8, MPI_BYTE, 0, comm)
static char longer[1024];
static void through_longer(MPI_Comm comm) { MPI_Bcast(longer, sizeof longer, MPI_BYTE, 0, comm); }
static void past_longer(MPI_Comm comm) { PMPI_Bcast(longer, sizeof longer, MPI_BYTE, 0, comm); }
PAIR(Allreduce, from, to, 1, MPI_INT, MPI_SUM, comm)
PAIR(Allgather, from, 8, MPI_BYTE, to, 8, MPI_BYTE, comm)
PAIR(Alltoallv, from, eight, none, MPI_BYTE, to, eight, none, MPI_BYTE, comm)
PAIR(Barrier, comm)
PAIR(Reduce, from, to, 1, MPI_INT, MPI_SUM, 0, comm)
PAIR(Ibcast, from, 8, MPI_BYTE, 0, comm, &request)
PAIR(Iallreduce, from, to, 1, MPI_INT, MPI_SUM, comm, &request)
/* Of a planned receive of nothing from nobody. */
#define COMPLETION(name, ...)                                                          \
    static void through_##name(MPI_Comm comm) { (void)comm, MPI_##name(__VA_ARGS__); } \
    static void past_##name(MPI_Comm comm) { (void)comm, PMPI_##name(__VA_ARGS__); }
static int done;
COMPLETION(Start, &plan)
COMPLETION(Wait, &plan, MPI_STATUS_IGNORE)
COMPLETION(Waitall, 1, &plan, MPI_STATUSES_IGNORE)
COMPLETION(Test, &plan, &done, MPI_STATUS_IGNORE)
enum Where { one_host = 1, hosts = 2, anywhere = 3 };
#define ALONE(name, where) \
    { #name, through_##name, past_##name, 0, where }
#define TOGETHER(name, where) \
    { #name, through_##name, past_##name, 1, where }
static const Pair all[] = {
    ALONE(Bcast, anywhere),    ALONE(Allreduce, anywhere),  ALONE(Allgather, anywhere),
    ALONE(Barrier, anywhere),  ALONE(Reduce, anywhere),     ALONE(Start, anywhere),
    ALONE(Wait, anywhere),     ALONE(Waitall, anywhere),    ALONE(Test, anywhere),
    ALONE(Ibcast, one_host),   ALONE(Iallreduce, one_host), TOGETHER(Alltoallv, one_host),
    TOGETHER(longer, one_host)};

static void flush_caches(void) {
    static char* data = NULL;
    if (data == NULL) data = calloc(1, flushed_bytes);
    CHECK(data != NULL, "no memory");
    for (size_t i = 0; i < flushed_bytes; i += line) ++((volatile char*)data)[i];
}

static double ns_of(void (*call)(MPI_Comm), int together, int is_flushed) {
    if (is_flushed) flush_caches();
    if (together) PMPI_Barrier(MPI_COMM_WORLD), PMPI_Barrier(MPI_COMM_WORLD);
    const double begin = seconds_now();
    call(together ? MPI_COMM_WORLD : MPI_COMM_SELF);
    double ns = 1e9 * (seconds_now() - begin);
    if (request != MPI_REQUEST_NULL) PMPI_Wait(&request, MPI_STATUS_IGNORE);
    PMPI_Wait(&plan, MPI_STATUS_IGNORE); /* of what was started */
    if (together) PMPI_Allreduce(MPI_IN_PLACE, &ns, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return ns;
}

/* How many ns more through the wrapper. */
static double more_ns(const Pair* pair, int pairs, double* past_ns) {
    static double ns[2][most_pairs];
    for (int i = 0; i < in_caches; ++i) ns_of(pair->through, pair->together, 0);
    for (int i = 0; i < 2 * pairs; ++i) {
        const int past = (i + i / 2) % 2;
        ns[past][i / 2] = ns_of(past ? pair->past : pair->through, pair->together, 1);
    }
    *past_ns = median(ns[1], pairs);
    return median(ns[0], pairs) - *past_ns;
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    const int pairs = argc > 1 ? atoi(argv[1]) : 51;
    CHECK(pairs > 0 && pairs <= most_pairs && check_size <= most_ranks, "%d pairs, %d ranks", pairs,
          check_size);
    const int here = argc > 2 && strcmp(argv[2], "hosts") == 0 ? hosts : one_host;
    request = MPI_REQUEST_NULL;
    MPI_Recv_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &plan);
    if (check_rank == 0)
        printf("%-12s %9s %9s   cold caches, medians of %d\n", "MPI_", "native ns", "more ns", pairs);
    double least = 1e9, allowed = 0; /* by broadcasts, the first */
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        if ((all[i].where & here) == 0) continue;
        double past = 0, more = 0;
        for (int attempt = 0, again = 1; attempt < attempts && again; ++attempt) {
            more = more_ns(&all[i], pairs, &past);
            if (i == 0 && more < least) least = more;
            again = i == 0 ? attempt < 2 : more > allowed;
            PMPI_Allreduce(MPI_IN_PLACE, &again, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        }
        if (check_rank == 0) printf("%-12s %9.0f %+9.0f\n", all[i].name, past, more);
        if (i == 0) allowed = 300 + 1.5 * (least > 0 ? least : 0);
        CHECK(i == 0 || more <= allowed, "MPI_%s costs %.0f ns more than the library's %.0f, %.0f allowed",
              all[i].name, more, past, allowed);
    }
    if (plan != MPI_REQUEST_NULL) MPI_Request_free(&plan);
    return check_end();
}
