/* A session's communicator in use while ranks initialise the world: what one rank does on it before its
 * MPI_Init another one does behind it, which nothing forbids.
 *
 *     nonblocking   started in front of MPI_Init on rank 0, behind it on the others
 *     threads       by a thread of each rank beside MPI_Init, until long after it; and on what it makes of
 *                   the communicator meanwhile
 */
#include <pthread.h>

#include "check.h"

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
enum { bytes = 200000, calls = 12 };

static MPI_Session session;
static MPI_Comm comm; /* of all ranks, by the session */

static int open_session(void) {
    MPI_Group group;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    if (MPI_Session_init(info, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return 0;
    MPI_Info_free(&info);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    const int made =
        MPI_Comm_create_from_group(group, "meanwhile", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    if (made != MPI_SUCCESS) return 0;
    MPI_Comm_rank(comm, &check_rank);
    MPI_Comm_size(comm, &check_size);
    return 1;
}

/* So often, and so much each time, that a set-up would pay. */
static void start(unsigned char* const* data, MPI_Request* requests) {
    for (int i = 0; i < calls; ++i) {
        if (check_rank == i % check_size) fill(data[i], bytes, (unsigned)i);
        MPI_Ibcast(data[i], bytes, MPI_BYTE, i % check_size, comm, &requests[i]);
    }
}

static void nonblocking(int* argc, char*** argv) {
    unsigned char* data[calls];
    MPI_Request requests[calls];
    for (int i = 0; i < calls; ++i) data[i] = guarded_new(bytes);
    if (check_rank == 0) start(data, requests);
    const int rank = check_rank;
    check_start(argc, argv, MPI_THREAD_MULTIPLE);
    CHECK(check_rank == rank, "another rank of the world");
    if (check_rank != 0) start(data, requests);
    MPI_Waitall(calls, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < calls; ++i) verify(data[i], bytes, (unsigned)i, "a broadcast");
    /* Where ranks meet that have counted enough; and more of both. */
    for (int round = 0; round < calls; ++round) {
        meet_on(comm);
        for (int i = 0; i < calls; ++i) memset(data[i], poison_value, bytes);
        start(data, requests);
        MPI_Waitall(calls, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < calls; ++i) verify(data[i], bytes, (unsigned)i, "a broadcast of a later round");
    }
    for (int i = 0; i < calls; ++i) guarded_free(data[i], bytes);
}

static volatile int initialized = 0;

/* Checks without counting: another thread counts, too. */
static void broadcast(unsigned char* data, MPI_Comm on, unsigned seed) {
    const int root = (int)(seed % (unsigned)check_size);
    memset(data, poison_value, bytes);
    if (check_rank == root) fill(data, bytes, seed);
    MPI_Bcast(data, bytes, MPI_BYTE, root, on);
    for (size_t i = 0; i < bytes; ++i)
        if (data[i] != pattern(i, seed)) FAIL("broadcast %u: byte %zu is wrong", seed, i);
}

static void* beside(void* unused) {
    enum { after = 40 };
    unsigned char* const data = malloc(bytes);
    unsigned seed = 0;
    for (int left = after, go_on = 1; go_on; left -= initialized != 0) {
        MPI_Comm twin, half;
        broadcast(data, comm, seed++);
        MPI_Comm_dup(comm, &twin);
        MPI_Comm_split(comm, 0, check_rank, &half);
        for (int i = 0; i < 3; ++i) {
            broadcast(data, twin, seed++);
            broadcast(data, half, seed++);
        }
        MPI_Comm_free(&twin);
        MPI_Comm_free(&half);
        const int mine = left > 0;
        MPI_Allreduce(&mine, &go_on, 1, MPI_INT, MPI_MAX, comm);
    }
    free(data);
    return unused;
}

static void threads(int* argc, char*** argv) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, beside, NULL) != 0) FAIL("no thread");
    usleep(check_rank == 0 ? 20000 : 50000);
    check_start(argc, argv, MPI_THREAD_MULTIPLE);
    initialized = 1;
    pthread_join(thread, NULL);
}

int main(int argc, char** argv) {
    if (!open_session()) return 77;
    if (argc > 1 && strcmp(argv[1], "threads") == 0)
        threads(&argc, &argv);
    else
        nonblocking(&argc, &argv);
    /* The world is as without a session. */
    unsigned char* const data = guarded_new(bytes);
    for (int root = 0; root < check_size; ++root) {
        if (check_rank == root) fill(data, bytes, (unsigned)root);
        MPI_Bcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        verify(data, bytes, (unsigned)root, "the world");
        if (expect_thalweg() && check_size > 1) CHECK(was_accelerated(), "native: %s", last_reason());
    }
    guarded_free(data, bytes);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return check_end();
}
#else
int main(void) {
    printf("skipped: this MPI has no sessions\n");
    return 77;
}
#endif
