/* A broadcast from the callback that deletes an attribute of the communicator which is freed, on all ranks:
 * the library's, while one before and one after the free are ours. So it is for more communicators than there
 * are channels: none is lost. */
#include "check.h"

enum { bytes = 100000, times = 40 };
static unsigned char data[bytes];
static int deleted, broadcasts;
static MPI_Comm inner = MPI_COMM_NULL;

static void broadcast(MPI_Comm comm, int accelerated) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    const unsigned seed = (unsigned)++broadcasts;
    memset(data, 0, bytes);
    if (rank == 0) fill(data, bytes, seed);
    MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
    verify(data, bytes, seed, "a broadcast");
    CHECK(was_accelerated() == accelerated, "accelerated: %d, %s", was_accelerated(), last_reason());
    if (!accelerated && expect_thalweg())
        CHECK(strstr(last_reason(), "being freed") != NULL, "why: %s", last_reason());
}

static int delete_attribute(MPI_Comm comm, int key, void* value, void* extra) {
    (void)key, (void)value, (void)extra;
    ++deleted;
    broadcast(comm, 0);
    /* Another is freed meanwhile. What is called on a third, and on this one again, is as before. */
    if (inner != MPI_COMM_NULL) MPI_Comm_free(&inner);
    broadcast(MPI_COMM_WORLD, 1);
    broadcast(comm, 0);
    return MPI_SUCCESS;
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_attribute, &key, NULL);
    for (int i = 0; i < times; ++i) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? check_rank : -check_rank, &comm);
        MPI_Comm_set_attr(comm, key, NULL);
        if (i % 4 == 3) {
            MPI_Comm_dup(MPI_COMM_WORLD, &inner);
            broadcast(inner, 1);
        }
        broadcast(comm, 1);
        MPI_Comm_free(&comm);
    }
    CHECK(deleted == times, "%d callbacks", deleted);
    MPI_Comm_free_keyval(&key);
    return check_end();
}
