/* MPI_Waitall for operations of ours beside what the library may have in the same array: its own persistent
 * collectives, messages, null and inactive requests. One rank comes late, so that all of them are looked at
 * before they end; each status says what its request had to say. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

#include "check.h"

typedef int ScanInit(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request*);

enum { bytes = 20000, rounds = 4, tag = 7, kinds = 6 };

/* The root, for whom a broadcast and a scan both wait. */
static void come_late(int root) {
    const struct timespec pause = {0, 30000000}; /* longer than the first look at the others */
    if (check_rank == root) nanosleep(&pause, NULL);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    static unsigned char data[bytes], message[bytes], sent[bytes];
    int mine = 0, total = 0;
    const int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    MPI_Request sum, inactive;
    /* Ours sets the communicator up. */
    MPI_Request first;
    MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &first);
    MPI_Wait(&first, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    ScanInit* scan_init = NULL; /* not in older libraries */
    *(void**)&scan_init = dlsym(RTLD_DEFAULT, "MPI_Scan_init");
    sum = MPI_REQUEST_NULL;
    if (scan_init != NULL) scan_init(&mine, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &sum);
    MPI_Recv_init(message, bytes, MPI_BYTE, left, tag + 1, MPI_COMM_WORLD, &inactive);
    for (int round = 0; round < rounds; ++round) {
        const int root = round / 2 % 2, length = 10 + round;
        memset(data, poison_value, bytes);
        memset(message, poison_value, bytes);
        if (check_rank == root) fill(data, bytes, (unsigned)round);
        fill(sent, bytes, 100u + (unsigned)round);
        mine = check_rank + 1 + round;
        come_late(root);
        MPI_Request requests[kinds] = {MPI_REQUEST_NULL, sum, inactive};
        if (sum != MPI_REQUEST_NULL) MPI_Start(&requests[1]);
        MPI_Irecv(message, bytes, MPI_BYTE, left, tag, MPI_COMM_WORLD, &requests[3]);
        MPI_Isend(sent, length, MPI_BYTE, right, tag, MPI_COMM_WORLD, &requests[4]);
        MPI_Ibcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD, &requests[5]);
        if (expect_thalweg() && check_size > 1) CHECK(was_accelerated(), "declined: %s", last_reason());
        MPI_Status statuses[kinds];
        const int ignored = round % 2;
        const int error = MPI_Waitall(kinds, requests, ignored ? MPI_STATUSES_IGNORE : statuses);
        CHECK(error == MPI_SUCCESS, "MPI_Waitall returned %d in round %d", error, round);
        CHECK(requests[1] == sum && requests[2] == inactive, "a persistent request is gone");
        for (int i = 0; i < kinds; ++i)
            CHECK(i == 1 || i == 2 || requests[i] == MPI_REQUEST_NULL, "request %d is left", i);
        int count = 0;
        if (!ignored) {
            MPI_Get_count(&statuses[3], MPI_BYTE, &count);
            CHECK(count == length && statuses[3].MPI_SOURCE == left && statuses[3].MPI_TAG == tag,
                  "the status says %d bytes from %d under %d", count, statuses[3].MPI_SOURCE,
                  statuses[3].MPI_TAG);
            for (int i = 0; i < 3; i += 2) {
                MPI_Get_count(&statuses[i], MPI_BYTE, &count);
                CHECK(count == 0 && statuses[i].MPI_SOURCE == MPI_ANY_SOURCE, "status %d is not empty", i);
            }
        }
        int wanted = 0;
        for (int rank = 0; rank <= check_rank; ++rank) wanted += rank + 1 + round;
        CHECK(sum == MPI_REQUEST_NULL || total == wanted, "the scan gives %d in the place of %d", total,
              wanted);
        verify(message, (size_t)length, 100u + (unsigned)round, "a message beside a broadcast");
        verify(data, bytes, (unsigned)round, "a broadcast beside others");
    }
    if (sum != MPI_REQUEST_NULL) MPI_Request_free(&sum);
    MPI_Request_free(&inactive);
    return check_end();
}
