/* One rank's memory runs out, in our code alone, at every place in turn: the others are in the collective by
 * then, so it must neither report an error nor take another way than they. Its allocations fail from the n-th
 * on, or only the n-th, for n = 0, 1, 2 … until a round needs no more than n.
 *
 * "init N" instead: they fail from the N-th on while rank 1 is in MPI_Init.
 * "large": the root makes the largest plan there is with no memory at all, and nobody makes a larger one.
 * "staged": one rank has no mapping for what it packs in MPI_Allgather.
 * "plans": they fail in MPI_Alltoallv_init, where what is packed needs memory of its own. A plan is
 * everybody's or the library's. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "our_object.h"

extern void* __libc_malloc(size_t);

static long countdown = -1; /* allocations of ours that still succeed; below 0: all */
static int one_only;
static int mappings_fail; /* all of ours */
static long injected;

static int from_ours(const void* caller) {
    return (uintptr_t)caller >= ours_begin && (uintptr_t)caller < ours_end;
}

static int fails(const void* caller) {
    if (countdown < 0 || !from_ours(caller)) return 0;
    if (countdown-- > 0) return 0;
    countdown = one_only ? -1 : 0;
    ++injected;
    return 1;
}

void* malloc(size_t bytes) { return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes); }

void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (fails(__builtin_return_address(0))) return MAP_FAILED;
    if (mappings_fail && from_ours(__builtin_return_address(0))) {
        ++injected;
        return MAP_FAILED;
    }
    return (void*)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}

enum { blocks = 5000 };
static int strided[2 * blocks];

static void one(MPI_Comm comm, int root, unsigned seed, MPI_Datatype type, int count, int stride) {
    unsigned char bytes[4 * blocks];
    fill(bytes, sizeof bytes, seed);
    memset(strided, poison_value, sizeof strided);
    if (check_rank == root)
        for (int i = 0; i < blocks; ++i) memcpy(&strided[i * stride], bytes + 4 * i, 4);
    const int code = MPI_Bcast(strided, count, type, root, comm);
    CHECK(code == MPI_SUCCESS, "with %ld allocations lost: MPI_Bcast returned %d", injected, code);
    for (int i = 0; i < blocks; ++i)
        if (memcmp(&strided[i * stride], bytes + 4 * i, 4) != 0)
            FAIL("with %ld allocations lost: byte %d is wrong", injected, 4 * i);
}

/* Rank `victim` loses allocations. Returns how many; adds how many broadcasts were ours to *accelerated. */
static long round_of(int victim, long n, int only, unsigned* seed, long* accelerated) {
    MPI_Comm comm;
    MPI_Datatype vector, darray;
    const int global[1] = {2 * blocks}, cyclic[1] = {MPI_DISTRIBUTE_CYCLIC}, each[1] = {1}, two[1] = {2};
    MPI_Comm_split(MPI_COMM_WORLD, 0, n % 2 ? check_rank : -check_rank, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Type_vector(blocks, 1, 2, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    MPI_Type_create_darray(2, 0, 1, global, cyclic, each, two, MPI_ORDER_C, MPI_INT, &darray);
    MPI_Type_commit(&darray);
    int lead;
    const int zero = 0;
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(comm, &group);
    MPI_Group_translate_ranks(group, 1, &zero, world, &lead);
    MPI_Group_free(&world);
    MPI_Group_free(&group);
    injected = 0;
    if (check_rank == victim) one_only = only, countdown = n;
    long ours = 0;
    for (int i = 0; i < 4; ++i) {
        /* Rank 0 of comm is the root, world rank `lead`. */
        const int is_root = check_rank == lead;
        const int keep = check_rank;
        check_rank = is_root ? 0 : 1;
        one(comm, 0, ++*seed,
            i == 1   ? vector
            : i == 2 ? darray
                     : MPI_INT,
            i == 1 || i == 2 ? 1 : blocks, i == 1 || i == 2 ? 2 : 1);
        check_rank = keep;
        ours += was_accelerated();
    }
    countdown = -1;
    long mine[2] = {ours, -ours}, least[2], lost = injected, most_lost;
    MPI_Allreduce(mine, least, 2, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
    CHECK(least[0] == -least[1], "%ld to %ld of 4 broadcasts were ours", least[0], -least[1]);
    MPI_Allreduce(&lost, &most_lost, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    *accelerated += ours;
    MPI_Type_free(&vector);
    MPI_Type_free(&darray);
    MPI_Comm_free(&comm);
    return most_lost;
}

enum { world_by = 40 };

static void in_init(int argc, char** argv) {
    const char* rank = getenv("PMI_RANK");
    if (rank == NULL) rank = getenv("OMPI_COMM_WORLD_RANK");
    const long n = atol(argv[2]);
    if (rank != NULL && atoi(rank) == 1) countdown = n;
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    const long lost = injected;
    countdown = -1;
    long most_lost, accelerated = 0;
    MPI_Allreduce(&lost, &most_lost, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    CHECK(most_lost > 0, "nothing was lost in MPI_Init");
    unsigned seed = 0;
    round_of(-1, 0, 0, &seed, &accelerated);
    /* Without a world of its own the rank is without Thalweg, and so are all; how many allocations come
     * before that depends on the library. */
    const int may_be_native = n<world_by, may_be_ours = n> 0;
    if (expect_thalweg())
        CHECK((accelerated == 0 && may_be_native) || (accelerated == 4 && may_be_ours),
              "%ld of 4 broadcasts were ours: %s", accelerated, last_reason());
}

/* 16384 pieces of a message to each of `chains` ranks. */
static void large(int chains, int ours) {
    enum { bytes = 16384 * 64 };
    char choice[64];
    unsigned char* const data = guarded_new(bytes);
    snprintf(choice, sizeof choice, "chain:chunk_bytes=64:chains=%d", chains);
    set_option("THALWEG_BCAST", choice);
    MPI_Bcast(data, 100, MPI_BYTE, 0, MPI_COMM_WORLD); /* sets up */
    injected = 0;
    one_only = 0;
    if (check_rank == 0) countdown = 0;
    if (check_rank == 0) fill(data, bytes, (unsigned)chains);
    MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    countdown = -1;
    verify(data, bytes, (unsigned)chains, choice);
    CHECK(!expect_thalweg() || was_accelerated() == ours, "%s: %s", choice, last_reason());
    CHECK(check_rank != 0 || !ours || injected > 20, "%ld allocations were lost", injected);
    guarded_free(data, bytes);
}

typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
enum { most_ranks = 8, spaced = 3000, apart = 2 * spaced - 1 }; /* ints for a rank, and between two ranks' */
static AlltoallvInit* alltoallv_init;
static int given[most_ranks * apart], got[most_ranks * apart];

static int number(int from, int to, int i, int turn) {
    return ((from * most_ranks + to) * spaced + i) * 2 + turn;
}

static void gather(MPI_Datatype type, int victim, int turn) {
    for (int i = 0; i < spaced; ++i) given[2 * i] = number(check_rank, 0, i, turn);
    memset(got, poison_value, sizeof got);
    injected = 0;
    mappings_fail = check_rank == victim;
    const int code = MPI_Allgather(given, 1, type, got, 1, type, MPI_COMM_WORLD);
    mappings_fail = 0;
    CHECK(code == MPI_SUCCESS, "with %ld mappings lost: MPI_Allgather returned %d", injected, code);
    if (expect_thalweg()) CHECK(was_accelerated(), "with %ld lost: %s", injected, last_reason());
    if (expect_thalweg() && check_rank == victim) CHECK(injected > 0, "nothing was lost");
    for (int rank = 0; rank < check_size; ++rank)
        for (int i = 0; i < spaced; ++i)
            if (got[rank * apart + 2 * i] != number(rank, 0, i, turn))
                FAIL("with %ld mappings lost: number %d of rank %d is wrong", injected, i, rank);
}

static void staged(void) {
    MPI_Datatype type;
    CHECK(check_size <= most_ranks, "too many ranks");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_vector(spaced, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    gather(type, -1, 0); /* sets up */
    for (int victim = 0; victim < check_size; ++victim)
        for (int turn = 0; turn < 2; ++turn) gather(type, victim, turn);
    gather(type, -1, 1);
    MPI_Type_free(&type);
}

/* Rank `victim` loses allocations while the plan is made. Returns how many. */
static long round_of_plans(int victim, long n, int only, MPI_Datatype type, int* is_ours) {
    int ones[most_ranks], places[most_ranks];
    MPI_Request plan;
    for (int peer = 0; peer < check_size; ++peer) ones[peer] = 1, places[peer] = peer;
    injected = 0;
    if (check_rank == victim) one_only = only, countdown = n;
    const int code = alltoallv_init(given, ones, places, type, got, ones, places, type, MPI_COMM_WORLD,
                                    MPI_INFO_NULL, &plan);
    countdown = -1;
    CHECK(code == MPI_SUCCESS, "with %ld allocations lost: MPI_Alltoallv_init returned %d", injected, code);
    *is_ours = was_accelerated();
    int ways[2] = {*is_ours, -*is_ours};
    MPI_Allreduce(MPI_IN_PLACE, ways, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(ways[0] == -ways[1], "with %ld allocations lost: the plan is ours on some ranks", injected);
    for (int turn = 0; turn < 2; ++turn) {
        memset(got, poison_value, sizeof got);
        for (int peer = 0; peer < check_size; ++peer)
            for (int i = 0; i < spaced; ++i) given[peer * apart + 2 * i] = number(check_rank, peer, i, turn);
        MPI_Start(&plan);
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        for (int peer = 0; peer < check_size; ++peer)
            for (int i = 0; i < spaced; ++i)
                if (got[peer * apart + 2 * i] != number(peer, check_rank, i, turn))
                    FAIL("with %ld allocations lost: number %d from %d is wrong", injected, i, peer);
    }
    MPI_Request_free(&plan);
    long most_lost;
    MPI_Allreduce(&injected, &most_lost, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    return most_lost;
}

static void plans(void) {
    MPI_Datatype type;
    int is_ours, ours = 0, natives = 0;
    *(void**)&alltoallv_init = find_or_skip("MPI_Alltoallv_init");
    CHECK(check_size <= most_ranks, "too many ranks");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_vector(spaced, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    round_of_plans(-1, 0, 0, type, &is_ours); /* sets up */
    if (expect_thalweg()) CHECK(is_ours, "a plan with all memory is not ours: %s", last_reason());
    for (int only = 0; only < 2; ++only)
        for (int victim = 0; victim < check_size && victim < 2; ++victim) {
            long lost = 1;
            for (long n = 0; lost != 0; n += n < 40 ? 1 : n / 8) {
                CHECK(n < 5000, "a plan takes more than %ld allocations", n);
                lost = round_of_plans(victim, n, only, type, &is_ours);
                *(is_ours ? &ours : &natives) += 1;
            }
        }
    if (expect_thalweg()) CHECK(ours > 3 && natives > 3, "%d plans are ours, %d not", ours, natives);
    if (check_rank == 0) printf("%d plans ours, %d native\n", ours, natives);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Type_free(&type);
}

int main(int argc, char** argv) {
    dl_iterate_phdr(find_ours, NULL);
    if (argc == 2 && strcmp(argv[1], "large") != 0) {
        check_start(&argc, &argv, MPI_THREAD_SINGLE);
        if (strcmp(argv[1], "plans") == 0)
            plans();
        else
            staged();
        return check_end();
    }
    if (argc == 2) {
        check_start(&argc, &argv, MPI_THREAD_SINGLE);
        large(2, 1);
        large(4, 0);
        large(2, 1);
        return check_end();
    }
    if (argc > 2) {
        in_init(argc, argv);
        return check_end();
    }
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    unsigned seed = 0;
    long accelerated = 0, rounds = 0;
    for (int only = 0; only < 2; ++only)
        for (int victim = 0; victim < check_size && victim < 2; ++victim) {
            long lost = 1;
            for (long n = 0; lost != 0; n += n < 40 ? 1 : n / 8, ++rounds) {
                CHECK(n < 5000, "a round makes more than %ld allocations", n);
                lost = round_of(victim, n, only, &seed, &accelerated);
            }
        }
    if (expect_thalweg() && check_size > 1)
        CHECK(accelerated > 2 * rounds, "%ld of %ld broadcasts were ours", accelerated, 4 * rounds);
    if (check_rank == 0) printf("%ld rounds, %ld broadcasts ours\n", rounds, accelerated);
    return check_end();
}
