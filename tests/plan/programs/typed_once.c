/* Allgathers and alltoalls of an irregular type of many runs, whose bytes are looked for once: a blocking
 * call, in which nobody may free the type, makes no other type of it, and one that may outlive the type makes
 * one without asking MPI again what it is made of. Whoever asks meanwhile ends the program.
 *
 * THALWEG_TEST_TAKEN=1: all were taken. */
#define TRAPPED "Barrier", "Type_get_contents"
#include "set_up_calls.h"
#include "ways.h"

typedef int AlikeInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                      MPI_Request*);
static AlikeInit *allgather_init, *alltoall_init;

/* Runs of an int, and the ints that an element takes. */
enum { runs = 20000, ints = 2 * runs + 2, most_ranks = 4 };
static int lengths[runs], begins[runs];
static int from[most_ranks * ints], to[most_ranks * ints];

/* The runs lie two or one ints apart, by no rule that a loop could say. */
static MPI_Datatype make_type(void) {
    MPI_Datatype irregular, type;
    for (int i = 0; i < runs; ++i) {
        lengths[i] = 1;
        begins[i] = 2 * i + (i % 7 == 3);
    }
    MPI_Type_indexed(runs, lengths, begins, MPI_INT, &irregular);
    MPI_Type_create_resized(irregular, 0, ints * (MPI_Aint)sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&irregular);
    return type;
}

static void watch(int way) {
    set_traps();
#if defined(__x86_64__)
    static const char* const of_blocking[] = {"PMPI_Type_contiguous", "PMPI_Type_commit", "PMPI_Type_free"};
    int place = NUMBER_OF(trapped_names);
    void* const large = dlsym(RTLD_DEFAULT, "PMPI_Type_get_contents_c");
    if (large != NULL) set_trap(place++, large);
    for (int i = 0; way == blocking && i < NUMBER_OF(of_blocking); ++i)
        set_trap(place++, dlsym(RTLD_DEFAULT, of_blocking[i]));
#else
    (void)way;
#endif
}

static int value_of(int round, int rank, int block, int i) {
    return round * 1000003 + rank * 30011 + block * 70001 + i;
}

static void exchange(int way, int gathers, MPI_Datatype type) {
    const char* const what = gathers ? "an allgather" : "an alltoall";
    const MPI_Comm comm = MPI_COMM_WORLD;
    for (int round = 0; round < 3; ++round) {
        MPI_Request request = MPI_REQUEST_NULL;
        for (int block = 0; block < check_size; ++block)
            for (int i = 0; i < ints; ++i) {
                from[block * ints + i] = -1;
                to[block * ints + i] = -7;
            }
        for (int block = 0; block < check_size; ++block)
            for (int i = 0; i < runs; ++i)
                from[block * ints + begins[i]] = value_of(round, check_rank, gathers ? 0 : block, i);
        /* The first one has to look. */
        if (round > 0) watch(way);
        if (way == blocking && gathers) MPI_Allgather(from, 1, type, to, 1, type, comm);
        if (way == blocking && !gathers) MPI_Alltoall(from, 1, type, to, 1, type, comm);
        if (way == nonblocking && gathers) MPI_Iallgather(from, 1, type, to, 1, type, comm, &request);
        if (way == nonblocking && !gathers) MPI_Ialltoall(from, 1, type, to, 1, type, comm, &request);
        if (way == persistent)
            (gathers ? allgather_init : alltoall_init)(from, 1, type, to, 1, type, comm, MPI_INFO_NULL,
                                                       &request);
        expect_taken(1, what);
        begin(way, &request);
        end(way, &request, 1);
        if (round > 0) lift_traps();
        for (int rank = 0; rank < check_size; ++rank) {
            int at = 0;
            for (int i = 0; i < ints; ++i) {
                const int filled = at < runs && begins[at] == i;
                const int right = filled ? value_of(round, rank, gathers ? 0 : check_rank, at++) : -7;
                CHECK(to[rank * ints + i] == right, "%s, way %d: int %d of block %d is %d, not %d", what, way,
                      i, rank, to[rank * ints + i], right);
            }
        }
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    CHECK(check_size <= most_ranks, "too many ranks");
    *(void**)&allgather_init = dlsym(RTLD_DEFAULT, "MPI_Allgather_init");
    *(void**)&alltoall_init = dlsym(RTLD_DEFAULT, "MPI_Alltoall_init");
    MPI_Request request;
    MPI_Iallgather(from, 1, MPI_INT, to, 1, MPI_INT, MPI_COMM_WORLD, &request); /* asks for the set-up */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    check_traps();
    MPI_Datatype type = make_type();
    for (int way = nonblocking; way <= blocking; ++way) {
        if (way == persistent && (allgather_init == NULL || alltoall_init == NULL)) continue;
        for (int gathers = 0; gathers < 2; ++gathers) exchange(way, gathers, type);
    }
    MPI_Type_free(&type);
    return check_end();
}
