/* Every form of the neighbourhood collectives, each also with counts of MPI_Count: blocking, nonblocking,
 * persistent, on random grids and graphs. All are to be taken: counts, displacements and types die as soon as
 * a call has returned, overwritten and freed before anything is started or completed. A form that this MPI
 * lacks is named and not looked at.
 *
 *     neighbour_forms TOPOLOGIES [SEED]
 */
#include "call_forms.h"
#include "neighbour_blocks.h"

static char name[64];
static void* find_form(Kind kind, Time time, int wide) {
    snprintf(name, sizeof name, "MPI_%s_%s%s%s", time == nonblocking ? "Ineighbor" : "Neighbor", names[kind],
             time == persistent ? "_init" : "", wide ? "_c" : "");
    return dlsym(RTLD_DEFAULT, name);
}

/* Displacements of alltoallw are addresses in both widths. */
static void call(void* function, const Topology* t, Kind kind, Time time, int wide, int same,
                 MPI_Datatype type, MPI_Request* request) {
    const int own = ints_of(kind, same, t->rank, 0), typed = kind == alltoallw;
    const int *const from = sent.memory, unit = typed ? (int)sizeof(int) : 1;
    int* const to = received.memory;
    if (kind == allgather || kind == alltoall) {
        call_alike(function, time, wide, t->comm, from, own, type, to, same, request);
        return;
    }
    const void* const counts = numbers(t->in, received.counts, 1, wide);
    const void* const places = numbers(t->in, received.places, unit, wide || typed);
    if (kind == allgatherv) {
        call_gather(function, time, wide, t->comm, from, own, type, to, counts, places, request);
        return;
    }
    const void* const parts = numbers(t->out, sent.counts, 1, wide);
    const void* const parts_at = numbers(t->out, sent.places, unit, wide || typed);
    if (kind == alltoallv) {
        call_ragged(function, time, t->comm, from, parts, parts_at, type, to, counts, places, request);
        return;
    }
    MPI_Datatype* const part_types = array_new(t->out, sizeof(MPI_Datatype));
    MPI_Datatype* const types = array_new(t->in, sizeof(MPI_Datatype));
    for (int block = 0; block < t->out; ++block) part_types[block] = sent.types[block];
    for (int block = 0; block < t->in; ++block) types[block] = received.types[block];
    call_typed(function, time, t->comm, from, parts, parts_at, part_types, to, counts, places, types,
               request);
}

static int calls_of[kinds][times][2];
static void exchange(const Topology* t, Kind kind, Time time, int wide, int same) {
    void* const function = find_form(kind, time, wide);
    if (function == NULL) return;
    MPI_Request request = MPI_REQUEST_NULL;
    for (int round = 0; round < 3; ++round) {
        const int calls = time != persistent || round == 0;
        if (calls) lay_out(t, kind, same);
        expect(t, kind, same, round);
        if (calls) {
            const uint64_t before = looked_at();
            MPI_Datatype type;
            MPI_Type_contiguous(1, MPI_INT, &type);
            MPI_Type_commit(&type);
            call(function, t, kind, time, wide, same, type, &request);
            CHECK(looked_at() != before && was_accelerated(), "%s: %s", name, last_reason());
            let_go(&type);
            free_types(t, kind);
            ++calls_of[kind][time][wide];
        }
        if (time == persistent) MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify_received(t, name);
    }
    if (time == persistent) MPI_Request_free(&request);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    CHECK(expect_thalweg() && check_size > 1, "nothing is taken of one rank, nor without Thalweg");
    const int topologies = argc > 1 ? atoi(argv[1]) : 8;
    if (argc > 2) random_state = (unsigned)atoi(argv[2]);
    for (int i = 0; i < topologies; ++i) {
        static Topology t;
        make_any(&t);
        for (Kind kind = 0; kind < kinds; ++kind)
            for (Time time = 0; time < times; ++time)
                for (int wide = 0; wide < 2; ++wide) exchange(&t, kind, time, wide, below(most_ints));
        MPI_Comm_free(&t.comm);
    }
    for (Kind kind = 0; kind < kinds; ++kind)
        for (Time time = 0; time < times; ++time)
            for (int wide = 0; wide < 2; ++wide)
                if (find_form(kind, time, wide) == NULL) {
                    if (check_rank == 0) printf("not looked at: %s, which this MPI lacks\n", name);
                } else {
                    CHECK(calls_of[kind][time][wide] > 0, "%s was not called", name);
                }
    return check_end();
}
