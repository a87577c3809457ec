/* What is the program's own stays so while ours runs beside it: no receive of any source and any tag takes a
 * message of ours, no probe sees one, a message with the largest tag arrives; an attribute is copied when the
 * program duplicates its communicator and at no other time; and the thread level is what MPI gave. What is
 * said is compared with a run without us (same.py).
 *
 *   private_space LEVEL     single, funneled, serialized or multiple
 */
#include "check.h"

enum { bytes = 60000, rounds = 12 };

static int copies = 0, deletions = 0;

static int copied(MPI_Comm comm, int key, void* state, void* in, void* out, int* flag) {
    (void)comm, (void)key, (void)state;
    ++copies;
    *(void**)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}
static int deleted(MPI_Comm comm, int key, void* value, void* state) {
    (void)comm, (void)key, (void)value, (void)state;
    ++deletions;
    return MPI_SUCCESS;
}

/* -1: it is not told. */
static int largest_tag(MPI_Comm comm) {
    int* tag = NULL;
    int found = 0;
    MPI_Comm_get_attr(comm, MPI_TAG_UB, &tag, &found);
    return found ? *tag : -1;
}

/* One of each kind of collective; the neighbours are those of a ring. */
static void collectives(MPI_Comm comm, MPI_Comm ring, unsigned seed) {
    unsigned char* const data = guarded_new(bytes);
    unsigned char* const all = guarded_new((size_t)bytes * (size_t)check_size);
    MPI_Request requests[2];
    const int root = (int)(seed % (unsigned)check_size);
    if (check_rank == root) fill(data, bytes, seed);
    MPI_Ibcast(data, bytes, MPI_BYTE, root, comm, &requests[0]);
    fill(all + (size_t)check_rank * bytes, bytes, seed + 7 + (unsigned)check_rank);
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, all, bytes, MPI_BYTE, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    verify(data, bytes, seed, "a broadcast");
    for (int rank = 0; rank < check_size; ++rank)
        verify(all + (size_t)rank * bytes, bytes, seed + 7 + (unsigned)rank, "an allgather");
    if (check_rank == root) fill(data, bytes, seed + 1);
    MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
    verify(data, bytes, seed + 1, "a blocking broadcast");
    int sent[2] = {check_rank, check_rank + 100}, received[2] = {-1, -1};
    MPI_Neighbor_alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, ring);
    if (check_size > 2) /* with two, both neighbours are one rank */
        CHECK(received[0] == (check_rank + check_size - 1) % check_size + 100 &&
                  received[1] == (check_rank + 1) % check_size,
              "neighbours: byte 0 is wrong: %d and %d", received[0], received[1]);
    guarded_free(data, bytes);
    guarded_free(all, (size_t)bytes * (size_t)check_size);
}

static void nothing_to_see(MPI_Comm comm, const char* when) {
    int flag = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &status);
    CHECK(!flag, "%s a message with tag %d of rank %d is seen", when, status.MPI_TAG, status.MPI_SOURCE);
}

/* A receive of anything waits while collectives run on the same communicator, and gets the one message that
 * the program sends, with the largest tag or the smallest. */
static void receive_anything(MPI_Comm comm, MPI_Comm ring, int round, int most) {
    const int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    const int tag = round % 2 ? most : 0;
    int got = -1;
    MPI_Request receive;
    MPI_Status status;
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &receive);
    collectives(comm, ring, (unsigned)round);
    int flag = 0;
    MPI_Test(&receive, &flag, &status);
    CHECK(!flag, "a receive of anything took a message with tag %d of rank %d", status.MPI_TAG,
          status.MPI_SOURCE);
    MPI_Barrier(comm);
    const int sent = 1000 * round + check_rank;
    MPI_Send(&sent, 1, MPI_INT, next, tag, comm);
    MPI_Wait(&receive, &status);
    CHECK(got == 1000 * round + before && status.MPI_TAG == tag && status.MPI_SOURCE == before,
          "the program's own message: byte 0 is wrong: %d with tag %d of rank %d", got, status.MPI_TAG,
          status.MPI_SOURCE);
    MPI_Barrier(comm);
    nothing_to_see(comm, "after collectives");
}

static int level_of(const char* name) {
    const char* const names[] = {"single", "funneled", "serialized", "multiple"};
    const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    for (int i = 0; i < 4; ++i)
        if (strcmp(name, names[i]) == 0) return levels[i];
    FAIL("no thread level %s", name);
}

static void say_level(const char* when) {
    int level = -1, is_main = -1;
    MPI_Query_thread(&level);
    MPI_Is_thread_main(&is_main);
    if (check_rank == 0) printf("%s: thread level %d, main thread %d\n", when, level, is_main);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, level_of(argc > 1 ? argv[1] : "single"));
    say_level("before");
    int key, value = 5;
    MPI_Comm comm, ring, twin;
    MPI_Comm_create_keyval(copied, deleted, &key, NULL);
    MPI_Comm_split(MPI_COMM_WORLD, 0, check_rank, &comm);
    MPI_Comm_set_attr(comm, key, &value);
    const int periodic = 1;
    MPI_Cart_create(comm, 1, &check_size, &periodic, 0, &ring);
    const int made = copies;
    const int most = largest_tag(MPI_COMM_WORLD);
    CHECK(most >= 32767, "MPI_TAG_UB is %d", most);
    /* The standard has it on the world alone: what a part says is the library's choice, and stays it. */
    if (check_rank == 0) printf("the largest tag is %d, on a part %d\n", most, largest_tag(comm));
    for (int round = 0; round < rounds; ++round) {
        receive_anything(comm, ring, round, most);
        /* Blocking calls set a communicator up; from then on what does not block can be ours. */
        if (round > 2 && expect_thalweg() && check_size > 1) {
            MPI_Request request;
            MPI_Ibarrier(comm, &request);
            const int ours = was_accelerated();
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK(ours, "native: %s", last_reason());
        }
    }
    CHECK(copies == made && deletions == 0, "an attribute was copied %d times and deleted %d times",
          copies - made, deletions);
    MPI_Comm_dup(comm, &twin);
    CHECK(copies == made + 1, "the program's own MPI_Comm_dup copied %d times", copies - made);
    receive_anything(twin, ring, 1, most);
    MPI_Comm_free(&twin);
    CHECK(copies == made + 1 && deletions == 1, "%d copies, %d deletions", copies - made, deletions);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&key);
    say_level("after");
    return check_end();
}
