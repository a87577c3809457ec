/* Strided faces of one exchange go their ways one by one: each is on its way before the next one is packed,
 * and in its place while others have not been sent. Three ranks of one host; rank 0 is the neighbour of both
 * others. What ranks tell one another beside MPI lies in a shared window, and they look at their faces before
 * these are complete, which only a test of the implementation may.
 *
 *     face_by_face ROW_BYTES ROWS [pieces]     pieces: and the begin of a face before its end is packed
 *
 * Whoever touches rank 0's faces too early finds memory that may not be read, and is held up there.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

typedef int AlltoallwInit(const void*, const int*, const MPI_Aint*, const MPI_Datatype*, void*, const int*,
                          const MPI_Aint*, const MPI_Datatype*, MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallwInit* alltoallw_init;

enum { edges = 2, rounds = 4 };
static const double longest_s = 20;

static struct {
    _Atomic int came; /* faces of rank 0 of which the first row has come */
    _Atomic int seen; /* rank 0 has the face of rank 1 */
} * told;

static int row, rows, pieces;
static size_t face_bytes; /* of memory; whole pages */
static MPI_Comm star;
static MPI_Datatype face_type;
static unsigned char *sent, *received;
static int degree, peers[edges];
static const int ones[edges] = {1, 1};
static MPI_Aint places[edges];
static MPI_Datatype types[edges];

/* Of rank 0: the faces that may not be read yet. */
static size_t page;
static unsigned char* guarded[edges];
static size_t guarded_bytes;
static volatile sig_atomic_t touched, held_in_vain;

static int reaches(_Atomic int* number, int least) {
    const double until = seconds_now() + longest_s;
    while (atomic_load(number) < least) {
        if (seconds_now() > until) return 0;
        usleep(100);
    }
    return 1;
}

/* The first face may be packed at once, or its end when its begin has come; the second one when the first has
 * come. */
static void hold_up(int number, siginfo_t* info, void* unused) {
    (void)number, (void)unused;
    for (int i = 0; i < edges; ++i) {
        unsigned char* const at = info->si_addr;
        if (at < guarded[i] || at >= guarded[i] + guarded_bytes) continue;
        const int needed = pieces ? 1 : touched;
        if (!held_in_vain && !reaches(&told->came, needed)) held_in_vain = 1;
        touched = touched + 1;
        mprotect(guarded[i], guarded_bytes, PROT_READ | PROT_WRITE);
        return;
    }
    _Exit(3);
}

static void open_faces(void) {
    MPI_Comm host;
    MPI_Win window;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Aint size;
    int unit;
    MPI_Win_allocate_shared(check_rank == 0 ? sizeof *told : 0, 1, MPI_INFO_NULL, host, &told, &window);
    MPI_Win_shared_query(window, 0, &size, &unit, &told);
    if (check_rank == 0) atomic_store(&told->came, 0), atomic_store(&told->seen, 0);
    for (degree = 0; degree < (check_rank == 0 ? 2 : 1); ++degree)
        peers[degree] = check_rank == 0 ? 1 + degree : 0;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, peers, ones, degree, peers, ones, MPI_INFO_NULL, 0,
                                   &star);
    MPI_Type_vector(rows, row, 2 * row, MPI_BYTE, &face_type);
    MPI_Type_commit(&face_type);
    page = (size_t)sysconf(_SC_PAGESIZE);
    face_bytes = ((size_t)rows * 2 * (size_t)row + page - 1) / page * page;
    for (int i = 0; i < edges; ++i) {
        places[i] = (MPI_Aint)face_bytes * i;
        types[i] = face_type;
    }
    sent = mmap(NULL, edges * face_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    received = mmap(NULL, edges * face_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(sent != MAP_FAILED && received != MAP_FAILED, "no memory");
    for (int i = 0; i < edges; ++i) {
        /* Of pieces the last page, where the last row is. */
        const size_t skipped = pieces ? ((size_t)(rows - 1) * 2 * (size_t)row) / page * page : 0;
        guarded[i] = sent + places[i] + skipped;
        guarded_bytes = face_bytes - skipped;
    }
}

static unsigned seed_of(int from, int to, int round) { return (unsigned)(100 * from + 10 * to + round); }
static unsigned char byte_of(unsigned seed, int r, int i) {
    return (unsigned char)(1 + (seed + (unsigned)(r * row + i) * 7u) % 200u);
}

static void fill_faces(int round) {
    memset(received, 0, edges * face_bytes);
    for (int k = 0; k < degree; ++k)
        for (int r = 0; r < rows; ++r)
            for (int i = 0; i < row; ++i)
                sent[places[k] + 2 * r * row + i] = byte_of(seed_of(check_rank, peers[k], round), r, i);
}

static void verify_faces(int round) {
    for (int k = 0; k < degree; ++k)
        for (int r = 0; r < rows; ++r)
            for (int i = 0; i < 2 * row; ++i) {
                const unsigned char right = i < row ? byte_of(seed_of(peers[k], check_rank, round), r, i) : 0;
                const unsigned char got = received[places[k] + 2 * r * row + i];
                if (got != right)
                    FAIL("round %d: the face from %d: byte %d of row %d is wrong: %02x, not %02x", round,
                         peers[k], i, r, got, right);
            }
    ++check_count;
}

/* The byte is there, seen by a thread in no call: within longest_s. */
static int comes(int edge, int r, int round) {
    const volatile unsigned char* const at = received + places[edge] + 2 * r * row + row - 1;
    const unsigned char right = byte_of(seed_of(peers[edge], check_rank, round), r, row - 1);
    const double until = seconds_now() + longest_s;
    while (*at != right) {
        if (seconds_now() > until) return 0;
        usleep(100);
    }
    return 1;
}

static void start(MPI_Request* plan) {
    if (alltoallw_init != NULL)
        MPI_Start(plan);
    else
        MPI_Ineighbor_alltoallw(sent, ones, places, types, received, ones, places, types, star, plan);
    CHECK(was_accelerated(), "%s", last_reason());
}

/* Rank 0 packs one face after the other. */
static void packs_in_turn(MPI_Request* plan, int round) {
    fill_faces(round);
    touched = 0;
    atomic_store(&told->came, 0);
    if (check_rank == 0)
        for (int i = 0; i < edges; ++i) mprotect(guarded[i], guarded_bytes, PROT_NONE);
    MPI_Barrier(MPI_COMM_WORLD);
    start(plan);
    if (check_rank != 0) {
        const int came = comes(0, 0, round);
        if (came) atomic_fetch_add(&told->came, 1);
    }
    MPI_Wait(plan, MPI_STATUS_IGNORE);
    CHECK(check_rank != 0 || touched == edges, "%d faces were packed", (int)touched);
    CHECK(!held_in_vain, "round %d: %s", round,
          pieces ? "the end of a face was packed before its begin was on its way"
                 : "a face was packed before another one was on its way");
    verify_faces(round);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 has the face of rank 1 before rank 2 has joined. */
static void unpacks_in_turn(MPI_Request* plan, int round) {
    fill_faces(round);
    atomic_store(&told->seen, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 2) reaches(&told->seen, 1);
    start(plan);
    if (check_rank == 0) {
        const int came = comes(0, rows - 1, round);
        atomic_store(&told->seen, 1);
        CHECK(came, "round %d: a face was not unpacked while another one was on its way", round);
    }
    MPI_Wait(plan, MPI_STATUS_IGNORE);
    verify_faces(round);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void exchange(void) {
    MPI_Request plan = MPI_REQUEST_NULL;
    if (alltoallw_init != NULL)
        alltoallw_init(sent, ones, places, types, received, ones, places, types, star, MPI_INFO_NULL, &plan);
    CHECK(was_accelerated(), "%s", last_reason());
    for (int round = 0; round < rounds; ++round) {
        /* The first one connects them. */
        if (round > 0) packs_in_turn(&plan, 2 * round);
        unpacks_in_turn(&plan, 2 * round + 1);
    }
    if (alltoallw_init != NULL) MPI_Request_free(&plan);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    CHECK(check_size == 3 && argc > 2, "face_by_face ROW_BYTES ROWS on 3 ranks");
    row = atoi(argv[1]);
    rows = atoi(argv[2]);
    pieces = argc > 3;
    open_faces();
    struct sigaction action = {.sa_sigaction = hold_up, .sa_flags = SA_SIGINFO}, before;
    sigaction(SIGSEGV, &action, &before);
    MPI_Request request;
    MPI_Ibarrier(star, &request); /* with what comes next it is set up */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(star);
    MPI_Ineighbor_alltoallw(sent, ones, places, types, received, ones, places, types, star, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    exchange();
    *(void**)&alltoallw_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoallw_init");
    if (alltoallw_init != NULL) exchange();
    sigaction(SIGSEGV, &before, NULL);
    return check_end();
}
