/* Programs that complete on every MPI because a native nonblocking collective needs nobody to wait for it:
 * their ranks sit in other calls, or in none, while it runs. With us they must complete as well, whether it
 * is taken or not. One pair of ranks, or all, per program; THALWEG_TEST_TAKEN=1: it was taken;
 * THALWEG_TEST_OPERATION=allgather, allreduce, barrier or alltoall: one of those, where every rank needs
 * every other, not MPI_Ibcast; neighbours or neighbours_plan: MPI_Ineighbor_alltoallw or starts of an
 * MPI_Neighbor_alltoallw_init with strided faces on a ring, where every rank needs those beside it.
 */
#include <unistd.h>

#include "check.h"

enum { bytes = 400000 };
enum { broadcast, allgather, allreduce, barrier, alltoall, neighbours, neighbours_plan, operations };
static const char* const names[operations] = {"broadcast", "allgather",  "allreduce",      "barrier",
                                              "alltoall",  "neighbours", "neighbours_plan"};

static unsigned char* data[2];
static MPI_Request requests[2];
static int operation = broadcast;

typedef int AlltoallwInit(const void*, const int*, const MPI_Aint*, const MPI_Datatype*, void*, const int*,
                          const MPI_Aint*, const MPI_Datatype*, MPI_Comm, MPI_Info, MPI_Request*);

/* Two faces, down and up a ring; between their rows lies what must stay as it is. */
enum { row = 40, stride = 64, rows = bytes / 2 / stride, face = row * rows };
static MPI_Comm ring;
static MPI_Datatype face_type;
static unsigned char* sent_faces[2];
static const int ones[2] = {1, 1};
static const MPI_Aint face_places[2] = {0, (MPI_Aint)rows* stride};
static MPI_Datatype face_types[2];
static MPI_Request plans[2];

static int int_of(int rank, int i, unsigned seed) { return 1000 * rank + 3 * i + (int)seed; }
static unsigned seed_of(int from, int to, unsigned seed) {
    return seed + 1000u * (unsigned)from + 37u * (unsigned)to;
}

static int is_of_neighbours(void) { return operation == neighbours || operation == neighbours_plan; }

/* Sets a ring up for operations that nobody waits for, and makes the plans. */
static void open_ring(void) {
    const int periodic = 1;
    MPI_Request request;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &check_size, &periodic, 0, &ring);
    MPI_Type_vector(rows, row, stride, MPI_BYTE, &face_type);
    MPI_Type_commit(&face_type);
    face_types[0] = face_types[1] = face_type;
    MPI_Ibarrier(ring, &request); /* with what comes next it is set up */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(ring);
    AlltoallwInit* init = NULL;
    if (operation == neighbours_plan) *(void**)&init = find_or_skip("MPI_Neighbor_alltoallw_init");
    for (int which = 0; which < 2; ++which) {
        sent_faces[which] = guarded_new(bytes);
        if (init != NULL)
            init(sent_faces[which], ones, face_places, face_types, data[which], ones, face_places, face_types,
                 ring, MPI_INFO_NULL, &plans[which]);
    }
}

static void close_ring(void) {
    for (int which = 0; which < 2; ++which) {
        guarded_free(sent_faces[which], bytes);
        if (operation == neighbours_plan) MPI_Request_free(&plans[which]);
    }
    MPI_Type_free(&face_type);
    MPI_Comm_free(&ring);
}

/* Of the face that `from` sends down (0) or up (1). */
static unsigned seed_of_face(int from, int up, unsigned seed) {
    return seed + 1000u * (unsigned)from + 37u * (unsigned)up;
}

static void start_faces(int which, unsigned seed) {
    for (int up = 0; up < 2; ++up)
        for (int i = 0; i < face; ++i)
            sent_faces[which][face_places[up] + i / row * stride + i % row] =
                pattern((uint64_t)i, seed_of_face(check_rank, up, seed));
    if (operation == neighbours_plan)
        MPI_Start(&plans[which]);
    else
        MPI_Ineighbor_alltoallw(sent_faces[which], ones, face_places, face_types, data[which], ones,
                                face_places, face_types, ring, &requests[which]);
}

/* What went up comes from below. */
static void verify_faces(int which, unsigned seed) {
    for (int up = 0; up < 2; ++up) {
        const int from = (check_rank + (up ? 1 : check_size - 1)) % check_size;
        const unsigned its = seed_of_face(from, !up, seed);
        const unsigned char* const at = data[which] + face_places[up];
        for (int i = 0; i < rows * stride; ++i) {
            const int inside = i % stride < row;
            const unsigned char right =
                inside ? pattern((uint64_t)(i / stride * row + i % stride), its) : poison_value;
            if (at[i] != right)
                FAIL("a face from %d: byte %d is wrong: %02x, not %02x", from, i, at[i], right);
        }
        ++check_count;
    }
}

static void start(int which, int root, unsigned seed) {
    const int block = bytes / check_size, ints = bytes / (int)sizeof(int);
    memset(data[which], poison_value, bytes);
    switch (operation) {
        case broadcast:
            if (check_rank == root) fill(data[which], bytes, seed);
            MPI_Ibcast(data[which], bytes, MPI_BYTE, root, MPI_COMM_WORLD, &requests[which]);
            break;
        case allgather:
            fill(data[which] + check_rank * block, (size_t)block, seed_of(check_rank, 0, seed));
            MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, data[which], block, MPI_BYTE, MPI_COMM_WORLD,
                           &requests[which]);
            break;
        case allreduce:
            for (int i = 0; i < ints; ++i) ((int*)data[which])[i] = int_of(check_rank, i, seed);
            MPI_Iallreduce(MPI_IN_PLACE, data[which], ints, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                           &requests[which]);
            break;
        case barrier:
            MPI_Ibarrier(MPI_COMM_WORLD, &requests[which]);
            break;
        case neighbours:
        case neighbours_plan:
            start_faces(which, seed);
            break;
        default:
            for (int peer = 0; peer < check_size; ++peer)
                fill(data[which] + peer * block, (size_t)block, seed_of(check_rank, peer, seed));
            MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_BYTE, data[which], block, MPI_BYTE, MPI_COMM_WORLD,
                          &requests[which]);
    }
    const char* const taken = getenv("THALWEG_TEST_TAKEN");
    if (taken != NULL && check_size > 1)
        CHECK(was_accelerated() == (taken[0] == '1'), "%s", was_accelerated() ? "was taken" : last_reason());
}

static void end(int which, unsigned seed) {
    const int block = bytes / check_size, ints = bytes / (int)sizeof(int);
    MPI_Wait(operation == neighbours_plan ? &plans[which] : &requests[which], MPI_STATUS_IGNORE);
    if (is_of_neighbours()) verify_faces(which, seed);
    if (operation == broadcast) verify(data[which], bytes, seed, "a broadcast");
    for (int i = 0; i < ints && operation == allreduce; ++i) {
        int wanted = 0;
        for (int rank = 0; rank < check_size; ++rank) wanted += int_of(rank, i, seed);
        CHECK(((int*)data[which])[i] == wanted, "a sum: byte %d is wrong", 4 * i);
    }
    for (int rank = 0; rank < check_size && (operation == allgather || operation == alltoall); ++rank)
        verify(data[which] + rank * block, (size_t)block,
               seed_of(rank, operation == alltoall ? check_rank : 0, seed), "a block");
}

static void send_to_next(int last) {
    MPI_Send(&last, 1, MPI_INT, (check_rank + 1) % check_size, 9, MPI_COMM_WORLD);
}
static void receive_from_previous(void) {
    int number;
    MPI_Recv(&number, 1, MPI_INT, (check_rank + check_size - 1) % check_size, 9, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

/* Rank 0 waits for a message that its neighbour sends only when the broadcast is complete there; in the chain
 * of a broadcast everybody depends on everybody before. */
static void receive_before_wait(int root, unsigned seed) {
    const int last = check_size - 1;
    start(0, root, seed);
    if (check_rank == last) {
        end(0, seed);
        send_to_next(1);
    } else if (check_rank == 0) {
        receive_from_previous();
        end(0, seed);
    } else {
        usleep(20000); /* in no call at all */
        end(0, seed);
    }
}

static void ssend_before_wait(unsigned seed) {
    const int last = check_size - 1;
    start(0, 0, seed);
    if (check_rank == last) {
        end(0, seed);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        if (check_rank == 0) MPI_Ssend(NULL, 0, MPI_BYTE, last, 4, MPI_COMM_WORLD);
        end(0, seed);
    }
}

/* The root computes for long, in no call, and its data is needed meanwhile. For longer where the others were
 * not done when it came back: a busy machine is late at times, and what does not advance never is in time. */
static void compute_before_wait(unsigned seed) {
    enum { longest_s = 30 };
    const char* const taken = getenv("THALWEG_TEST_TAKEN");
    const int advances = taken != NULL && taken[0] == '1';
    double computes_s = 0.4;
    for (int in_time = 0; !in_time; computes_s *= 2) {
        start(0, 0, seed);
        const double until = seconds_now() + computes_s;
        volatile double x = 0;
        while (check_rank == 0 && seconds_now() < until) x += 1;
        const double returned = seconds_now();
        end(0, seed);
        in_time = done_before_return(seconds_now(), returned) || !advances;
        CHECK(in_time || computes_s < longest_s, "not over while a rank computed for %.1f s", computes_s);
    }
}

/* Two operations waited for in opposite orders. */
static void opposite_orders(unsigned seed) {
    start(0, 0, seed);
    start(1, check_size - 1, seed + 1);
    const int first = check_rank % 2;
    end(first, seed + (unsigned)first);
    end(1 - first, seed + (unsigned)(1 - first));
}

/* One rank is in a barrier of two others' communicator, in a window's fence, and so on. */
static void other_calls(unsigned seed) {
    MPI_Comm other;
    MPI_Win window;
    static int exposed;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Win_create(&exposed, sizeof exposed, sizeof exposed, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (int which = 0; which < 2; ++which) {
        start(0, 0, seed);
        if (check_rank == check_size - 1) end(0, seed);
        if (which == 0)
            MPI_Barrier(other);
        else
            MPI_Win_fence(0, window);
        if (check_rank != check_size - 1) end(0, seed);
    }
    MPI_Win_free(&window);
    MPI_Comm_free(&other);
}

/* A native nonblocking collective goes on while its rank waits for one of ours: the last rank waits for the
 * native one before it starts ours, the others the other way round. */
static void native_before(unsigned seed) {
    enum { count = 200000 };
    static int mine[count], sum[count];
    MPI_Request native;
    const int last = check_size - 1;
    for (int i = 0; i < count; ++i) mine[i] = i + check_rank;
    MPI_Ireduce(mine, sum, count, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, &native);
    if (check_rank == last) MPI_Wait(&native, MPI_STATUS_IGNORE);
    start(0, last, seed);
    end(0, seed);
    if (check_rank != last) MPI_Wait(&native, MPI_STATUS_IGNORE);
    for (int i = 0; i < count && check_rank == 0; ++i)
        CHECK(sum[i] == check_size * i + check_size * last / 2, "a native sum beside ours: element %d", i);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    const char* const asked = getenv("THALWEG_TEST_OPERATION");
    for (int i = 0; asked != NULL && i < operations; ++i)
        if (strcmp(asked, names[i]) == 0) operation = i;
    CHECK(asked == NULL || strcmp(asked, names[operation]) == 0, "no operation: %s", asked);
    data[0] = guarded_new(bytes);
    data[1] = guarded_new(bytes);
    MPI_Ibcast(data[0], 1, MPI_BYTE, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_of_neighbours()) open_ring();
    for (unsigned round = 0; round < 5; ++round) {
        receive_before_wait(0, 10 * round);
        receive_before_wait(check_size - 1, 10 * round + 1);
        ssend_before_wait(10 * round + 2);
        opposite_orders(10 * round + 3);
        other_calls(10 * round + 5);
        native_before(10 * round + 6);
    }
    compute_before_wait(77);
    if (is_of_neighbours()) close_ring();
    guarded_free(data[0], bytes);
    guarded_free(data[1], bytes);
    return check_end();
}
