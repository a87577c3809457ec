/* Communicators of the ranks of one host, in a job on two: nonblocking and persistent collectives there are
 * the native library's, however many and large they are, and nothing is set up for them, which the thread of
 * a set-up would show. Where an algorithm is asked for they are ours, behind a set-up, and so are those of
 * the whole job before. */
#include "agents.h"
#include "check.h"

enum { ranks = 4, of_a_host = 2, bytes = 64 << 10, calls = 20, most = 40 };
static unsigned char *own, *all;
static MPI_Request request;

static int rank_of(MPI_Comm comm) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

/* Each says whether it was ours. */
static int gather(MPI_Comm comm, unsigned seed) {
    int size;
    MPI_Comm_size(comm, &size);
    fill(own, bytes, seed + (unsigned)rank_of(comm));
    memset(all, poison_value, (size_t)size * bytes);
    MPI_Iallgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm, &request);
    const int ours = was_accelerated();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; ++i) verify(all + i * bytes, bytes, seed + (unsigned)i, "a block");
    return ours;
}

static void fill_pairs(MPI_Comm host, unsigned seed) {
    for (int peer = 0; peer < of_a_host; ++peer)
        fill(own + peer * bytes, bytes, seed + (unsigned)(of_a_host * rank_of(host) + peer));
    memset(all, poison_value, (size_t)of_a_host * bytes);
}
static void verify_pairs(MPI_Comm host, unsigned seed) {
    for (int peer = 0; peer < of_a_host; ++peer)
        verify(all + peer * bytes, bytes, seed + (unsigned)(of_a_host * peer + rank_of(host)), "a pair");
}

static int exchange(MPI_Comm host, unsigned seed) {
    fill_pairs(host, seed);
    MPI_Ialltoall(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, host, &request);
    const int ours = was_accelerated();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    verify_pairs(host, seed);
    return ours;
}

/* Where the library has plans. */
static int exchange_by_plan(MPI_Comm host, unsigned seed) {
    int (*init)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
    *(void**)&init = dlsym(RTLD_DEFAULT, "MPI_Alltoall_init");
    if (init == NULL) return 0;
    MPI_Request plan;
    init(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, host, MPI_INFO_NULL, &plan);
    const int ours = was_accelerated();
    for (unsigned start = 0; start < 2; ++start) {
        fill_pairs(host, seed + start);
        MPI_Start(&plan);
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        verify_pairs(host, seed + start);
    }
    MPI_Request_free(&plan);
    return ours;
}

static int spread(MPI_Comm host, unsigned seed) {
    const int root = (int)(seed % of_a_host);
    memset(all, poison_value, bytes);
    if (rank_of(host) == root) fill(all, bytes, seed);
    MPI_Ibcast(all, bytes, MPI_BYTE, root, host, &request);
    const int ours = was_accelerated();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    verify(all, bytes, seed, "a broadcast");
    return ours;
}

/* The other block is of nobody. */
static int exchange_with_neighbour(MPI_Comm line, unsigned seed) {
    const int rank = rank_of(line), other = 1 - rank;
    fill(own, bytes, seed + (unsigned)rank);
    memset(all, poison_value, (size_t)of_a_host * bytes);
    MPI_Ineighbor_allgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, line, &request);
    const int ours = was_accelerated();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    verify(all + other * bytes, bytes, seed + (unsigned)other, "a neighbour's block");
    return ours;
}

/* A blocking collective, in which the ranks of `comm` may agree. */
static void meet_inside(MPI_Comm comm) {
    int size, all_ranks = 0;
    const int one = 1;
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&one, &all_ranks, 1, MPI_INT, MPI_SUM, comm);
    CHECK(all_ranks == size, "the sum of %d ones is %d", size, all_ranks);
}

/* The number of the first of ours. */
static int first_of_ours(int (*call)(MPI_Comm, unsigned), MPI_Comm comm) {
    for (unsigned number = 0; number < most; ++number) {
        if (call(comm, 8 * number)) return (int)number;
        meet_inside(comm);
    }
    return most;
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    CHECK(check_size == ranks, "%d ranks", ranks);
    own = guarded_new(of_a_host * bytes);
    all = guarded_new(ranks * bytes);
    MPI_Comm host, line;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank / of_a_host, 0, &host);
    const int length = of_a_host, ends = 0;
    MPI_Cart_create(host, 1, &length, &ends, 0, &line);
    for (unsigned call = 0; call < calls; ++call) {
        CHECK(!gather(host, 8 * call), "an allgather inside a host is ours");
        CHECK(!exchange(host, 8 * call), "an alltoall inside a host is ours");
        CHECK(!spread(host, call), "a broadcast inside a host is ours");
        CHECK(!exchange_with_neighbour(line, 8 * call), "an exchange of neighbours inside a host is ours");
        CHECK(!exchange_by_plan(host, 8 * call), "a plan inside a host is ours");
        CHECK(!exchange_by_plan(line, 8 * call), "a plan inside a host is ours");
        meet_inside(line);
        meet_inside(host);
    }
    if (expect_thalweg()) {
        CHECK(agents() == 0, "a communicator was set up for what is not ours");
        const int number = first_of_ours(gather, MPI_COMM_WORLD);
        CHECK(number < most, "no allgather between hosts is ours: %s", last_reason());
        set_option("THALWEG_ALLTOALLV", "spread");
        const int inside = first_of_ours(exchange, host);
        CHECK(inside == 1, "of alltoalls inside a host number %d is the first of ours: %s", inside,
              last_reason());
        set_option("THALWEG_ALLTOALLV", NULL);
        CHECK(!gather(host, 5), "an allgather inside a host is ours");
    }
    MPI_Comm_free(&line);
    MPI_Comm_free(&host);
    guarded_free(own, of_a_host * bytes);
    guarded_free(all, ranks * bytes);
    return check_end();
}
