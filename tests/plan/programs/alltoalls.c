/* MPI_Ialltoall, MPI_Ialltoallv, MPI_Ialltoallw and their persistent forms against their definition: sparse
 * and ragged counts with zeros, blocks with gaps and in any order, a type for every pair, in place, restarts
 * with other data each time, plans started and completed in opposite orders, communicators and types that are
 * gone meanwhile. THALWEG_TEST_TAKEN=1: all were taken. Every receive buffer is poisoned before every start.
 *
 *     alltoalls [STARTS]        how often the small plan is started, 50 by default
 */
#include "check.h"
#include "ragged_blocks.h"

typedef int AlltoallInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                         MPI_Request*);
typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
typedef int AlltoallvInitC(const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*,
                           const MPI_Count*, const MPI_Aint*, MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
typedef int AlltoallwInit(const void*, const int*, const int*, const MPI_Datatype*, void*, const int*,
                          const int*, const MPI_Datatype*, MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallInit* alltoall_init;
static AlltoallvInit* alltoallv_init;
static AlltoallvInitC* alltoallv_init_c;
static AlltoallwInit* alltoallw_init;

static void expect_taken(const char* what) {
    if (!expect_thalweg() || check_size == 1 || getenv("THALWEG_TEST_TAKEN") == NULL) return;
    CHECK(was_accelerated(), "%s: %s", what, last_reason());
}

typedef enum { nonblocking, persistent, persistent_c } Form;

static void alltoallv(Form form, int unit, int sparse, int spaced, MPI_Comm comm) {
    const Shape shape = {unit, sparse};
    MPI_Datatype type = MPI_INT;
    if (spaced) {
        MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &type);
        MPI_Type_commit(&type);
    }
    Blocks from = blocks_new(&shape, 1, 1, 1), to = blocks_new(&shape, 0, sparse > 1, spaced ? 2 : 1);
    MPI_Request request;
    if (form == persistent)
        alltoallv_init(from.data, from.counts, from.places, MPI_INT, to.data, to.counts, to.places, type,
                       comm, MPI_INFO_NULL, &request);
    if (form == persistent_c) {
        MPI_Count *sent, *received;
        MPI_Aint *from_places, *to_places;
        widen(from.counts, from.places, &sent, &from_places);
        widen(to.counts, to.places, &received, &to_places);
        alltoallv_init_c(from.data, sent, from_places, MPI_INT, to.data, received, to_places, type, comm,
                         MPI_INFO_NULL, &request);
        free(sent), free(received), free(from_places), free(to_places);
    }
    for (int round = 0; round < 3; ++round) {
        poison(&from);
        poison(&to);
        put(&from, round);
        if (form == nonblocking)
            MPI_Ialltoallv(from.data, from.counts, from.places, MPI_INT, to.data, to.counts, to.places, type,
                           comm, &request);
        expect_taken("an alltoallv");
        if (form != nonblocking) MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify_blocks(&to, round, "an alltoallv");
    }
    if (form != nonblocking) MPI_Request_free(&request);
    if (spaced) MPI_Type_free(&type);
    blocks_free(&from);
    blocks_free(&to);
}

/* In place: what goes to a rank has the counts of what comes from it. */
static void in_place(Form form, int unit) {
    int* const counts = malloc((size_t)check_size * sizeof(int));
    int* const places = malloc((size_t)check_size * sizeof(int));
    int total = 0;
    for (int peer = 0; peer < check_size; ++peer) {
        counts[peer] = (check_rank + peer) % 3 * unit;
        places[peer] = total;
        total += counts[peer];
    }
    int* const data = malloc((size_t)(total + 1) * sizeof(int));
    MPI_Request request;
    if (form != nonblocking)
        alltoallv_init(MPI_IN_PLACE, NULL, NULL, MPI_INT, data, counts, places, MPI_INT, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    for (int round = 0; round < 3; ++round) {
        for (int peer = 0; peer < check_size; ++peer)
            for (int i = 0; i < counts[peer]; ++i)
                data[places[peer] + i] = value_of(check_rank, peer, round, i);
        data[total] = -7;
        if (form == nonblocking)
            MPI_Ialltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, data, counts, places, MPI_INT, MPI_COMM_WORLD,
                           &request);
        expect_taken("an alltoallv in place");
        if (form != nonblocking) MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int peer = 0; peer < check_size; ++peer)
            for (int i = 0; i < counts[peer]; ++i)
                CHECK(data[places[peer] + i] == value_of(peer, check_rank, round, i),
                      "in place: from %d, byte %d is wrong", peer, 4 * i);
        CHECK(data[total] == -7, "in place: a byte behind the buffer is wrong");
    }
    if (form != nonblocking) MPI_Request_free(&request);
    free(counts);
    free(places);
    free(data);
}

/* Alike pairs; with types of other shapes on the two sides. */
static void alltoall(Form form, int count, int placed, int strided) {
    const size_t block = (size_t)count * 2;
    int* const from = malloc(block * (size_t)check_size * sizeof(int));
    int* const to = malloc(block * (size_t)check_size * sizeof(int));
    MPI_Datatype every_second = MPI_INT, spaced = MPI_INT;
    if (strided) {
        MPI_Type_vector(count, 1, 2, MPI_INT, &every_second);
        MPI_Type_create_resized(every_second, 0, 2 * count * (MPI_Aint)sizeof(int), &spaced);
        MPI_Type_commit(&spaced);
        MPI_Type_free(&every_second);
    }
    const int stride = strided ? 2 : 1;
    const int each = strided ? 1 : count;
    const void* const send = placed ? MPI_IN_PLACE : (const void*)from;
    MPI_Request request;
    if (form != nonblocking)
        alltoall_init(send, count, MPI_INT, to, each, strided ? spaced : MPI_INT, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &request);
    for (int round = 0; round < 3; ++round) {
        for (size_t i = 0; i < block * (size_t)check_size; ++i) to[i] = -7;
        for (int peer = 0; peer < check_size; ++peer)
            for (int i = 0; i < count; ++i) {
                from[peer * count + i] = value_of(check_rank, peer, round, i);
                if (placed) to[(peer * count + i) * stride] = value_of(check_rank, peer, round, i);
            }
        if (form == nonblocking)
            MPI_Ialltoall(send, count, MPI_INT, to, each, strided ? spaced : MPI_INT, MPI_COMM_WORLD,
                          &request);
        expect_taken("an alltoall");
        if (form != nonblocking) MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < stride * count * check_size; ++i) {
            const int peer = i / (stride * count), k = i % (stride * count);
            const int want = k % stride == 0 ? value_of(peer, check_rank, round, k / stride) : -7;
            CHECK(to[i] == want, "an alltoall of %d: byte %d is wrong: %d, not %d", count, 4 * i, to[i],
                  want);
        }
    }
    if (form != nonblocking) MPI_Request_free(&request);
    if (strided) MPI_Type_free(&spaced);
    free(from);
    free(to);
}

/* A type for every pair: ints side by side to even ranks, every second int to odd ones; received by bytes.
 * The types are freed before the plan starts, as MPI allows. */
static void alltoallw(Form form, int unit) {
    const Shape shape = {unit, 1};
    Blocks from = blocks_new(&shape, 1, 1, 2), to = blocks_new(&shape, 0, 1, 1);
    MPI_Datatype* const sent = malloc((size_t)check_size * sizeof(MPI_Datatype));
    MPI_Datatype* const received = malloc((size_t)check_size * sizeof(MPI_Datatype));
    int* const ones = malloc((size_t)check_size * sizeof(int));
    int* const bytes = malloc((size_t)check_size * sizeof(int));
    int* const from_bytes = malloc((size_t)check_size * sizeof(int));
    int* const to_bytes = malloc((size_t)check_size * sizeof(int));
    MPI_Request request;
    for (int peer = 0; peer < check_size; ++peer) {
        MPI_Type_vector(from.counts[peer], 1, 2, MPI_INT, &sent[peer]);
        MPI_Type_commit(&sent[peer]);
        received[peer] = MPI_BYTE;
        ones[peer] = 1;
        bytes[peer] = to.counts[peer] * (int)sizeof(int);
        from_bytes[peer] = from.places[peer] * 2 * (int)sizeof(int);
        to_bytes[peer] = to.places[peer] * (int)sizeof(int);
    }
    for (int round = 0; round < (form == nonblocking ? 1 : 3); ++round) {
        poison(&from);
        poison(&to);
        put(&from, round);
        if (form == nonblocking)
            MPI_Ialltoallw(from.data, ones, from_bytes, sent, to.data, bytes, to_bytes, received,
                           MPI_COMM_WORLD, &request);
        else if (round == 0)
            alltoallw_init(from.data, ones, from_bytes, sent, to.data, bytes, to_bytes, received,
                           MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        if (round == 0) {
            expect_taken("an alltoallw");
            const int early = expect_thalweg() && was_accelerated();
            for (int peer = 0; early && peer < check_size; ++peer) MPI_Type_free(&sent[peer]);
        }
        if (form != nonblocking) MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify_blocks(&to, round, "an alltoallw");
    }
    if (form != nonblocking) MPI_Request_free(&request);
    free(sent), free(received), free(ones), free(bytes), free(from_bytes), free(to_bytes);
    blocks_free(&from);
    blocks_free(&to);
}

/* Completes all requests, in another way in each round and on each rank. */
static void complete_all(int count, MPI_Request* requests, int way) {
    enum { most_requests = 8 };
    int indices[most_requests], flag = 0, left = count;
    if (way == 0) MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    while (way == 1 && !flag) MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE);
    while (way > 1 && left > 0) {
        int some = 1;
        if (way == 2) MPI_Waitany(count, requests, indices, MPI_STATUS_IGNORE);
        if (way == 3) MPI_Waitsome(count, requests, &some, indices, MPI_STATUSES_IGNORE);
        if (way == 4) MPI_Testsome(count, requests, &some, indices, MPI_STATUSES_IGNORE);
        if (way == 5) MPI_Testany(count, requests, indices, &some, MPI_STATUS_IGNORE);
        CHECK(some != MPI_UNDEFINED && (some == 0 || indices[0] != MPI_UNDEFINED),
              "%d of %d requests are left, and none is active", left, count);
        left -= some;
    }
}

/* Two plans and a native pair of persistent messages: ranks start and complete them in other orders and by
 * other calls, and sit in a native call between. */
static void orders(void) {
    const Shape shapes[2] = {{700, 1}, {9000, 2}};
    Blocks from[2], to[2];
    MPI_Request requests[4];
    MPI_Comm comm;
    int out = check_rank, in = -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 2; ++i) {
        from[i] = blocks_new(&shapes[i], 1, 0, 1);
        to[i] = blocks_new(&shapes[i], 0, 1, 1);
        alltoallv_init(from[i].data, from[i].counts, from[i].places, MPI_INT, to[i].data, to[i].counts,
                       to[i].places, MPI_INT, comm, MPI_INFO_NULL, &requests[i]);
        expect_taken("one of two plans");
    }
    MPI_Comm_free(&comm);
    MPI_Send_init(&out, 1, MPI_INT, (check_rank + 1) % check_size, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Recv_init(&in, 1, MPI_INT, (check_rank + check_size - 1) % check_size, 2, MPI_COMM_WORLD,
                  &requests[3]);
    for (int round = 0; round < 16; ++round) {
        const int first = (check_rank + round) % 2;
        in = -1;
        for (int i = 0; i < 2; ++i) {
            poison(&to[i]);
            put(&from[i], round);
        }
        if (round < 4) {
            MPI_Start(&requests[first]);
            MPI_Start(&requests[1 - first]);
            if (round % 2 == 0 && check_size > 1) {
                if (check_rank == 0)
                    MPI_Recv(NULL, 0, MPI_BYTE, check_size - 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            MPI_Wait(&requests[1 - first], MPI_STATUS_IGNORE);
            MPI_Wait(&requests[first], MPI_STATUS_IGNORE);
            if (round % 2 == 0 && check_rank == check_size - 1 && check_size > 1)
                MPI_Send(NULL, 0, MPI_BYTE, 0, 8, MPI_COMM_WORLD);
        } else {
            MPI_Startall(4, requests);
            complete_all(4, requests, (round + check_rank) % 6);
            CHECK(in == (check_rank + check_size - 1) % check_size, "a native message beside plans");
        }
        for (int i = 0; i < 2; ++i) verify_blocks(&to[i], round, "one of two plans");
    }
    for (int i = 0; i < 4; ++i) MPI_Request_free(&requests[(i + check_rank) % 4]);
    for (int i = 0; i < 2; ++i) {
        blocks_free(&from[i]);
        blocks_free(&to[i]);
    }
}

static void restarts(int starts) {
    const Shape shape = {3, 1};
    Blocks from = blocks_new(&shape, 1, 1, 1), to = blocks_new(&shape, 0, 1, 1);
    MPI_Request plan;
    alltoallv_init(from.data, from.counts, from.places, MPI_INT, to.data, to.counts, to.places, MPI_INT,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &plan);
    for (int round = 0; round < starts; ++round) {
        poison(&to);
        put(&from, round);
        MPI_Start(&plan);
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        verify_blocks(&to, round, "a restart");
    }
    /* Never freed: MPI_Finalize comes by it. */
}

/* No rank has anything, or one alone has something for itself. */
static void nothing(Form form) {
    int* const zeros = calloc((size_t)check_size, sizeof(int));
    int* const places = calloc((size_t)check_size, sizeof(int));
    int own = check_rank + 1, mine = -1;
    MPI_Request request;
    for (int some = 0; some < 2; ++some) {
        zeros[check_rank] = some && check_rank == 0;
        mine = -1;
        if (form == nonblocking)
            MPI_Ialltoallv(&own, zeros, places, MPI_INT, &mine, zeros, places, MPI_INT, MPI_COMM_WORLD,
                           &request);
        else
            alltoallv_init(&own, zeros, places, MPI_INT, &mine, zeros, places, MPI_INT, MPI_COMM_WORLD,
                           MPI_INFO_NULL, &request);
        if (form != nonblocking) MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (form != nonblocking) MPI_Request_free(&request);
        CHECK(mine == (some && check_rank == 0 ? own : -1), "nothing, %d: byte 0 is wrong", some);
    }
    free(places);
    free(zeros);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    *(void**)&alltoall_init = dlsym(RTLD_DEFAULT, "MPI_Alltoall_init");
    *(void**)&alltoallv_init = dlsym(RTLD_DEFAULT, "MPI_Alltoallv_init");
    *(void**)&alltoallv_init_c = dlsym(RTLD_DEFAULT, "MPI_Alltoallv_init_c");
    *(void**)&alltoallw_init = dlsym(RTLD_DEFAULT, "MPI_Alltoallw_init");
    /* The first one is declined, and set up by the barrier. */
    int* const zeros = calloc((size_t)check_size, sizeof(int));
    MPI_Request request;
    int none[2];
    MPI_Ialltoallv(&none[0], zeros, zeros, MPI_INT, &none[1], zeros, zeros, MPI_INT, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(zeros);
    MPI_Barrier(MPI_COMM_WORLD);
    /* Persistent ones that are native are not ours to judge. */
    const int plans = alltoallv_init != NULL && check_size > 1 && getenv("THALWEG_TEST_TAKEN") != NULL;
    for (Form form = nonblocking; form <= (plans ? persistent_c : nonblocking); ++form) {
        if (form == persistent_c && alltoallv_init_c == NULL) break;
        for (int spaced = 0; spaced < 2; ++spaced)
            for (int sparse = 1; sparse < 4; ++sparse) {
                alltoallv(form, 1, sparse, spaced, MPI_COMM_WORLD);
                alltoallv(form, 5000, sparse, spaced, MPI_COMM_WORLD);
            }
        if (form == persistent_c) break;
        alltoallv(form, 60000, 1, 0, MPI_COMM_WORLD);
        in_place(form, 1);
        in_place(form, 4000);
        for (int placed = 0; placed < 2; ++placed)
            for (int strided = 0; strided < 2; ++strided) {
                alltoall(form, 1, placed, strided);
                alltoall(form, 3001, placed, strided);
            }
        alltoallw(form, 7);
        alltoallw(form, 2500);
        nothing(form);
    }
    if (plans) {
        orders();
        restarts(argc > 1 ? atoi(argv[1]) : 50);
    }
    return check_end();
}
