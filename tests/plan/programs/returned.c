/* The memory of a blocking call is the program's again when it returns, and nobody else's. Each rank gives
 * the pages of its buffers back to the system as soon as its call has returned, makes them unreadable, puts
 * other pages in their place or writes over them, while other ranks, some of which are late, are still in
 * theirs: MPI_Bcast, MPI_Allgatherv, MPI_Alltoallv and MPI_Neighbor_alltoallw with strided faces. All
 * processes tell one another where memory was given to a call and is not any more, and whoever copies from or
 * to another process looks there before and behind it. THALWEG_TEST_TAKEN=1: all were taken.
 *
 *     returned ROUNDS [copies]     copies: and there were such copies
 */
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "check.h"

enum { slots = 2, most_ranks = 8, small = 3000, medium = 80 << 10, large = 1 << 20, row = 2048 };
typedef enum { broadcast, gather, exchange, faces, calls } Call;
static const char* const call_names[] = {"MPI_Bcast", "MPI_Allgatherv", "MPI_Alltoallv",
                                         "MPI_Neighbor_alltoallw"};
typedef enum { unmapped, unreadable, replaced, overwritten, ends } End;

/* Of each process, in memory that all have mapped: what it has taken back. */
typedef struct {
    _Atomic pid_t pid;
    struct {
        _Atomic uintptr_t begin, end; /* begin 0: nothing */
    } gone[slots];
} Account;
static Account* accounts; /* of all ranks */
static _Atomic int processes, copies, late_copies;
static MPI_Comm ring;
static MPI_Datatype face_type;

static int is_gone(pid_t pid, const struct iovec* stretches, unsigned long count) {
    for (int rank = 0; rank < atomic_load(&processes); ++rank) {
        if (atomic_load(&accounts[rank].pid) != pid) continue;
        for (int slot = 0; slot < slots; ++slot) {
            const uintptr_t end = atomic_load(&accounts[rank].gone[slot].end);
            const uintptr_t begin = atomic_load(&accounts[rank].gone[slot].begin);
            if (begin == 0) continue;
            for (unsigned long i = 0; i < count; ++i) {
                const uintptr_t at = (uintptr_t)stretches[i].iov_base;
                if (at < end && at + stretches[i].iov_len > begin) return 1;
            }
        }
    }
    return 0;
}

typedef ssize_t Copy(pid_t, const struct iovec*, unsigned long, const struct iovec*, unsigned long,
                     unsigned long);
static ssize_t look_and_copy(const char* name, pid_t pid, const struct iovec* here, unsigned long here_count,
                             const struct iovec* there, unsigned long there_count, unsigned long flags) {
    Copy* next;
    *(void**)&next = dlsym(RTLD_NEXT, name);
    const int before = is_gone(pid, there, there_count);
    const ssize_t got = next(pid, here, here_count, there, there_count, flags);
    if (before || is_gone(pid, there, there_count)) atomic_fetch_add(&late_copies, 1);
    if (got >= row) atomic_fetch_add(&copies, 1);
    return got;
}

/* The C library's, for everybody in this process. */
ssize_t process_vm_readv(pid_t pid, const struct iovec* here, unsigned long here_count,
                         const struct iovec* there, unsigned long there_count, unsigned long flags) {
    return look_and_copy("process_vm_readv", pid, here, here_count, there, there_count, flags);
}
ssize_t process_vm_writev(pid_t pid, const struct iovec* here, unsigned long here_count,
                          const struct iovec* there, unsigned long there_count, unsigned long flags) {
    return look_and_copy("process_vm_writev", pid, here, here_count, there, there_count, flags);
}

static void open_accounts(void) {
    MPI_Win window;
    MPI_Comm host;
    Account* own;
    MPI_Aint bytes;
    int unit;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    /* Never freed: somebody may copy until the end. */
    MPI_Win_allocate_shared(check_rank == 0 ? sizeof(Account) * most_ranks : 0, 1, MPI_INFO_NULL, host, &own,
                            &window);
    MPI_Win_shared_query(window, 0, &bytes, &unit, &accounts);
    if (check_rank == 0) memset(accounts, 0, sizeof(Account) * most_ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    atomic_store(&accounts[check_rank].pid, getpid());
    MPI_Barrier(MPI_COMM_WORLD);
    atomic_store(&processes, check_size);
}

static size_t whole_pages(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

static unsigned char* pages(size_t bytes) {
    void* const got =
        mmap(NULL, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(got != MAP_FAILED, "no memory");
    return got;
}

/* What was given to a call that has returned. */
static void take_back(unsigned char* memory, size_t bytes, End end, int slot) {
    bytes = whole_pages(bytes);
    atomic_store(&accounts[check_rank].gone[slot].end, (uintptr_t)memory + bytes);
    atomic_store(&accounts[check_rank].gone[slot].begin, (uintptr_t)memory);
    if (end == unmapped) munmap(memory, bytes);
    if (end == unreadable) mprotect(memory, bytes, PROT_NONE);
    if (end == replaced)
        mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (end == replaced || end == overwritten) memset(memory, 0xd7, bytes);
}
/* The others have returned, too: nothing is under way that was given before. */
static void forget_all(unsigned char* const* memory, const size_t* bytes, End end) {
    for (int slot = 0; slot < 2; ++slot) {
        const size_t all = whole_pages(bytes[slot]);
        for (size_t at = 0; (end == replaced || end == overwritten) && at < all; ++at)
            if (memory[slot][at] != 0xd7) FAIL("somebody wrote into memory that was taken back");
        if (end != unmapped) munmap(memory[slot], all);
        atomic_store(&accounts[check_rank].gone[slot].begin, (uintptr_t)0);
    }
}

static unsigned seed_of(int round, int from, int to) { return (unsigned)(round * 1000 + from * 10 + to); }

/* Of a face only every other row. */
static size_t place_in_face(size_t i) { return i / row * 2 * row + i % row; }

static void run(Call call, int round, int block, End end, int late) {
    int counts[most_ranks], places[most_ranks];
    for (int peer = 0; peer < check_size; ++peer) counts[peer] = block, places[peer] = peer * block;
    const size_t all = (size_t)check_size * (size_t)block, face = 2 * (size_t)block;
    const size_t out_bytes = call == faces ? 2 * face : call == exchange ? all : (size_t)block;
    const size_t in_bytes = call == faces ? 2 * face : call == broadcast ? (size_t)block : all;
    unsigned char *const out = pages(out_bytes), *const in = pages(in_bytes);
    const int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    const int sides[2] = {left, right}, ones[2] = {1, 1}, root = round % check_size;
    const MPI_Aint far[2] = {0, (MPI_Aint)face};
    const MPI_Datatype types[2] = {face_type, face_type};
    memset(in, poison_value, in_bytes);
    for (int i = 0; i < block; ++i) {
        const size_t at = (size_t)i;
        if (call == broadcast && check_rank == root) in[at] = pattern(at, seed_of(round, root, 9));
        if (call == gather) out[at] = pattern(at, seed_of(round, check_rank, 9));
        for (int peer = 0; call == exchange && peer < check_size; ++peer)
            out[(size_t)places[peer] + at] = pattern(at, seed_of(round, check_rank, peer));
        for (int side = 0; call == faces && side < 2; ++side)
            out[(size_t)far[side] + place_in_face(at)] = pattern(at, seed_of(round, check_rank, side));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (late) usleep(3000);
    if (call == broadcast) MPI_Bcast(in, block, MPI_BYTE, root, MPI_COMM_WORLD);
    if (call == gather) MPI_Allgatherv(out, block, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    if (call == exchange)
        MPI_Alltoallv(out, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    if (call == faces) MPI_Neighbor_alltoallw(out, ones, far, types, in, ones, far, types, ring);
    take_back(out, out_bytes, end, 0);
    if (getenv("THALWEG_TEST_TAKEN") != NULL)
        CHECK(was_accelerated(), "%s: %s", call_names[call], last_reason());
    unsigned char* const kept = pages(in_bytes);
    memcpy(kept, in, in_bytes);
    take_back(in, in_bytes, end, 1);
    for (int i = 0; i < block; ++i) {
        const size_t at = (size_t)i;
        int right_one = 1;
        if (call == broadcast) right_one = kept[at] == pattern(at, seed_of(round, root, 9));
        for (int peer = 0; peer < check_size; ++peer) {
            const unsigned char got =
                kept[(call == gather || call == exchange ? (size_t)places[peer] : 0) + at];
            if (call == gather) right_one &= got == pattern(at, seed_of(round, peer, 9));
            if (call == exchange) right_one &= got == pattern(at, seed_of(round, peer, check_rank));
        }
        for (int side = 0; call == faces && side < 2; ++side)
            right_one &= kept[(size_t)far[side] + place_in_face(at)] ==
                         pattern(at, seed_of(round, sides[side], 1 - side));
        if (!right_one) FAIL("%s, round %d: byte %d of %d is wrong", call_names[call], round, i, block);
    }
    ++check_count;
    munmap(kept, whole_pages(in_bytes));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(atomic_load(&late_copies) == 0, "%s, round %d: memory was copied that had been taken back",
          call_names[call], round);
    unsigned char* const memory[2] = {out, in};
    const size_t bytes[2] = {out_bytes, in_bytes};
    forget_all(memory, bytes, end);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    CHECK(argc > 1 && check_size >= 3 && check_size <= most_ranks, "returned ROUNDS on 3 to 8 ranks");
    open_accounts();
    /* Who is at whose right: a ring of more than two, so that edges are told apart. */
    const int periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &check_size, &periodic, 0, &ring);
    const int blocks[] = {small / row * row, medium, large};
    const int rounds = atoi(argv[1]);
    for (int round = 0; round < rounds; ++round)
        for (int size = 0; size < 3; ++size) {
            MPI_Type_vector(blocks[size] / row, row, 2 * row, MPI_BYTE, &face_type);
            MPI_Type_commit(&face_type);
            for (Call call = broadcast; call < calls; ++call) {
                const End end = (End)((round + (int)call + check_rank) % (int)ends);
                run(call, round, blocks[size], end, (round + check_rank) % 3 == 0);
            }
            MPI_Type_free(&face_type);
        }
    if (argc > 2) CHECK(atomic_load(&copies) > 0, "nothing was copied from process to process");
    MPI_Comm_free(&ring);
    return check_end();
}
