/* Alltoallvs whose receives have room for more than comes, as upper bounds of counts have: MPI demands equal
 * sizes, and the libraries let these pass. What is sent arrives, and the room behind it keeps what it held.
 * Then one receive that is too small: its rank is told MPI_ERR_TRUNCATE, the others are done, and the
 * communicator goes on.
 *
 *     unequal [room | truncated | both]        both by default
 *     unequal large MEGABYTES                  one message, with room and without
 *
 * THALWEG_TEST_TAKEN=1: all were taken; =plans: the persistent ones were.
 */
#include "check.h"

enum { most = 12000, room = 2 * most + 64, poison_int = -7 };
typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallvInit* alltoallv_init;

typedef enum { blocking, nonblocking, persistent, forms } Form;
static const char* const form_names[] = {"blocking", "nonblocking", "persistent"};

/* Small messages and large ones; never none, because nobody is told of a message that is not sent. */
static int sent(int from, int to, int call) {
    const int mix = from * 7 + to * 13 + call * 29;
    return mix % 3 == 0 ? 1 + mix % 40 : 1 + mix * 389 % most;
}
/* What the receiver has room for beyond that. */
static int beyond(int from, int to, int call) {
    const int mix = from * 5 + to * 3 + call;
    return mix % 3 == 0 ? 0 : mix % 3 == 1 ? mix % 50 + 1 : most;
}
static int value_of(int from, int to, int call, int i) {
    return from * 1000003 + to * 10007 + call * 101 + i;
}

typedef struct {
    int *sent_counts, *sent_places, *received_counts, *received_places, *from, *to;
    int stride; /* in ints, of the elements that are received */
} Blocks;

static Blocks blocks_new(int call, int stride, int short_by) {
    const size_t ranks = (size_t)check_size;
    Blocks all;
    int* const counts = malloc(4 * ranks * sizeof(int));
    all.sent_counts = counts, all.sent_places = counts + ranks;
    all.received_counts = counts + 2 * ranks, all.received_places = counts + 3 * ranks;
    all.stride = stride;
    all.from = malloc(ranks * room * sizeof(int));
    all.to = malloc(ranks * room * (size_t)stride * sizeof(int));
    for (int peer = 0; peer < check_size; ++peer) {
        all.sent_counts[peer] = sent(check_rank, peer, call);
        all.sent_places[peer] = all.received_places[peer] = peer * room;
        all.received_counts[peer] = sent(peer, check_rank, call);
        if (short_by == 0) all.received_counts[peer] += beyond(peer, check_rank, call);
        for (int i = 0; i < all.sent_counts[peer]; ++i)
            all.from[peer * room + i] = value_of(check_rank, peer, call, i);
    }
    /* Of all messages one, to the last rank from the one before it. */
    if (short_by != 0 && check_rank == check_size - 1) {
        const int peer = check_size - 2, whole = all.received_counts[peer];
        all.received_counts[peer] = whole > short_by ? whole - short_by : 1;
    }
    for (int i = 0; i < check_size * room * stride; ++i) all.to[i] = poison_int;
    return all;
}
static void blocks_free(Blocks* all) { free(all->sent_counts), free(all->from), free(all->to); }
static void verify_blocks(const Blocks* all, int call, int but, const char* what) {
    for (int peer = 0; peer < check_size; ++peer) {
        if (peer == but) continue;
        const int came = sent(peer, check_rank, call);
        for (int i = 0; i < room * all->stride; ++i) {
            const int found = all->to[peer * room * all->stride + i];
            const int filled = i % all->stride == 0 && i / all->stride < came;
            const int right = filled ? value_of(peer, check_rank, call, i / all->stride) : poison_int;
            if (found != right)
                FAIL("%s, call %d: from %d, of %d ints number %d is %d, not %d", what, call, peer, came,
                     i / all->stride, found, right);
        }
        ++check_count;
    }
}

static int run(Form form, const Blocks* all, MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
    if (form == blocking)
        return MPI_Alltoallv(all->from, all->sent_counts, all->sent_places, MPI_INT, all->to,
                             all->received_counts, all->received_places, type, comm);
    if (form == nonblocking)
        MPI_Ialltoallv(all->from, all->sent_counts, all->sent_places, MPI_INT, all->to, all->received_counts,
                       all->received_places, type, comm, request);
    if (form == persistent) MPI_Start(request);
    return MPI_Wait(request, MPI_STATUS_IGNORE);
}
static void init(const Blocks* all, MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
    alltoallv_init(all->from, all->sent_counts, all->sent_places, MPI_INT, all->to, all->received_counts,
                   all->received_places, type, comm, MPI_INFO_NULL, request);
}
static void expect_taken(Form form) {
    const char* const taken = getenv("THALWEG_TEST_TAKEN");
    if (!expect_thalweg() || taken == NULL || (strcmp(taken, "plans") == 0 && form != persistent)) return;
    CHECK(was_accelerated(), "a %s alltoallv: %s", form_names[form], last_reason());
}

/* `stride` 2: into every second int, so that the data does not come to lie where it arrives. */
static void with_room(Form form, int stride, int calls) {
    MPI_Datatype type = MPI_INT;
    MPI_Request request = MPI_REQUEST_NULL;
    if (stride != 1) {
        MPI_Type_create_resized(MPI_INT, 0, stride * (MPI_Aint)sizeof(int), &type);
        MPI_Type_commit(&type);
    }
    for (int call = 0; call < calls; ++call) {
        Blocks all = blocks_new(call, stride, 0);
        if (form == persistent) init(&all, type, MPI_COMM_WORLD, &request);
        for (int start = 0; start < (form == persistent ? 3 : 1); ++start) {
            const int error = run(form, &all, type, MPI_COMM_WORLD, &request);
            CHECK(error == MPI_SUCCESS, "a %s alltoallv: error %d", form_names[form], error);
            expect_taken(form);
            verify_blocks(&all, call, -1, form_names[form]);
            for (int i = 0; i < check_size * room * stride; ++i) all.to[i] = poison_int;
        }
        if (form == persistent) MPI_Request_free(&request);
        blocks_free(&all);
    }
    if (stride != 1) MPI_Type_free(&type);
}

static void too_small(Form form, int short_by) {
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    /* MPICH asks the world's handler for what happens to a request. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    Blocks none = blocks_new(1, 1, 0);
    memset(none.sent_counts, 0, 4 * (size_t)check_size * sizeof(int));
    run(nonblocking, &none, MPI_INT, comm, &request);
    MPI_Barrier(comm);
    blocks_free(&none);
    for (int call = 0; call < 4; ++call) {
        const int wrong = call % 2 == 0, told = wrong && check_rank == check_size - 1;
        Blocks all = blocks_new(call, 1, wrong ? short_by : 0);
        int class = MPI_SUCCESS;
        if (form == persistent) init(&all, MPI_INT, comm, &request);
        MPI_Error_class(run(form, &all, MPI_INT, comm, &request), &class);
        CHECK(class == (told ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "a %s alltoallv, call %d: error class %d",
              form_names[form], call, class);
        expect_taken(form);
        verify_blocks(&all, call, told ? check_size - 2 : -1, form_names[form]);
        if (form == persistent) MPI_Request_free(&request);
        blocks_free(&all);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
}

/* From the first rank to the last: into room for a little more, then into much less. What is behind it in the
 * communicator's traffic, a small message each time, meets nothing that was left. */
static void one_large(size_t megabytes) {
    const int last = check_size - 1, ints = (int)(megabytes << 18) + 3, more = 1000;
    int *const counts = calloc(4 * (size_t)check_size, sizeof(int)), *const none = counts + 2 * check_size;
    int* const data = malloc(((size_t)ints + more) * sizeof(int));
    CHECK(counts != NULL && data != NULL, "no memory for %zu MiB", megabytes);
    for (int call = 0; call < 4; ++call) {
        const int sends = call % 2 == 0 ? ints : 5, room_here = call == 2 ? more : sends + more;
        const int told = call == 2 && check_rank == last;
        int class = MPI_SUCCESS;
        counts[last] = check_rank == 0 ? sends : 0;
        counts[check_size] = check_rank == last ? room_here : 0;
        if (check_rank == 0)
            for (int i = 0; i < sends; ++i) data[i] = value_of(0, 1, call, i);
        if (check_rank == last)
            for (int i = 0; i < room_here; ++i) data[i] = poison_int;
        MPI_Error_class(MPI_Alltoallv(data, counts, none, MPI_INT, data, counts + check_size, none, MPI_INT,
                                      MPI_COMM_WORLD),
                        &class);
        CHECK(class == (told ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "%d ints, call %d: error class %d", sends,
              call, class);
        expect_taken(blocking);
        if (check_rank != last || told) continue;
        for (int i = 0; i < room_here; ++i) {
            const int right = i < sends ? value_of(0, 1, call, i) : poison_int;
            if (data[i] != right)
                FAIL("call %d: of %d ints number %d is %d, not %d", call, sends, i, data[i], right);
        }
        ++check_count;
    }
    free(counts), free(data);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    const char* const part = argc > 1 ? argv[1] : "both";
    *(void**)&alltoallv_init = dlsym(RTLD_DEFAULT, "MPI_Alltoallv_init");
    if (check_size < 2) return check_end();
    /* The first one is native, and the barrier sets up what the next needs. */
    Blocks none = blocks_new(0, 1, 0);
    MPI_Request request;
    memset(none.sent_counts, 0, 4 * (size_t)check_size * sizeof(int));
    run(nonblocking, &none, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    blocks_free(&none);
    if (argc > 2) {
        /* MPICH asks the world's handler for what happens to a request. */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        one_large((size_t)atoi(argv[2]));
        return check_end();
    }
    for (Form form = blocking; form < forms; ++form) {
        /* Plans of the library are not ours to judge. */
        if (form == persistent && (alltoallv_init == NULL || getenv("THALWEG_TEST_TAKEN") == NULL)) continue;
        for (int stride = 1; stride < 3 && strcmp(part, "truncated") != 0; ++stride)
            with_room(form, stride, form == blocking ? 30 : 5);
        if (strcmp(part, "room") == 0) continue;
        too_small(form, 1);
        too_small(form, most);
    }
    return check_end();
}
