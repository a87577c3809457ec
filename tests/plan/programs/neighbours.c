/* Neighbourhood collectives, blocking, nonblocking and persistent, against their definition, on random grids
 * and graphs: dimensions of one and two that go round, borders, edges to oneself and edges that occur several
 * times, ranks without any. What lies between the blocks, and blocks from beyond a border, keep what they
 * had. THALWEG_TEST_TAKEN=1: all were taken. THALWEG_TEST_ALGORITHM=NAME: every persistent one by that, and
 * some of the others, which may have to learn first.
 *
 *     neighbours TOPOLOGIES [SEED]
 */
#include "algorithm_wanted.h"
#include "neighbour_blocks.h"

typedef int AlltoallInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                         MPI_Request*);
typedef int GathervInit(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype, MPI_Comm,
                        MPI_Info, MPI_Request*);
typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
typedef int AlltoallwInit(const void*, const int*, const MPI_Aint*, const MPI_Datatype*, void*, const int*,
                          const MPI_Aint*, const MPI_Datatype*, MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallInit *alltoall_init, *allgather_init;
static GathervInit* allgatherv_init;
static AlltoallvInit* alltoallv_init;
static AlltoallwInit* alltoallw_init;

typedef enum { blocking, nonblocking, persistent, forms } Form;

static void call(const Topology* t, Kind kind, Form form, int same, MPI_Request* request) {
    int own = ints_of(kind, same, t->rank, 0);
    int *const s = sent.memory, *const r = received.memory;
    MPI_Comm comm = t->comm;
    switch (kind) {
        case allgather:
            if (form == blocking) MPI_Neighbor_allgather(s, own, MPI_INT, r, same, MPI_INT, comm);
            if (form == nonblocking)
                MPI_Ineighbor_allgather(s, own, MPI_INT, r, same, MPI_INT, comm, request);
            if (form == persistent)
                allgather_init(s, own, MPI_INT, r, same, MPI_INT, comm, MPI_INFO_NULL, request);
            break;
        case allgatherv:
            if (form == blocking)
                MPI_Neighbor_allgatherv(s, own, MPI_INT, r, received.counts, received.places, MPI_INT, comm);
            if (form == nonblocking)
                MPI_Ineighbor_allgatherv(s, own, MPI_INT, r, received.counts, received.places, MPI_INT, comm,
                                         request);
            if (form == persistent)
                allgatherv_init(s, own, MPI_INT, r, received.counts, received.places, MPI_INT, comm,
                                MPI_INFO_NULL, request);
            break;
        case alltoall:
            if (form == blocking) MPI_Neighbor_alltoall(s, same, MPI_INT, r, same, MPI_INT, comm);
            if (form == nonblocking)
                MPI_Ineighbor_alltoall(s, same, MPI_INT, r, same, MPI_INT, comm, request);
            if (form == persistent)
                alltoall_init(s, same, MPI_INT, r, same, MPI_INT, comm, MPI_INFO_NULL, request);
            break;
        case alltoallv:
            if (form == blocking)
                MPI_Neighbor_alltoallv(s, sent.counts, sent.places, MPI_INT, r, received.counts,
                                       received.places, MPI_INT, comm);
            if (form == nonblocking)
                MPI_Ineighbor_alltoallv(s, sent.counts, sent.places, MPI_INT, r, received.counts,
                                        received.places, MPI_INT, comm, request);
            if (form == persistent)
                alltoallv_init(s, sent.counts, sent.places, MPI_INT, r, received.counts, received.places,
                               MPI_INT, comm, MPI_INFO_NULL, request);
            break;
        default:
            if (form == blocking)
                MPI_Neighbor_alltoallw(s, sent.counts, sent.far, sent.types, r, received.counts, received.far,
                                       received.types, comm);
            if (form == nonblocking)
                MPI_Ineighbor_alltoallw(s, sent.counts, sent.far, sent.types, r, received.counts,
                                        received.far, received.types, comm, request);
            if (form == persistent)
                alltoallw_init(s, sent.counts, sent.far, sent.types, r, received.counts, received.far,
                               received.types, comm, MPI_INFO_NULL, request);
    }
}

/* Of the calls by the algorithm that is wanted. */
static int ran_by_it[forms];
static void note_algorithm(Form form) {
    if (wanted_algorithm() == NULL) return;
    const int by_it = ran_as_wanted();
    ran_by_it[form] += by_it;
    CHECK(form != persistent || by_it, "a plan does not run by %s: %s", wanted_algorithm(), last_reason());
}

static int has_init(Kind kind) {
    return kind == allgather    ? allgather_init != NULL
           : kind == allgatherv ? allgatherv_init != NULL
           : kind == alltoall   ? alltoall_init != NULL
           : kind == alltoallv  ? alltoallv_init != NULL
                                : alltoallw_init != NULL;
}

static void exchange(const Topology* t, Kind kind, Form form, int same) {
    if (form == persistent && !has_init(kind)) return;
    char what[64];
    snprintf(what, sizeof what, "a neighbor_%s, form %d", names[kind], form);
    lay_out(t, kind, same);
    MPI_Request request = MPI_REQUEST_NULL;
    if (form == persistent) call(t, kind, form, same, &request);
    for (int round = 0; round < 3; ++round) {
        expect(t, kind, same, round);
        if (form != persistent) call(t, kind, form, same, &request);
        if (check_size > 1 && expect_thalweg() && getenv("THALWEG_TEST_TAKEN") != NULL)
            CHECK(was_accelerated(), "%s: %s", what, last_reason());
        if (round == 0 || form != persistent) note_algorithm(form);
        if (form == persistent) MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify_received(t, what);
    }
    if (form == persistent) MPI_Request_free(&request);
    free_types(t, kind);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    const int topologies = argc > 1 ? atoi(argv[1]) : 20;
    if (argc > 2) random_state = (unsigned)atoi(argv[2]);
    *(void**)&allgather_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_allgather_init");
    *(void**)&allgatherv_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_allgatherv_init");
    *(void**)&alltoall_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoall_init");
    *(void**)&alltoallv_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoallv_init");
    *(void**)&alltoallw_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoallw_init");
    for (int i = 0; i < topologies; ++i) {
        static Topology t;
        make_any(&t);
        for (int kind = 0; kind < kinds; ++kind)
            for (int form = 0; form < forms; ++form) exchange(&t, (Kind)kind, (Form)form, below(most_ints));
        MPI_Comm_free(&t.comm);
    }
    for (int form = 0; form < forms; ++form)
        if (form != persistent || alltoallw_init != NULL)
            expect_some_as_wanted(ran_by_it[form], form == persistent ? "persistent" : "other");
    return check_end();
}
