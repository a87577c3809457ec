/* Every form of MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw and MPI_Allgatherv, each also with counts of
 * MPI_Count: blocking, nonblocking, persistent. Counts, displacements and types die as soon as a call that we
 * took has returned: they are overwritten and freed before anything is started or completed.
 * THALWEG_TEST_TAKEN=1: all were taken; else the persistent ones, which are the library's own, are left out.
 */
#include "check.h"
#include "ragged_blocks.h"

typedef enum { alltoall, alltoallv, alltoallw, allgatherv, kinds } Kind;
typedef enum { blocking, nonblocking, persistent, times } Time;

/* Arrays of int and of MPI_Count are pointers alike. */
typedef int Alike(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
typedef int AlikeC(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm);
typedef int AlikeSoon(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Request*);
typedef int AlikeSoonC(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm,
                       MPI_Request*);
typedef int AlikeInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                      MPI_Request*);
typedef int AlikeInitC(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm,
                       MPI_Info, MPI_Request*);
typedef int Ragged(const void*, const void*, const void*, MPI_Datatype, void*, const void*, const void*,
                   MPI_Datatype, MPI_Comm);
typedef int RaggedSoon(const void*, const void*, const void*, MPI_Datatype, void*, const void*, const void*,
                       MPI_Datatype, MPI_Comm, MPI_Request*);
typedef int RaggedInit(const void*, const void*, const void*, MPI_Datatype, void*, const void*, const void*,
                       MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
typedef int Typed(const void*, const void*, const void*, const MPI_Datatype*, void*, const void*, const void*,
                  const MPI_Datatype*, MPI_Comm);
typedef int TypedSoon(const void*, const void*, const void*, const MPI_Datatype*, void*, const void*,
                      const void*, const MPI_Datatype*, MPI_Comm, MPI_Request*);
typedef int TypedInit(const void*, const void*, const void*, const MPI_Datatype*, void*, const void*,
                      const void*, const MPI_Datatype*, MPI_Comm, MPI_Info, MPI_Request*);
typedef int Gather(const void*, int, MPI_Datatype, void*, const void*, const void*, MPI_Datatype, MPI_Comm);
typedef int GatherC(const void*, MPI_Count, MPI_Datatype, void*, const void*, const void*, MPI_Datatype,
                    MPI_Comm);
typedef int GatherSoon(const void*, int, MPI_Datatype, void*, const void*, const void*, MPI_Datatype,
                       MPI_Comm, MPI_Request*);
typedef int GatherSoonC(const void*, MPI_Count, MPI_Datatype, void*, const void*, const void*, MPI_Datatype,
                        MPI_Comm, MPI_Request*);
typedef int GatherInit(const void*, int, MPI_Datatype, void*, const void*, const void*, MPI_Datatype,
                       MPI_Comm, MPI_Info, MPI_Request*);
typedef int GatherInitC(const void*, MPI_Count, MPI_Datatype, void*, const void*, const void*, MPI_Datatype,
                        MPI_Comm, MPI_Info, MPI_Request*);

static char name[64];
static void* find_form(Kind kind, Time time, int wide) {
    static const char* const names[kinds] = {"lltoall", "lltoallv", "lltoallw", "llgatherv"};
    snprintf(name, sizeof name, "MPI_%s%s%s%s", time == nonblocking ? "Ia" : "A", names[kind],
             time == persistent ? "_init" : "", wide ? "_c" : "");
    return dlsym(RTLD_DEFAULT, name);
}

/* What a call is given and that dies behind it. */
enum { most_arrays = 6 };
static struct {
    void* data;
    size_t bytes;
} arrays[most_arrays];
static int array_count;
static void* array_new(size_t each) {
    arrays[array_count].bytes = each * (size_t)check_size;
    return arrays[array_count++].data = malloc(each * (size_t)check_size);
}
_Static_assert(sizeof(MPI_Count) == sizeof(MPI_Aint), "counts and places are as wide");
static const void* numbers(const int* from, int times_as_much, int wide) {
    int* const narrow = array_new(wide ? sizeof(MPI_Count) : sizeof(int));
    for (int i = 0; i < check_size; ++i)
        if (wide)
            ((MPI_Count*)narrow)[i] = (MPI_Count)from[i] * times_as_much;
        else
            narrow[i] = from[i] * times_as_much;
    return narrow;
}
/* What lies there afterwards is no handle, and as a count or place leads far away. */
static void let_go(MPI_Datatype* type) {
    for (int i = 0; i < array_count; ++i) {
        memset(arrays[i].data, 0x3b, arrays[i].bytes);
        free(arrays[i].data);
    }
    array_count = 0;
    MPI_Type_free(type);
}

/* Blocks of `count` ints each; those that a rank sends to all are one. */
static Blocks even_new(int count, int one) {
    Blocks blocks = {.stride = 1, .total = one ? count : count * check_size};
    blocks.counts = malloc((size_t)check_size * sizeof(int));
    blocks.places = malloc((size_t)check_size * sizeof(int));
    for (int peer = 0; peer < check_size; ++peer) {
        blocks.counts[peer] = count;
        blocks.places[peer] = one ? 0 : peer * count;
    }
    blocks.data = malloc((size_t)(blocks.total + 1) * sizeof(int));
    return blocks;
}

static void call_alike(void* function, Time time, int wide, const Blocks* from, const Blocks* to,
                       MPI_Datatype type, MPI_Request* request) {
    const int count = from->counts[0];
    const MPI_Comm comm = MPI_COMM_WORLD;
    if (time == blocking && !wide)
        (*(Alike*)function)(from->data, count, type, to->data, count, MPI_INT, comm);
    if (time == blocking && wide)
        (*(AlikeC*)function)(from->data, count, type, to->data, count, MPI_INT, comm);
    if (time == nonblocking && !wide)
        (*(AlikeSoon*)function)(from->data, count, type, to->data, count, MPI_INT, comm, request);
    if (time == nonblocking && wide)
        (*(AlikeSoonC*)function)(from->data, count, type, to->data, count, MPI_INT, comm, request);
    if (time == persistent && !wide)
        (*(AlikeInit*)function)(from->data, count, type, to->data, count, MPI_INT, comm, MPI_INFO_NULL,
                                request);
    if (time == persistent && wide)
        (*(AlikeInitC*)function)(from->data, count, type, to->data, count, MPI_INT, comm, MPI_INFO_NULL,
                                 request);
}
static void call_ragged(void* function, Time time, int wide, const Blocks* from, const Blocks* to,
                        MPI_Datatype type, MPI_Request* request) {
    const void *const sent = numbers(from->counts, 1, wide), *const sent_at = numbers(from->places, 1, wide);
    const void *const counts = numbers(to->counts, 1, wide), *const places = numbers(to->places, 1, wide);
    if (time == blocking)
        (*(Ragged*)function)(from->data, sent, sent_at, type, to->data, counts, places, MPI_INT,
                             MPI_COMM_WORLD);
    if (time == nonblocking)
        (*(RaggedSoon*)function)(from->data, sent, sent_at, type, to->data, counts, places, MPI_INT,
                                 MPI_COMM_WORLD, request);
    if (time == persistent)
        (*(RaggedInit*)function)(from->data, sent, sent_at, type, to->data, counts, places, MPI_INT,
                                 MPI_COMM_WORLD, MPI_INFO_NULL, request);
}
/* Ints leave, bytes arrive. */
static void call_typed(void* function, Time time, int wide, const Blocks* from, const Blocks* to,
                       MPI_Datatype type, MPI_Request* request) {
    const void *const sent = numbers(from->counts, 1, wide), *const sent_at = numbers(from->places, 4, wide);
    const void *const counts = numbers(to->counts, 4, wide), *const places = numbers(to->places, 4, wide);
    MPI_Datatype* const sent_types = array_new(sizeof(MPI_Datatype));
    MPI_Datatype* const types = array_new(sizeof(MPI_Datatype));
    for (int peer = 0; peer < check_size; ++peer) sent_types[peer] = type, types[peer] = MPI_BYTE;
    if (time == blocking)
        (*(Typed*)function)(from->data, sent, sent_at, sent_types, to->data, counts, places, types,
                            MPI_COMM_WORLD);
    if (time == nonblocking)
        (*(TypedSoon*)function)(from->data, sent, sent_at, sent_types, to->data, counts, places, types,
                                MPI_COMM_WORLD, request);
    if (time == persistent)
        (*(TypedInit*)function)(from->data, sent, sent_at, sent_types, to->data, counts, places, types,
                                MPI_COMM_WORLD, MPI_INFO_NULL, request);
}
static void call_gather(void* function, Time time, int wide, const Blocks* from, const Blocks* to,
                        MPI_Datatype type, MPI_Request* request) {
    const int count = from->counts[0];
    const MPI_Comm comm = MPI_COMM_WORLD;
    const void *const counts = numbers(to->counts, 1, wide), *const places = numbers(to->places, 1, wide);
    if (time == blocking && !wide)
        (*(Gather*)function)(from->data, count, type, to->data, counts, places, MPI_INT, comm);
    if (time == blocking && wide)
        (*(GatherC*)function)(from->data, count, type, to->data, counts, places, MPI_INT, comm);
    if (time == nonblocking && !wide)
        (*(GatherSoon*)function)(from->data, count, type, to->data, counts, places, MPI_INT, comm, request);
    if (time == nonblocking && wide)
        (*(GatherSoonC*)function)(from->data, count, type, to->data, counts, places, MPI_INT, comm, request);
    if (time == persistent && !wide)
        (*(GatherInit*)function)(from->data, count, type, to->data, counts, places, MPI_INT, comm,
                                 MPI_INFO_NULL, request);
    if (time == persistent && wide)
        (*(GatherInitC*)function)(from->data, count, type, to->data, counts, places, MPI_INT, comm,
                                  MPI_INFO_NULL, request);
}

/* As put(): of an allgather all ranks get the same. */
static void put_alike(Blocks* from, int round) {
    for (int i = 0; i < from->counts[0]; ++i) from->data[i] = value_of(check_rank, 0, round, i);
}
static void verify_gathered(const Blocks* to, int round) {
    for (int peer = 0; peer < check_size; ++peer)
        for (int i = 0; i < to->counts[peer]; ++i)
            CHECK(to->data[to->places[peer] + i] == value_of(peer, 0, round, i),
                  "%s, round %d: from %d, byte %d is wrong", name, round, peer, 4 * i);
}

static void exchange(Kind kind, Time time, int wide, int unit) {
    void* const function = find_form(kind, time, wide);
    if (function == NULL) return;
    const Shape shape = {unit, 1};
    const int ragged = kind == alltoallv || kind == alltoallw, gather = kind == allgatherv;
    Blocks from = ragged ? blocks_new(&shape, 1, 1, 1) : even_new(unit, gather);
    Blocks to = ragged ? blocks_new(&shape, 0, 0, 1) : even_new(unit, 0);
    MPI_Request request = MPI_REQUEST_NULL;
    for (int round = 0; round < 3; ++round) {
        int late = 0;
        MPI_Datatype type;
        poison(&to);
        if (gather)
            put_alike(&from, round);
        else
            put(&from, round);
        if (time != persistent || round == 0) {
            MPI_Type_contiguous(1, MPI_INT, &type);
            MPI_Type_commit(&type);
            if (kind == alltoall) call_alike(function, time, wide, &from, &to, type, &request);
            if (kind == alltoallv) call_ragged(function, time, wide, &from, &to, type, &request);
            if (kind == alltoallw) call_typed(function, time, wide, &from, &to, type, &request);
            if (gather) call_gather(function, time, wide, &from, &to, type, &request);
            if (expect_thalweg() && getenv("THALWEG_TEST_TAKEN") != NULL && check_size > 1)
                CHECK(was_accelerated(), "%s: %s", name, last_reason());
            late = time == nonblocking && !(expect_thalweg() && was_accelerated());
            if (!late) let_go(&type);
        }
        if (time == persistent) MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (late) let_go(&type);
        if (gather)
            verify_gathered(&to, round);
        else
            verify_blocks(&to, round, name);
    }
    if (time == persistent) MPI_Request_free(&request);
    blocks_free(&from);
    blocks_free(&to);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request); /* asks for the set-up */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    const int plans = getenv("THALWEG_TEST_TAKEN") != NULL && expect_thalweg() && check_size > 1;
    for (Kind kind = 0; kind < kinds; ++kind)
        for (Time time = 0; time < (plans ? times : persistent); ++time)
            for (int wide = 0; wide < 2; ++wide) {
                exchange(kind, time, wide, 7);
                exchange(kind, time, wide, 9001);
            }
    if (check_rank == 0 && find_form(alltoallw, nonblocking, 1) == NULL)
        printf("not looked at: counts of MPI_Count, which this MPI lacks\n");
    return check_end();
}
