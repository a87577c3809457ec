/* Processes that joined later: a communicator merged with spawned processes is native on both sides, whether
 * the children have Thalweg or not, and the world stays ours. Argument "apart": the children are without, and
 * the first thing that happens on a communicator is that an exchange is planned. */
#include "check.h"

typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
enum { most_ranks = 8 };

static void use(MPI_Comm comm, unsigned seed, int accelerated) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    unsigned char* const data = guarded_new(123457);
    if (rank == 0) fill(data, 123457, seed);
    MPI_Bcast(data, 123457, MPI_BYTE, 0, comm);
    verify(data, 123457, seed, "a broadcast");
    if (look_last_call != NULL)
        CHECK(was_accelerated() == accelerated, "accelerated: %d, %s", was_accelerated(), last_reason());
    guarded_free(data, 123457);
}

/* One number to each rank, and room for one from each. */
typedef struct {
    int rank, size, ones[most_ranks], places[most_ranks], from[most_ranks], to[most_ranks];
} Numbers;

static Numbers numbers_on(MPI_Comm comm) {
    Numbers numbers = {0};
    MPI_Comm_rank(comm, &numbers.rank);
    MPI_Comm_size(comm, &numbers.size);
    CHECK(numbers.size <= most_ranks, "too many ranks");
    for (int peer = 0; peer < numbers.size; ++peer) numbers.ones[peer] = 1, numbers.places[peer] = peer;
    return numbers;
}

static int number_of(int from, int to, int round) { return (from * most_ranks + to) * 100 + round; }

static void put_numbers(Numbers* numbers, int round) {
    for (int peer = 0; peer < numbers->size; ++peer)
        numbers->from[peer] = number_of(numbers->rank, peer, round), numbers->to[peer] = -1;
}

static void verify_numbers(const Numbers* numbers, int round) {
    for (int peer = 0; peer < numbers->size; ++peer)
        CHECK(numbers->to[peer] == number_of(peer, numbers->rank, round), "%d came from rank %d in round %d",
              numbers->to[peer], peer, round);
}

/* What is tried asks all ranks, and those of another world, where there is no such row, would not answer. */
static void exchange(MPI_Comm comm, int round) {
    Numbers numbers = numbers_on(comm);
    put_numbers(&numbers, round);
    MPI_Alltoallv(numbers.from, numbers.ones, numbers.places, MPI_INT, numbers.to, numbers.ones,
                  numbers.places, MPI_INT, comm);
    verify_numbers(&numbers, round);
}

/* Its first call asks all ranks, too, and among those of one world plans are ours. */
static void plan(MPI_Comm comm, int accelerated) {
    AlltoallvInit* init;
    *(void**)&init = dlsym(RTLD_DEFAULT, "MPI_Alltoallv_init");
    if (init == NULL) return; /* an older MPI */
    Numbers numbers = numbers_on(comm);
    MPI_Request request;
    init(numbers.from, numbers.ones, numbers.places, MPI_INT, numbers.to, numbers.ones, numbers.places,
         MPI_INT, comm, MPI_INFO_NULL, &request);
    if (look_last_call != NULL)
        CHECK(was_accelerated() == accelerated, "planned: %d, %s", was_accelerated(), last_reason());
    for (int round = 0; round < 3; ++round) {
        put_numbers(&numbers, round);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify_numbers(&numbers, round);
    }
    MPI_Request_free(&request);
}

int main(int argc, char** argv) {
    /* A child may have come without the preload object: nothing is expected of it. */
    const int child = argc > 1 && strncmp(argv[1], "child", 5) == 0;
    const int apart = argc > 1 && strstr(argv[1], "apart") != NULL;
    if (child) setenv("THALWEG_TEST_EXPECT", "native", 1);
    if (child && apart) setenv("THALWEG", "off", 1);
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm inter, merged;
    MPI_Comm_get_parent(&inter);
    if (inter == MPI_COMM_NULL) {
        char* arguments[] = {apart ? "child apart" : "child", NULL};
        use(MPI_COMM_WORLD, 1, check_size > 1);
        if (apart) plan(MPI_COMM_WORLD, check_size > 1);
        MPI_Comm_spawn(argv[0], arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    }
    MPI_Intercomm_merge(inter, child, &merged);
    if (apart) plan(merged, 0);
    for (unsigned i = 0; i < 12; ++i) use(merged, 100 + i, 0);
    for (int call = 0; call < 30; ++call) exchange(merged, call);
    MPI_Comm_free(&merged);
    if (!child) use(MPI_COMM_WORLD, 2, check_size > 1);
    MPI_Comm_disconnect(&inter);
    return check_end();
}
