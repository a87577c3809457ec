/* Allgathers whose own rank's share lies in the memory that is received into: as MPI_IN_PLACE would say it,
 * by other words; and beside it, between the elements that are received, where a library that counts in sizes
 * of a type would look for its own block. Blocking, nonblocking and persistent, of a type with a gap behind
 * each element and of one with a lower bound besides; every byte is compared.
 *
 * A library that refuses aliases takes some of these for such: there rank by rank none is tried that it would
 * not pass, because the others would wait, and all at once get its error. */
#include "ways.h"

typedef int AllgatherInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                          MPI_Request*);
typedef int AllgathervInit(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype,
                           MPI_Comm, MPI_Info, MPI_Request*);
static AllgatherInit* allgather_init;
static AllgathervInit* allgatherv_init;

/* Bytes of an element and of its extent, and elements of a block: odd, so that a number of sizes may lie
 * between two elements. */
enum { element = sizeof(double), extent = 2 * element, block = 1501, most_ranks = 8 };
/* Where a rank's share lies: elsewhere, where a number of extents leads from the first block, or of sizes. */
typedef enum { apart, by_extent, by_size, lies } Lie;
static const char* const lie_names[] = {"apart", "its own block", "between the elements"};

static int counts[most_ranks], places[most_ranks]; /* places: in elements */

static void say_places(int ragged) {
    for (int rank = 0; rank < check_size; ++rank) {
        counts[rank] = block;
        places[rank] = (ragged ? check_size - 1 - rank : rank) * block;
    }
}

/* Of this process alone. */
static int refuses_aliases(void) {
    int data = 0;
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm self;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank, 0, &self);
    const int refuses = PMPI_Allgather(&data, 1, MPI_INT, &data, 1, MPI_INT, self) != MPI_SUCCESS;
    MPI_Comm_free(&self);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Errhandler_free(&handler);
    return refuses;
}

/* Where this rank's share may lie: what it reads there nobody may receive into, and the library has to take
 * it. */
static Lie possible(Lie wanted, int refuses) {
    const int blocks_before = places[check_rank] / block;
    if (wanted == by_size && (refuses || blocks_before % 2 == 0)) return apart;
    /* Libraries need not get it right. */
    if (wanted == by_extent && (!expect_thalweg() || (refuses && blocks_before == 0))) return apart;
    return wanted;
}

static size_t bytes_received(void) { return (size_t)check_size * block * extent; }

static void put_share(unsigned char* share, int rank, unsigned seed) {
    for (int i = 0; i < block; ++i)
        for (int k = 0; k < element; ++k)
            share[i * extent + k] = pattern((uint64_t)(i * element + k), seed + (unsigned)rank);
}

static void call(int way, int ragged, const void* send, void* receive, MPI_Datatype type,
                 MPI_Request* request) {
    const MPI_Comm comm = MPI_COMM_WORLD;
    if (way == blocking && ragged)
        MPI_Allgatherv(send, block, type, receive, counts, places, type, comm);
    else if (way == blocking)
        MPI_Allgather(send, block, type, receive, block, type, comm);
    else if (way == nonblocking && ragged)
        MPI_Iallgatherv(send, block, type, receive, counts, places, type, comm, request);
    else if (way == nonblocking)
        MPI_Iallgather(send, block, type, receive, block, type, comm, request);
    else if (ragged)
        allgatherv_init(send, block, type, receive, counts, places, type, comm, MPI_INFO_NULL, request);
    else
        allgather_init(send, block, type, receive, block, type, comm, MPI_INFO_NULL, request);
}

static void gather(int way, int ragged, Lie wanted, MPI_Datatype type, int refuses) {
    char what[100];
    const size_t bytes = bytes_received();
    say_places(ragged);
    const Lie lie = possible(wanted, refuses);
    unsigned char *const all = guarded_new(bytes), *const elsewhere = guarded_new(block * extent),
                         *const right = malloc(bytes);
    unsigned char* const share =
        lie == apart ? elsewhere : all + (size_t)places[check_rank] * (lie == by_extent ? extent : element);
    MPI_Request request = MPI_REQUEST_NULL;
    snprintf(what, sizeof what, "an allgather%s, way %d, from %s", ragged ? "v" : "", way, lie_names[lie]);
    if (way == persistent) call(way, ragged, share, all, type, &request);
    for (unsigned round = 0; round < 3; ++round) {
        const unsigned seed = 1000 * round + 10;
        fill(all, bytes, seed - 1);
        put_share(share, check_rank, seed);
        memcpy(right, all, bytes);
        for (int rank = 0; rank < check_size; ++rank)
            put_share(right + (size_t)places[rank] * extent, rank, seed);
        if (way != persistent) call(way, ragged, share, all, type, &request);
        if (round == 0 || way != persistent) expect_taken(1, what);
        begin(way, &request);
        end(way, &request, round == 2);
        for (size_t i = 0; i < bytes; ++i)
            CHECK(all[i] == right[i], "%s, start %u: byte %zu is %02x, not %02x", what, round, i, all[i],
                  right[i]);
    }
    guarded_free(all, bytes);
    guarded_free(elsewhere, block * extent);
    free(right);
}

/* All ranks at once, of which the library has its say. */
static void refused(MPI_Datatype type) {
    unsigned char* const all = guarded_new(bytes_received());
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int ragged = 0; ragged < 2; ++ragged) {
        say_places(ragged);
        const void* const share = all + (size_t)places[check_rank] * element;
        int classes[2];
        for (int ours = 0; ours < 2; ++ours)
            classes[ours] = class_of(
                ragged ? (ours ? MPI_Allgatherv : PMPI_Allgatherv)(share, block, type, all, counts, places,
                                                                   type, comm)
                       : (ours ? MPI_Allgather : PMPI_Allgather)(share, block, type, all, block, type, comm));
        CHECK(classes[0] == classes[1], "an alias by sizes: class %d, and class %d without Thalweg",
              classes[1], classes[0]);
    }
    MPI_Comm_free(&comm);
    guarded_free(all, bytes_received());
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    CHECK(check_size <= most_ranks, "too many ranks");
    *(void**)&allgather_init = dlsym(RTLD_DEFAULT, "MPI_Allgather_init");
    *(void**)&allgatherv_init = dlsym(RTLD_DEFAULT, "MPI_Allgatherv_init");
    set_up_world();
    const int refuses = refuses_aliases();
    if (check_rank == 0) printf("aliases are %s\n", refuses ? "refused" : "let pass");
    /* Plans of the library are not ours to judge. */
    const int plans = allgather_init != NULL && allgatherv_init != NULL && check_size > 1 &&
                      getenv("THALWEG_TEST_TAKEN") != NULL;
    for (int below = 0; below < 2; ++below) {
        MPI_Datatype type;
        MPI_Type_create_resized(MPI_DOUBLE, below ? -(MPI_Aint)element : 0, extent, &type);
        MPI_Type_commit(&type);
        for (int way = nonblocking; way <= blocking; ++way) {
            if (way == persistent && !plans) continue;
            for (int ragged = 0; ragged < 2; ++ragged)
                for (Lie lie = apart; lie < lies; ++lie) gather(way, ragged, lie, type, refuses);
        }
        if (refuses) refused(type);
        MPI_Type_free(&type);
    }
    return check_end();
}
