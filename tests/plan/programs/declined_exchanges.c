/* Alltoalls where nothing of ours would advance them while their rank computes: whatever THALWEG_ALLTOALLV
 * asks for, the nonblocking and the persistent ones are the MPI library's, before blocking calls that may set
 * something up and behind them. A rank that sits in a receive meanwhile keeps nobody waiting.
 *
 *     declined_exchanges agent_off|unattended        what is said of them in the end
 */
#include "check.h"

#define BLOCKS int, MPI_Datatype, void*, int, MPI_Datatype
#define TABLES(Type) const int*, const int*, Type, void*, const int*, const int*, Type
typedef int AlltoallInit(const void*, BLOCKS, MPI_Comm, MPI_Info, MPI_Request*);
typedef int AlltoallvInit(const void*, TABLES(MPI_Datatype), MPI_Comm, MPI_Info, MPI_Request*);
typedef int AlltoallwInit(const void*, TABLES(const MPI_Datatype*), MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallInit* alltoall_init;
static AlltoallvInit* alltoallv_init;
static AlltoallwInit* alltoallw_init;

enum { most_ranks = 8, bytes = 3000 };
enum { alltoall, alltoallv, alltoallw, kinds };
static const char* const names[kinds] = {"MPI_Alltoall", "MPI_Alltoallv", "MPI_Alltoallw"};

static unsigned char *from, *to;
static int counts[most_ranks], places[most_ranks];
static MPI_Datatype types[most_ranks];
static unsigned round_number;

static unsigned seed_of(int sender, int receiver) {
    return round_number * 64 + (unsigned)(sender * most_ranks + receiver);
}
static void prepare(void) {
    ++round_number;
    memset(to, poison_value, (size_t)check_size * bytes);
    for (int peer = 0; peer < check_size; ++peer) fill(from + places[peer], bytes, seed_of(check_rank, peer));
}
static void check_blocks(const char* what) {
    for (int peer = 0; peer < check_size; ++peer)
        verify(to + places[peer], bytes, seed_of(peer, check_rank), what);
}

/* Of the call before which `before` had been looked at. The first of its kind is, later ones may be handed on
 * without a look. */
static void expect_declined(uint64_t before, int first, const char* reason, const char* way,
                            const char* name) {
    const int seen = looked_at() != before;
    CHECK(seen || !first, "%s %s: Thalweg has not seen it", way, name);
    CHECK(!seen || !was_accelerated(), "%s %s: taken, though nothing would advance it", way, name);
    CHECK(!seen || first || strstr(last_reason(), reason) != NULL, "%s %s: %s", way, name, last_reason());
}

static void nonblocking(int kind, int first, const char* reason) {
    MPI_Request request;
    prepare();
    const uint64_t before = looked_at();
    if (kind == alltoall) MPI_Ialltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
    if (kind == alltoallv)
        MPI_Ialltoallv(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, MPI_COMM_WORLD,
                       &request);
    if (kind == alltoallw)
        MPI_Ialltoallw(from, counts, places, types, to, counts, places, types, MPI_COMM_WORLD, &request);
    expect_declined(before, first, reason, "nonblocking", names[kind]);
    /* Rank 0 sends when it has everything. */
    const int last = check_size - 1;
    if (check_rank == last) MPI_Recv(NULL, 0, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (check_rank == 0) MPI_Send(NULL, 0, MPI_BYTE, last, 5, MPI_COMM_WORLD);
    check_blocks(names[kind]);
}

/* Not started: what a library's own plans do is not ours to judge. */
static void persistent(int kind, const char* reason) {
    MPI_Request request;
    const uint64_t before = looked_at();
    if (kind == alltoall)
        alltoall_init(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (kind == alltoallv)
        alltoallv_init(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    if (kind == alltoallw)
        alltoallw_init(from, counts, places, types, to, counts, places, types, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
    CHECK(looked_at() != before, "persistent %s: Thalweg has not seen it", names[kind]);
    expect_declined(before, 0, reason, "persistent", names[kind]);
    MPI_Request_free(&request);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    *(void**)&alltoall_init = dlsym(RTLD_DEFAULT, "MPI_Alltoall_init");
    *(void**)&alltoallv_init = dlsym(RTLD_DEFAULT, "MPI_Alltoallv_init");
    *(void**)&alltoallw_init = dlsym(RTLD_DEFAULT, "MPI_Alltoallw_init");
    CHECK(argc == 2 && check_size > 1 && check_size <= most_ranks, "a reason, and 2 ranks or more");
    const char* const reason =
        strcmp(argv[1], "agent_off") == 0 ? "THALWEG_AGENT=off" : "nothing would advance it";
    from = guarded_new((size_t)check_size * bytes);
    to = guarded_new((size_t)check_size * bytes);
    for (int peer = 0; peer < check_size; ++peer) {
        counts[peer] = bytes, places[peer] = peer * bytes;
        types[peer] = MPI_BYTE;
    }
    const int plans = alltoall_init != NULL && alltoallv_init != NULL && alltoallw_init != NULL;
    for (int pass = 0; pass < 3; ++pass) {
        for (int kind = 0; kind < kinds; ++kind) nonblocking(kind, pass == 0, reason);
        for (int kind = 0; kind < kinds && plans; ++kind) persistent(kind, reason);
        /* Here everything is set up that is wanted. */
        meet_on(MPI_COMM_WORLD);
        prepare();
        MPI_Alltoallv(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, MPI_COMM_WORLD);
        check_blocks("a blocking one");
    }
    guarded_free(from, (size_t)check_size * bytes);
    guarded_free(to, (size_t)check_size * bytes);
    return check_end();
}
