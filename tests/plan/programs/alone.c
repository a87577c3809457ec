/* Wrong arguments of rank 1 alone, which calls anew while the others wait for its word.
 *
 *     alone            in C
 *     alone fortran    what is looked at elsewhere where it comes from Fortran
 *     alone creations  of calls that make a communicator
 */
#include "works.h"

#if !defined(MPI_ABI_VERSION)
#include "fortran.h"
#endif

enum { most_ranks = 8 };
static int sent[most_ranks], received[most_ranks];

typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
typedef int BcastInit(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);
static int one_each[most_ranks], fewer_each[most_ranks], place_of[most_ranks];

/* A number for each rank, without blocking, or by a plan where there is `init`. */
static void exchange(MPI_Comm comm, AlltoallvInit* init, int turn) {
    MPI_Request request;
    for (int peer = 0; peer < check_size; ++peer) {
        sent[peer] = 100 * turn + 10 * check_rank + peer;
        received[peer] = -1;
    }
    if (init == NULL) {
        MPI_Ialltoallv(sent, one_each, place_of, MPI_INT, received, one_each, place_of, MPI_INT, comm,
                       &request);
    } else {
        init(sent, one_each, place_of, MPI_INT, received, one_each, place_of, MPI_INT, comm, MPI_INFO_NULL,
             &request);
        MPI_Start(&request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int peer = 0; peer < check_size; ++peer)
        CHECK(received[peer] == 100 * turn + 10 * peer + check_rank, "turn %d: %d from %d", turn,
              received[peer], peer);
    if (init != NULL) MPI_Request_free(&request);
}

static void hear_of_rank_1(void) {
    for (int rank = 0; rank < check_size; ++rank) {
        if (rank == 1) continue;
        if (check_rank == 1) MPI_Send(NULL, 0, MPI_BYTE, rank, 5, MPI_COMM_WORLD);
        if (check_rank == rank) MPI_Recv(NULL, 0, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

#if defined(MPI_ABI_VERSION)
static void in_fortran(MPI_Comm comm) { (void)comm; }
#else
static void in_fortran(MPI_Comm comm) {
    MPI_Fint handle = MPI_Comm_c2f(comm), type = MPI_Type_c2f(MPI_INT), sum = MPI_Op_c2f(MPI_SUM);
    MPI_Fint one = 1, root = check_size, code = MPI_SUCCESS, types[most_ranks];
    for (int i = 0; i < most_ranks; ++i) types[i] = type;
    void (*alltoallw)();
    void (*reduce)();
    *(void**)&alltoallw = fortran("mpi_alltoallw", 0);
    *(void**)&reduce = fortran("mpi_reduce", 0);
    alltoallw(sent, fewer_each, place_of, types, received, one_each, place_of, types, &handle, &code);
    CHECK(code != MPI_SUCCESS, "an alltoallw of fewer than none");
    code = MPI_SUCCESS;
    reduce(sent, received, &one, &type, &sum, &root, &handle, &code);
    CHECK(code != MPI_SUCCESS, "a sum of nobody's");
}
#endif

static void in_c(MPI_Comm comm) {
    /* Of fewer than none MPICH sums. */
    CHECK(MPI_Reduce(sent, received, 1, MPI_INT, MPI_SUM, check_size, comm) != MPI_SUCCESS,
          "a sum of nobody's");
    CHECK(MPI_Bcast(sent, -1, MPI_INT, 0, comm) != MPI_SUCCESS, "a broadcast of fewer than none");
    CHECK(MPI_Allgather(sent, -1, MPI_INT, received, 1, MPI_INT, comm) != MPI_SUCCESS,
          "an allgather of fewer than none");
    CHECK(MPI_Alltoallv(sent, fewer_each, place_of, MPI_INT, received, one_each, place_of, MPI_INT, comm) !=
              MPI_SUCCESS,
          "an alltoallv of fewer than none");
}

static void alone(MPI_Comm comm, void (*wrong_calls)(MPI_Comm)) {
    enum { rounds = 40 };
    AlltoallvInit* init;
    BcastInit* bcast_init;
    MPI_Datatype uncommitted;
    MPI_Request request;
    *(void**)&init = dlsym(RTLD_DEFAULT, "MPI_Alltoallv_init");
    *(void**)&bcast_init = dlsym(RTLD_DEFAULT, "MPI_Bcast_init");
    for (int i = 0; i < most_ranks; ++i) one_each[i] = 1, fewer_each[i] = -1, place_of[i] = i;
    MPI_Type_contiguous(1, MPI_INT, &uncommitted);
    /* From here on the ranks are to meet in the next collective that blocks. */
    exchange(comm, NULL, 0);
    if (check_rank == 1) {
        wrong_calls(comm);
        if (bcast_init != NULL)
            CHECK(bcast_init(sent, 1, uncommitted, 0, comm, MPI_INFO_NULL, &request) != MPI_SUCCESS,
                  "a plan of a type that was not committed");
        if (init != NULL)
            CHECK(init(sent, one_each, place_of, uncommitted, received, one_each, place_of, MPI_INT, comm,
                       MPI_INFO_NULL, &request) != MPI_SUCCESS,
                  "a planned alltoallv of such a type");
    }
    hear_of_rank_1();
    /* As many as the ranks count before they tell one another what their exchanges are like, twice. */
    for (int round = 0; round < rounds; ++round) {
        if (check_rank == 1 && round == 1)
            CHECK(MPI_Ialltoallv(sent, fewer_each, place_of, MPI_INT, received, one_each, place_of, MPI_INT,
                                 comm, &request) != MPI_SUCCESS,
                  "a nonblocking alltoallv of fewer than none");
        exchange(comm, NULL, round);
        MPI_Barrier(comm);
    }
    if (init != NULL) exchange(comm, init, rounds);
    MPI_Type_free(&uncommitted);
    works(comm, "wrong calls of rank 1");
}

/* The others come to the right call when they have heard that the wrong ones are over. */
static void creations(MPI_Comm comm) {
    MPI_Comm made;
    alarm(100);
    /* Whose handler MPICH asks where no communicator has been looked at yet. */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int round = 0; round < 2; ++round) {
        if (check_rank == 1)
            CHECK(class_of(MPI_Comm_create(comm, MPI_GROUP_NULL, &made)) == MPI_ERR_GROUP,
                  "a communicator of no group");
        hear_of_rank_1();
        CHECK(MPI_Comm_split(comm, 0, check_rank, &made) == MPI_SUCCESS, "the right call");
        works(made, "a wrong call of rank 1");
        MPI_Comm_free(&made);
    }
}

/* Rank 1 of two asks for a rank that is not one of them. MPICH and its kin find that out when both have taken
 * part: then the other waits for its word. */
#if defined(MPI_ABI_VERSION) || (defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 50000000)
/* MPICH 5 refuses it on sight, and lets the others wait. */
static void stranger(MPI_Comm comm) { (void)comm; }
#else
static void stranger(MPI_Comm comm) {
    MPI_Comm pair, made;
    MPI_Group world, some;
    const int members[] = {check_rank, 2};
    const int wrong = check_rank == 1;
    if (check_size < 3 || is_open_mpi()) return; /* Open MPI does not look */
    MPI_Comm_split(comm, check_rank < 2 ? 0 : MPI_UNDEFINED, check_rank, &pair);
    if (pair == MPI_COMM_NULL) return;
    MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, wrong ? 2 : 1, members, &some);
    const int code = MPI_Comm_create(pair, some, &made);
    CHECK(class_of(code) == (wrong ? MPI_ERR_GROUP : MPI_SUCCESS), "a group with a stranger: class %d",
          class_of(code));
    if (code == MPI_SUCCESS) MPI_Comm_free(&made);
    CHECK(MPI_Comm_split(pair, 0, check_rank, &made) == MPI_SUCCESS, "the right call");
    works(made, "a group with a stranger");
    MPI_Comm_free(&made);
    MPI_Group_free(&some);
    MPI_Group_free(&world);
    MPI_Comm_free(&pair);
}
#endif

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    const int fortran_too = argc > 1 && strcmp(argv[1], "fortran") == 0;
#if defined(MPI_ABI_VERSION)
    if (fortran_too) SKIP("its header knows no Fortran");
#else
    if (fortran_too) load_fortran();
#endif
    MPI_Comm comm;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    works(comm, "nothing");
    if (argc > 1 && strcmp(argv[1], "creations") == 0) {
        creations(comm);
        stranger(comm);
    } else {
        alone(comm, fortran_too ? in_fortran : in_c);
    }
    MPI_Comm_free(&comm);
    return check_end();
}
