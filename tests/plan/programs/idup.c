/* Communicators that MPI_Comm_idup, MPI_Comm_idup_with_info and MPI_Comm_dup_with_info make: used as soon as
 * they are there, beside nonblocking collectives on their parent, with the program's attributes and none of
 * ours, and freed, more of them than may exist at a time. */
#include "check.h"

enum { bytes = 30000, plain = 0, with_info = 1, kinds = 2 };
typedef int IdupWithInfo(MPI_Comm, MPI_Info, MPI_Comm*, MPI_Request*);

static int copies = 0, deletions = 0;
static int key, value = 5;
static IdupWithInfo* idup_with_info; /* MPI 4 */

static int copied(MPI_Comm comm, int k, void* state, void* in, void* out, int* flag) {
    (void)comm, (void)k, (void)state;
    ++copies;
    *(void**)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}
static int deleted(MPI_Comm comm, int k, void* v, void* state) {
    (void)comm, (void)k, (void)v, (void)state;
    ++deletions;
    return MPI_SUCCESS;
}

static void idup(int kind, MPI_Comm parent, MPI_Comm* twin, MPI_Request* request) {
    const int error = kind == with_info ? idup_with_info(parent, MPI_INFO_NULL, twin, request)
                                        : MPI_Comm_idup(parent, twin, request);
    CHECK(error == MPI_SUCCESS, "kind %d of idup failed", kind);
}

/* Blocking, from every rank. */
static void broadcasts(MPI_Comm comm, unsigned seed, const char* what) {
    unsigned char* const data = guarded_new(bytes);
    for (int root = 0; root < check_size; ++root, ++seed) {
        memset(data, poison_value, bytes);
        if (check_rank == root) fill(data, bytes, seed);
        MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
        if (expect_thalweg() && check_size > 1) CHECK(was_accelerated(), "%s: %s", what, last_reason());
        verify(data, bytes, seed, what);
    }
    guarded_free(data, bytes);
}

typedef struct Pending {
    unsigned char* data;
    MPI_Request request;
    unsigned seed;
} Pending;

static Pending post(MPI_Comm comm, int root, unsigned seed, int taken, const char* what) {
    Pending it = {guarded_new(bytes), MPI_REQUEST_NULL, seed};
    if (check_rank == root) fill(it.data, bytes, seed);
    MPI_Ibcast(it.data, bytes, MPI_BYTE, root, comm, &it.request);
    if (expect_thalweg() && check_size > 1 && taken) CHECK(was_accelerated(), "%s: %s", what, last_reason());
    return it;
}
static void arrived(Pending* it, const char* what) {
    CHECK(it->request == MPI_REQUEST_NULL, "%s is not complete", what);
    verify(it->data, bytes, it->seed, what);
    guarded_free(it->data, bytes);
}

/* Ours run on the parent in front of the idup and behind it, and all complete in one call or in either order.
 */
static MPI_Comm beside_parent(int kind, MPI_Comm parent, unsigned seed, int order) {
    MPI_Comm twin = MPI_COMM_NULL;
    MPI_Request requests[3];
    Pending before = post(parent, 0, seed, 1, "a broadcast in front of an idup");
    idup(kind, parent, &twin, &requests[1]);
    Pending after = post(parent, check_size - 1, seed + 1, 1, "a broadcast behind an idup");
    requests[0] = before.request;
    requests[2] = after.request;
    if (order == 0) {
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    } else if (order == 1) {
        for (int i = 0, flag; i < 3; ++i)
            for (flag = 0; !flag;) MPI_Test(&requests[(i + 1) % 3], &flag, MPI_STATUS_IGNORE);
    } else {
        for (int i = 2; i >= 0; --i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    CHECK(requests[1] == MPI_REQUEST_NULL && twin != MPI_COMM_NULL && twin != parent, "no twin");
    before.request = requests[0];
    after.request = requests[2];
    arrived(&before, "a broadcast in front of an idup");
    arrived(&after, "a broadcast behind an idup");
    return twin;
}

static void expect_attribute(MPI_Comm comm, int copied_now, const char* what) {
    void* found = NULL;
    int flag = 0;
    MPI_Comm_get_attr(comm, key, &found, &flag);
    CHECK(flag && found == &value, "%s lacks the program's attribute", what);
    CHECK(copies == copied_now, "%s: the attribute was copied %d times, not %d", what, copies, copied_now);
}

/* The parent and its twin are two: every second rank calls in the other order. */
static void crosswise(MPI_Comm parent, MPI_Comm twin, unsigned seed, int taken) {
    MPI_Comm comms[2] = {parent, twin};
    Pending pending[2];
    for (int i = 0; i < 2; ++i) {
        const int k = (i + check_rank) % 2;
        pending[k] = post(comms[k], k % check_size, seed + (unsigned)k, taken, "a broadcast crosswise");
    }
    for (int i = 0; i < 2; ++i) {
        const int k = (i + check_rank / 2) % 2;
        MPI_Wait(&pending[k].request, MPI_STATUS_IGNORE);
        arrived(&pending[k], "a broadcast crosswise");
    }
}

static void one_kind(int kind, unsigned seed) {
    MPI_Comm parent;
    MPI_Comm_split(MPI_COMM_WORLD, 0, check_rank, &parent);
    MPI_Comm_set_attr(parent, key, &value);
    /* The first is native, and tells the blocking call behind it to set the parent up. */
    Pending first = post(parent, 0, seed, 0, "the first broadcast");
    MPI_Wait(&first.request, MPI_STATUS_IGNORE);
    arrived(&first, "the first broadcast");
    broadcasts(parent, seed, "the parent");
    for (int order = 0; order < 3; ++order, seed += 100) {
        const int copied_before = copies, deleted_before = deletions;
        MPI_Comm twin = beside_parent(kind, parent, seed, order);
        expect_attribute(twin, copied_before + 1, "a twin");
        if (order == 1) crosswise(parent, twin, seed + 10, 0);
        broadcasts(twin, seed + 20, "a twin");
        crosswise(parent, twin, seed + 40, order == 1);
        MPI_Comm grandchild;
        MPI_Request request;
        idup(kind, twin, &grandchild, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (order == 2) { /* the twin goes first, while something runs on it */
            Pending last = post(twin, 0, seed + 60, 0, "a broadcast on what is freed");
            MPI_Comm_free(&twin);
            broadcasts(grandchild, seed + 50, "a twin's twin");
            MPI_Wait(&last.request, MPI_STATUS_IGNORE);
            arrived(&last, "a broadcast on what is freed");
        } else {
            broadcasts(grandchild, seed + 50, "a twin's twin");
            broadcasts(twin, seed + 70, "a twin again");
            MPI_Comm_free(&twin);
        }
        MPI_Comm_free(&grandchild);
        CHECK(copies == copied_before + 2 && deletions == deleted_before + 2,
              "%d copies and %d deletions of two twins' attribute", copies - copied_before,
              deletions - deleted_before);
    }
    MPI_Comm_free(&parent);
}

/* The library's own copy of hints, and what the program wrote into none of them. */
static void dup_with_info(unsigned seed) {
    MPI_Info info;
    MPI_Comm parent, twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Comm_set_attr(parent, key, &value);
    const int copied_before = copies;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "false");
    broadcasts(parent, seed, "the parent of hints");
    CHECK(MPI_Comm_dup_with_info(parent, info, &twin) == MPI_SUCCESS, "MPI_Comm_dup_with_info failed");
    MPI_Info_free(&info);
    expect_attribute(twin, copied_before + 1, "a twin with hints");
    broadcasts(twin, seed + 10, "a twin with hints");
    crosswise(parent, twin, seed + 20, 0);
    MPI_Comm_free(&parent);
    broadcasts(twin, seed + 30, "a twin with hints, alone");
    MPI_Comm_free(&twin);
}

/* Ours must go with the program's: channels are fewer than these. Several are in the making at a time. */
static void many(int rounds) {
    enum { at_once = 4 };
    const int deleted_before = deletions;
    for (int i = 0; i < rounds; ++i) {
        MPI_Comm twins[at_once];
        MPI_Request requests[at_once];
        for (int k = 0; k < at_once; ++k) idup(plain, MPI_COMM_WORLD, &twins[k], &requests[k]);
        MPI_Waitall(at_once, requests, MPI_STATUSES_IGNORE);
        for (int k = at_once; k-- > 0;) broadcasts(twins[k], (unsigned)(100 * i + k), "one of many twins");
        for (int k = 0; k < at_once; ++k) MPI_Comm_free(&twins[k]);
    }
    CHECK(deletions == deleted_before, "an attribute that nobody set was deleted");
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    *(void**)&idup_with_info = dlsym(RTLD_DEFAULT, "MPI_Comm_idup_with_info");
    MPI_Comm_create_keyval(copied, deleted, &key, NULL);
    one_kind(plain, 1000);
    if (idup_with_info != NULL) one_kind(with_info, 2000);
    dup_with_info(3000);
    many(40);
    MPI_Comm_free_keyval(&key);
    return check_end();
}
