/* Alltoallvs whose blocks lie more than 2 GiB apart: displacements that are no ints in bytes, as extents of a
 * large type or as MPI_Aints. Most of the buffers is never touched and takes no memory. Blocking, nonblocking
 * and persistent, in both widths where this MPI has them. THALWEG_TEST_TAKEN=1: all were taken.
 *
 *     far [ALGORITHM]        persistent ones only, which it must run
 */
#include <sys/mman.h>

#include "check.h"

/* Of either width: counts and places that are ints, or MPI_Counts and MPI_Aints. */
#define OPERANDS(Count, Place)                                                                              \
    const void*, const Count*, const Place*, MPI_Datatype, void*, const Count*, const Place*, MPI_Datatype, \
        MPI_Comm
typedef int AlltoallvInit(OPERANDS(int, int), MPI_Info, MPI_Request*);
typedef int AlltoallvC(OPERANDS(MPI_Count, MPI_Aint));
typedef int IalltoallvC(OPERANDS(MPI_Count, MPI_Aint), MPI_Request*);
typedef int AlltoallvInitC(OPERANDS(MPI_Count, MPI_Aint), MPI_Info, MPI_Request*);
static AlltoallvInit* alltoallv_init;
static AlltoallvC* alltoallv_c;
static IalltoallvC* ialltoallv_c;
static AlltoallvInitC* alltoallv_init_c;

/* Bytes of a block, and from one block's beginning to the next one's. */
enum { block = 20000 };
static const size_t apart = (size_t)3 << 30;
enum { extent = 1 << 20, most_ranks = 8 };

typedef enum { blocking, nonblocking, persistent, ways } Way;
static const char* const form_names[2][ways] = {{"blocking", "nonblocking", "persistent"},
                                                {"blocking, wide", "nonblocking, wide", "persistent, wide"}};

static unsigned char *from, *to;
static MPI_Datatype bytes_of_a_block;
static const char* algorithm;

/* Blocks of the last rank come first. */
static size_t place(int peer) { return (size_t)(check_size - 1 - peer) * apart + (size_t)peer * extent; }

static int is_here(Way way, int wide) {
    if (way == blocking) return !wide || alltoallv_c != NULL;
    if (way == nonblocking) return !wide || ialltoallv_c != NULL;
    return wide ? alltoallv_init_c != NULL : alltoallv_init != NULL;
}

/* By the functions of one width. */
#define BEGIN(call, icall, init, counts, places, type)                                                   \
    do {                                                                                                 \
        if (way == blocking) call(from, counts, places, type, to, counts, places, type, MPI_COMM_WORLD); \
        if (way == nonblocking)                                                                          \
            icall(from, counts, places, type, to, counts, places, type, MPI_COMM_WORLD, &request);       \
        if (way == persistent)                                                                           \
            init(from, counts, places, type, to, counts, places, type, MPI_COMM_WORLD, MPI_INFO_NULL,    \
                 &request);                                                                              \
    } while (0)

static void exchange(Way way, int wide, int round) {
    const char* const name = form_names[wide][way];
    int counts[most_ranks], places[most_ranks];
    MPI_Count large[most_ranks];
    MPI_Aint far[most_ranks];
    MPI_Request request = MPI_REQUEST_NULL;
    for (int peer = 0; peer < check_size; ++peer) {
        counts[peer] = 1, large[peer] = block;
        places[peer] = (int)(place(peer) / extent);
        far[peer] = (MPI_Aint)place(peer);
        fill(from + place(peer), block, (unsigned)(round * 4096 + check_rank * 64 + peer));
        memset(to + place(peer), poison_value, block + 64);
    }
    if (wide)
        BEGIN(alltoallv_c, ialltoallv_c, alltoallv_init_c, large, far, MPI_BYTE);
    else
        BEGIN(MPI_Alltoallv, MPI_Ialltoallv, alltoallv_init, counts, places, bytes_of_a_block);
    if (getenv("THALWEG_TEST_TAKEN") != NULL && expect_thalweg())
        CHECK(was_accelerated(), "%s: %s", name, last_reason());
    thalweg_last_call call;
    if (algorithm != NULL)
        CHECK(look_last_call(&call, sizeof call) == 0 && strcmp(call.algorithm, algorithm) == 0,
              "%s: not by %s", name, algorithm);
    if (way == persistent) MPI_Start(&request);
    if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (way == persistent) MPI_Request_free(&request);
    for (int peer = 0; peer < check_size; ++peer) {
        verify(to + place(peer), block, (unsigned)(round * 4096 + peer * 64 + check_rank), name);
        for (int i = 0; i < 64; ++i)
            CHECK(to[place(peer) + block + (size_t)i] == poison_value,
                  "%s: byte %d behind a block was written", name, i);
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    *(void**)&alltoallv_c = dlsym(RTLD_DEFAULT, "MPI_Alltoallv_c");
    *(void**)&ialltoallv_c = dlsym(RTLD_DEFAULT, "MPI_Ialltoallv_c");
    *(void**)&alltoallv_init = dlsym(RTLD_DEFAULT, "MPI_Alltoallv_init");
    *(void**)&alltoallv_init_c = dlsym(RTLD_DEFAULT, "MPI_Alltoallv_init_c");
    algorithm = argc > 1 ? argv[1] : NULL;
    if (algorithm != NULL && alltoallv_init == NULL) SKIP("this MPI has no MPI_Alltoallv_init");
    const size_t bytes = (size_t)check_size * (apart + extent);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    from = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    CHECK(check_size <= most_ranks, "too many ranks");
    /* The same on all ranks of a host that lets nobody have addresses without memory. */
    if (from == MAP_FAILED || to == MAP_FAILED) SKIP("no addresses for buffers of %zu bytes", bytes);
    MPI_Datatype whole;
    MPI_Type_contiguous(block, MPI_BYTE, &whole);
    MPI_Type_create_resized(whole, 0, extent, &bytes_of_a_block);
    MPI_Type_commit(&bytes_of_a_block);
    MPI_Type_free(&whole);
    /* The first one is native, and the barrier sets up what the next needs. */
    int none[most_ranks] = {0};
    MPI_Request request;
    MPI_Ialltoallv(from, none, none, MPI_BYTE, to, none, none, MPI_BYTE, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int form = 0; form < 2 * ways; ++form) {
        const Way way = (Way)(form % ways);
        if ((algorithm != NULL && way != persistent) || !is_here(way, form / ways)) continue;
        for (int round = 0; round < 3; ++round) exchange(way, form / ways, form * 8 + round);
    }
    const long kib = resident_kib();
    CHECK(kib < 1 << 20, "%ld KiB are in memory: what lies between blocks was touched", kib);
    MPI_Type_free(&bytes_of_a_block);
    munmap(from, bytes);
    munmap(to, bytes);
    return check_end();
}
