/* Two communicators whose handles are pointers that differ in their upper halves only: what a trial leaves to
 * the library on one of them says nothing of the other (with tried_exchanges.json).
 *
 * malloc() here hands out what MPI_Comm_dup asks for at the place that is wanted.
 */
#include <sys/mman.h>

#include "check.h"

enum {
    small_bytes = 64,
    tried_bytes = 65536,
    most_ranks = 8,
    most_asked = 4096,
    warm = 100,
    until_tried = 100
};

/* Of the thread that duplicates. */
static _Thread_local int noting;
static _Thread_local size_t wanted_bytes;
static struct {
    void* memory;
    size_t bytes;
} asked[most_asked];
static int asked_for;
static char* place; /* of the next of wanted_bytes, or null */
static char* placed;

static void* (*next_malloc)(size_t);
static void (*next_free)(void*);
/* At the first call of all: dlsym() itself may free what it said of an error. */
static void find_next(void) {
    if (next_malloc != NULL) return;
    *(void**)&next_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void**)&next_free = dlsym(RTLD_NEXT, "free");
}

void* malloc(size_t bytes) {
    find_next();
    if (place != NULL && bytes == wanted_bytes) {
        placed = place;
        place = NULL;
        return placed;
    }
    void* const memory = next_malloc(bytes);
    if (noting && asked_for < most_asked) {
        asked[asked_for].memory = memory;
        asked[asked_for++].bytes = bytes;
    }
    return memory;
}
void free(void* memory) {
    find_next();
    if (memory == NULL || memory != placed) next_free(memory);
}

static size_t bytes_of(const void* memory) {
    for (int i = asked_for; i-- > 0;)
        if (asked[i].memory == memory) return asked[i].bytes;
    return 0;
}

/* At the same place in another four gigabytes; null where it cannot be had. */
static char* alike(const char* first, size_t bytes) {
    const size_t page = 4096, inside = (uintptr_t)first % page;
    for (uint64_t i = 1; i < 64; ++i) {
        char* const base = (char*)first - inside + (i << 32);
        char* const got = mmap(base, (inside + bytes + page - 1) / page * page, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (got == base) return base + inside;
        if (got != MAP_FAILED) munmap(got, (inside + bytes + page - 1) / page * page);
    }
    return NULL;
}

static unsigned char from[most_ranks * tried_bytes], to[most_ranks * tried_bytes];
static unsigned seed;

static int is_ours(MPI_Comm comm, int bytes) {
    int counts[most_ranks], places[most_ranks];
    ++seed;
    memset(to, poison_value, sizeof to);
    for (int peer = 0; peer < check_size; ++peer) {
        fill(from + peer * bytes, (size_t)bytes, seed * 64 + (unsigned)(check_rank * 8 + peer));
        counts[peer] = bytes;
        places[peer] = peer * bytes;
    }
    const uint64_t before = looked_at();
    MPI_Alltoallv(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, comm);
    const int ours = looked_at() != before && was_accelerated();
    for (int peer = 0; peer < check_size; ++peer)
        verify(to + peer * bytes, (size_t)bytes, seed * 64 + (unsigned)(peer * 8 + check_rank), "a block");
    return ours;
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(check_size <= most_ranks, "too many ranks");
    if (sizeof(MPI_Comm) != sizeof(void*)) SKIP("handles are numbers");
    MPI_Comm first, second;
    noting = 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    noting = 0;
    memcpy(&placed, &first, sizeof placed);
    char* const handle = placed;
    placed = NULL;
    wanted_bytes = bytes_of(handle);
    place = wanted_bytes != 0 ? alike(handle, wanted_bytes) : NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    place = NULL;
    int all = placed != NULL && memcmp(&placed, &second, sizeof placed) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all) SKIP("no handle can be placed");
    CHECK((uint32_t)(uintptr_t)placed == (uint32_t)(uintptr_t)handle, "%p and %p", placed, handle);
    /* Left to the library by a trial are at least as many more as are tried below. */
    for (int call = 0; call < warm; ++call) CHECK(!is_ours(first, small_bytes), "a small one was tried");
    int call = 0;
    while (call < until_tried && !is_ours(second, tried_bytes)) ++call;
    if (expect_thalweg()) CHECK(call < until_tried, "no large one was tried: %s", last_reason());
    MPI_Comm_free(&second);
    MPI_Comm_free(&first);
    return check_end();
}
