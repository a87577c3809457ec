/* Communicators of all kinds, made, used and freed: each broadcast is right, ours are accelerated, none is
 * leaked. */
#include "check.h"

/* Ranks make different numbers of calls, so that the pattern follows from the call itself. */
static unsigned seed_of(const char* what, size_t bytes, int root) {
    unsigned seed = (unsigned)bytes * 31u + (unsigned)root;
    while (*what) seed = seed * 131u + (unsigned char)*what++;
    return seed;
}

/* Broadcasts on `comm` from `root` and verifies. Returns whether it was accelerated. */
static int use(MPI_Comm comm, size_t bytes, int root, const char* what) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    unsigned char* const data = guarded_new(bytes);
    const unsigned seed = seed_of(what, bytes, root);
    if (rank == root) fill(data, bytes, seed);
    CHECK(MPI_Bcast(data, (int)bytes, MPI_BYTE, root, comm) == MPI_SUCCESS, "%s failed", what);
    verify(data, bytes, seed, what);
    guarded_free(data, bytes);
    return was_accelerated();
}

static void expect(MPI_Comm comm, size_t bytes, int root, int accelerated, const char* what) {
    const int was = use(comm, bytes, root, what);
    if (expect_thalweg()) CHECK(was == accelerated, "%s: accelerated %d: %s", what, was, last_reason());
}

static int size_of(MPI_Comm comm) {
    int size;
    MPI_Comm_size(comm, &size);
    return size;
}

static void splits(void) {
    MPI_Comm half, backwards, twin, part;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, -check_rank, &half);
    for (int root = 0; root < size_of(half); ++root)
        expect(half, 70001, root, size_of(half) > 1, "every second rank");
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank, &backwards);
    for (int root = 0; root < check_size; ++root) expect(backwards, 70001, root, check_size > 1, "backwards");
    MPI_Comm_dup(backwards, &twin);
    expect(twin, 50000, 0, check_size > 1, "dup");
    MPI_Comm_free(&backwards);
    expect(twin, 50000, check_size - 1, check_size > 1, "dup after its parent was freed");
    MPI_Comm_free(&twin);
    MPI_Comm_free(&half);

    /* All but the last rank. */
    MPI_Group world, some;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    const int last = check_size - 1;
    MPI_Group_excl(world, 1, &last, &some);
    MPI_Comm_create(MPI_COMM_WORLD, some, &part);
    if (part != MPI_COMM_NULL) {
        expect(part, 33333, 0, size_of(part) > 1, "all but one");
        MPI_Comm_free(&part);
    }
    MPI_Group_free(&world);
    MPI_Group_free(&some);
    expect(MPI_COMM_SELF, 10000, 0, 0, "MPI_COMM_SELF");
}

/* More communicators one after another than may exist at a time: ours must go with the user's. */
static void one_after_another(int rounds) {
    for (int i = 0; i < rounds; ++i) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? check_rank : -check_rank, &comm);
        expect(comm, 20000, i % check_size, check_size > 1, "one of many");
        MPI_Comm_free(&comm);
    }
}

static void intercommunicator(void) {
    MPI_Comm half, inter;
    const int upper = check_rank >= check_size / 2;
    MPI_Comm_split(MPI_COMM_WORLD, upper, check_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : check_size / 2, 5, &inter);
    unsigned char data[10000];
    memset(data, poison_value, sizeof data);
    const unsigned seed = seed_of("intercommunicator", sizeof data, 0);
    if (!upper && check_rank == 0) fill(data, sizeof data, seed);
    const int root = upper ? 0 : check_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    CHECK(MPI_Bcast(data, sizeof data, MPI_BYTE, root, inter) == MPI_SUCCESS, "intercommunicator");
    if (upper) verify(data, sizeof data, seed, "intercommunicator");
    if (expect_thalweg()) CHECK(!was_accelerated(), "a broadcast between groups is not ours");
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* THALWEG_MAX_COMMUNICATORS is what `allowed` says, the first test program of a process that uses any. */
static void capped(int allowed) {
    MPI_Comm held[12];
    for (int i = 0; i < 12; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &held[i]);
        expect(held[i], 9000, 0, check_size > 1 && i < allowed, "under a cap");
    }
    for (int i = 0; i < 12; ++i) expect(held[i], 9001, 0, check_size > 1 && i < allowed, "again under a cap");
    for (int i = 0; i < 12; ++i) MPI_Comm_free(&held[i]);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    expect(comm, 9000, 0, check_size > 1, "after the cap's communicators were freed");
    MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    const int cap = argc > 1 ? atoi(argv[1]) : 0;
    if (cap > 0) {
        capped(cap);
        return check_end();
    }
    splits();
    one_after_another(150);
    if (check_size > 1) intercommunicator();
    splits();
    return check_end();
}
