/* MPI begun and ended several times in one process, by the letters of the argument:
 *
 *   s  a session that is opened, used and finalized
 *   H  a session that stays open       h  its end
 *   W  MPI_Init                        f  MPI_Finalize
 *   F  MPI_Finalize with a broadcast on the communicator of the session that stays open, which rank 0 starts
 *      in front of it and the others behind it
 *   p  a plan there, started; where it was made before, started again and freed
 *
 * Collectives are right in each, on the communicator of the session that stays open too, and ours from
 * MPI_Init to MPI_Finalize. In sessions those that block are, too, unless one had a communicator before
 * MPI_Init. Repeated exchanges are not, behind MPI_Finalize. Rank 0 says the letters that were reached. */
#include "check.h"

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
typedef int BcastInit(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);

enum { bytes = 50000 };
static unsigned seed = 1;
static int world = 0; /* between MPI_Init and MPI_Finalize */
static int early = 0; /* a session had a communicator before MPI_Init */
static MPI_Session held;
static MPI_Comm held_comm;
static int is_held = 0;

/* Nobody else is there to end the job where no world is. */
#define MUST(call) \
    if ((call) != MPI_SUCCESS) return printf("failed: %s\n", #call), 1

static void look(void) {
    *(void**)&look_last_call = dlsym(RTLD_DEFAULT, "thalweg_get_last_call");
    if (expect_thalweg()) CHECK(look_last_call != NULL, "the preload object is not here");
}

static void ours(const char* what, int blocks, char letter, MPI_Comm comm) {
    if (!world || !expect_thalweg() || check_size == 1) return;
    if ((early || !blocks) && comm != MPI_COMM_WORLD)
        CHECK(!was_accelerated(), "%s of %c was ours", what, letter);
    else
        CHECK(was_accelerated(), "%s of %c was native: %s", what, letter, last_reason());
}

/* As often as it takes for some to be tried. */
static void exchanges(MPI_Comm comm, char letter) {
    enum { each = 16384, most_ranks = 8, calls = 30 };
    const size_t all = (size_t)each * (size_t)check_size;
    unsigned char* const from = guarded_new(all);
    unsigned char* const to = guarded_new(all);
    int counts[most_ranks], places[most_ranks], accelerated = 0;
    CHECK(check_size <= most_ranks, "too many ranks");
    for (int peer = 0; peer < check_size; ++peer) counts[peer] = each, places[peer] = peer * each;
    for (int call = 0; call < calls; ++call, seed += 50) {
        const uint64_t looked_before = looked_at();
        for (int peer = 0; peer < check_size; ++peer)
            fill(from + places[peer], each, seed + (unsigned)(check_rank * most_ranks + peer));
        memset(to, poison_value, all);
        MPI_Alltoallv(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, comm);
        accelerated += looked_at() != looked_before && was_accelerated();
        for (int peer = 0; peer < check_size; ++peer)
            verify(to + places[peer], each, seed + (unsigned)(peer * most_ranks + check_rank), "an exchange");
    }
    const int may_be = world && (comm == MPI_COMM_WORLD || !early);
    CHECK(may_be || accelerated == 0, "%d exchanges of %c were ours", accelerated, letter);
    guarded_free(from, all);
    guarded_free(to, all);
}

static void collectives(MPI_Comm comm, char letter) {
    unsigned char* const data = guarded_new(bytes);
    unsigned char* const all = guarded_new((size_t)bytes * (size_t)check_size);
    for (int round = 0; round < 3; ++round, seed += 50) {
        const int root = round % check_size;
        MPI_Request request;
        memset(data, poison_value, bytes);
        if (check_rank == root) fill(data, bytes, seed);
        MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
        ours("a broadcast", 1, letter, comm);
        verify(data, bytes, seed, "a broadcast");
        memset(all, poison_value, (size_t)bytes * (size_t)check_size);
        fill(data, bytes, seed + 1 + (unsigned)check_rank);
        MPI_Iallgather(data, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm, &request);
        /* The first asks for the set-up. */
        if (round > 0) ours("a nonblocking allgather", 0, letter, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int rank = 0; rank < check_size; ++rank)
            verify(all + (size_t)rank * bytes, bytes, seed + 1 + (unsigned)rank, "an allgather");
    }
    guarded_free(data, bytes);
    guarded_free(all, (size_t)bytes * (size_t)check_size);
    exchanges(comm, letter);
}

static int opened(MPI_Session* session, MPI_Comm* comm) {
    static int had_world = 0;
    had_world |= world;
    early |= !had_world;
    MPI_Group group;
    MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session));
    MUST(MPI_Group_from_session_pset(*session, "mpi://WORLD", &group));
    MUST(MPI_Comm_create_from_group(group, "epochs", MPI_INFO_NULL, MPI_ERRORS_RETURN, comm));
    MPI_Group_free(&group);
    MPI_Comm_rank(*comm, &check_rank);
    MPI_Comm_size(*comm, &check_size);
    look();
    return 0;
}

/* MPI_Finalize is the world's, and what does not block on the session's communicator may be on either side.
 */
static int finalize_meanwhile(void) {
    unsigned char* const data = guarded_new(bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    if (check_rank == 0) {
        fill(data, bytes, seed);
        MUST(MPI_Ibcast(data, bytes, MPI_BYTE, 0, held_comm, &request));
    }
    world = 0;
    MUST(MPI_Finalize());
    if (check_rank != 0) MUST(MPI_Ibcast(data, bytes, MPI_BYTE, 0, held_comm, &request));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    verify(data, bytes, seed, "a broadcast around MPI_Finalize");
    guarded_free(data, bytes);
    seed += 50;
    return 0;
}

static int planned(void) {
    static unsigned char data[bytes];
    static MPI_Request plan = MPI_REQUEST_NULL;
    const int made = plan != MPI_REQUEST_NULL;
    BcastInit* init = NULL; /* not in every library */
    *(void**)&init = dlsym(RTLD_DEFAULT, "MPI_Bcast_init");
    if (init == NULL) return 0;
    if (!made) MUST(init(data, bytes, MPI_BYTE, 0, held_comm, MPI_INFO_NULL, &plan));
    for (int round = 0; round < 2; ++round, seed += 50) {
        memset(data, poison_value, bytes);
        if (check_rank == 0) fill(data, bytes, seed);
        MUST(MPI_Start(&plan));
        MUST(MPI_Wait(&plan, MPI_STATUS_IGNORE));
        verify(data, bytes, seed, "a planned broadcast");
    }
    if (made) MUST(MPI_Request_free(&plan));
    return 0;
}

static int epoch(char letter) {
    MPI_Session session;
    MPI_Comm comm, twin;
    int provided;
    switch (letter) {
        case 's':
            if (opened(&session, &comm)) return 1;
            collectives(comm, letter);
            MPI_Comm_dup(comm, &twin);
            collectives(twin, letter);
            MPI_Comm_free(&twin);
            MPI_Comm_free(&comm);
            MUST(MPI_Session_finalize(&session));
            return 0;
        case 'H':
            if (opened(&held, &held_comm)) return 1;
            collectives(held_comm, letter);
            is_held = 1;
            return 0;
        case 'h':
            collectives(held_comm, letter);
            MPI_Comm_free(&held_comm);
            MUST(MPI_Session_finalize(&held));
            is_held = 0;
            return 0;
        case 'W':
            MUST(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
            MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
            MPI_Comm_size(MPI_COMM_WORLD, &check_size);
            look();
            world = 1;
            collectives(MPI_COMM_WORLD, letter);
            if (is_held) collectives(held_comm, letter);
            return 0;
        case 'F':
            return finalize_meanwhile();
        case 'p':
            return planned();
        default:
            collectives(MPI_COMM_WORLD, letter);
            if (is_held) collectives(held_comm, letter);
            world = 0;
            MUST(MPI_Finalize());
            return 0;
    }
}

int main(int argc, char** argv) {
    for (const char* letter = argc > 1 ? argv[1] : "s"; *letter; ++letter) {
        if (epoch(*letter)) return 1;
        if (check_rank == 0) printf("%c\n", *letter), fflush(stdout);
    }
    if (check_rank == 0) printf("ok: %lu checks on %d ranks\n", check_count, check_size);
    return 0;
}
#else
int main(void) {
    printf("skipped: this MPI has no sessions\n");
    return 77;
}
#endif
