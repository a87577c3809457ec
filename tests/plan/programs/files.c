/* MPI_Waitall for a broadcast of ours and a collective file operation of the library's: in MPICH the latter
 * goes on only while somebody tests it, and here the broadcast waits for a rank that waits for the file. */
#include "check.h"

enum { bytes = 1000, values = 64, rounds = 3 };

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    static unsigned char data[bytes];
    int out[values], in[values];
    char name[256];
    MPI_File file;
    MPI_Datatype stripes;
    MPI_Request requests[2];
    snprintf(name, sizeof name, "%s.data", argv[0]);
    MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file) == MPI_SUCCESS, "no file %s", name);
    /* Interleaved, so that ranks have to tell each other what to write. */
    MPI_Type_vector(values, 1, check_size, MPI_INT, &stripes);
    MPI_Type_commit(&stripes);
    MPI_File_set_view(file, (MPI_Offset)sizeof(int) * check_rank, MPI_INT, stripes, "native", MPI_INFO_NULL);
    for (int round = 0; round < rounds; ++round) {
        const int root = check_size - 1;
        for (int i = 0; i < values; ++i) out[i] = 1000 * round + 100 * check_rank + i;
        memset(data, poison_value, bytes);
        if (check_rank == root) fill(data, bytes, (unsigned)round);
        MPI_File_iwrite_at_all(file, 0, out, values, MPI_INT, &requests[1]);
        if (check_rank == root) MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Ibcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD, &requests[0]);
        if (expect_thalweg() && check_size > 1) CHECK(was_accelerated(), "declined: %s", last_reason());
        MPI_Status statuses[2];
        MPI_Waitall(2, requests, statuses);
        CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL, "a request is left");
        if (check_rank != root) {
            int count = 0;
            MPI_Get_count(&statuses[1], MPI_INT, &count);
            CHECK(count == values, "the file operation wrote %d values", count);
        }
        verify(data, bytes, (unsigned)round, "a broadcast beside a file operation");
        MPI_File_sync(file);
        MPI_File_read_at_all(file, 0, in, values, MPI_INT, MPI_STATUS_IGNORE);
        CHECK(memcmp(in, out, sizeof in) == 0, "the file holds something else in round %d", round);
    }
    MPI_File_close(&file);
    MPI_Type_free(&stripes);
    return check_end();
}
