/* Plans that are not active, never started or complete, beside a null request: what completes any or some of
 * them says what it says of the library's own, and never waits. Beside one that is active they do not count.
 */
#include "check.h"

typedef int BcastInit(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);

enum { bytes = 20000, requests = 3, starts = 8 };
typedef struct {
    int any, tested_any, flag, some, tested_some;
} Said;

static Said ask(MPI_Request* all) {
    Said said = {0, 0, 0, 0, 0};
    int indices[requests];
    MPI_Waitany(requests, all, &said.any, MPI_STATUS_IGNORE);
    MPI_Testany(requests, all, &said.tested_any, &said.flag, MPI_STATUS_IGNORE);
    MPI_Waitsome(requests, all, &said.some, indices, MPI_STATUSES_IGNORE);
    MPI_Testsome(requests, all, &said.tested_some, indices, MPI_STATUSES_IGNORE);
    said.flag = said.flag != 0;
    return said;
}

/* The index of the only one that is active; -1: there were others. */
static int complete(MPI_Request* all, unsigned way) {
    int index = -1, indices[requests] = {-1, -1, -1}, flag = 0, some = 0;
    if (way == 0) MPI_Waitany(requests, all, &index, MPI_STATUS_IGNORE);
    while (way == 1 && !flag) MPI_Testany(requests, all, &index, &flag, MPI_STATUS_IGNORE);
    if (way == 2) MPI_Waitsome(requests, all, &some, indices, MPI_STATUSES_IGNORE);
    while (way == 3 && some == 0) MPI_Testsome(requests, all, &some, indices, MPI_STATUSES_IGNORE);
    return way < 2 ? index : some == 1 ? indices[0] : -1;
}

int main(int argc, char** argv) {
    alarm(100);
    check_start(&argc, &argv, wanted_level());
    BcastInit* bcast_init;
    *(void**)&bcast_init = find_or_skip("MPI_Bcast_init");
    unsigned char* data[2];
    MPI_Request plans[requests], natives[requests];
    plans[1] = natives[1] = MPI_REQUEST_NULL;
    for (int i = 0; i < 2; ++i) {
        data[i] = guarded_new(bytes);
        bcast_init(data[i], bytes, MPI_BYTE, i % check_size, MPI_COMM_WORLD, MPI_INFO_NULL, &plans[2 * i]);
        if (expect_thalweg() && check_size > 1) CHECK(was_accelerated(), "declined: %s", last_reason());
        MPI_Recv_init(NULL, 0, MPI_BYTE, check_rank, 5, MPI_COMM_WORLD, &natives[2 * i]);
    }
    const Said wanted = ask(natives);
    CHECK(wanted.any == MPI_UNDEFINED && wanted.some == MPI_UNDEFINED, "natively: %d, %d", wanted.any,
          wanted.some);
    for (unsigned i = 0; i < starts; ++i) {
        const int which = (int)(i / 4 % 2), root = which % check_size;
        const Said said = ask(plans);
        CHECK(memcmp(&said, &wanted, sizeof said) == 0, "of none that is active: %d, %d %d, %d, %d", said.any,
              said.tested_any, said.flag, said.some, said.tested_some);
        memset(data[which], poison_value, bytes);
        if (check_rank == root) fill(data[which], bytes, i);
        MPI_Start(&plans[2 * which]);
        const int index = complete(plans, i % 4);
        CHECK(index == 2 * which, "the active one is number %d", index);
        verify(data[which], bytes, i, "a plan beside one that is not active");
        CHECK(plans[0] != MPI_REQUEST_NULL && plans[2] != MPI_REQUEST_NULL, "a plan is gone");
    }
    for (int i = 0; i < 2; ++i) {
        MPI_Request_free(&plans[2 * i]);
        MPI_Request_free(&natives[2 * i]);
        guarded_free(data[i], bytes);
    }
    return check_end();
}
