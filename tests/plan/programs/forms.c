/* The younger forms of what collectives and persistent check: counts of MPI_Count, nonblocking and
 * persistent, and MPI_Request_get_status_all, _any and _some, which free nothing, make ours progress, and
 * never say "complete" before the data is there. Skipped where the library has neither. */
#include "check.h"

typedef int IbcastC(void*, MPI_Count, MPI_Datatype, int, MPI_Comm, MPI_Request*);
typedef int IallgatherC(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm,
                        MPI_Request*);
typedef int IallgathervC(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
                         MPI_Datatype, MPI_Comm, MPI_Request*);
typedef int IallreduceC(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
typedef int AllgatherInitC(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm,
                           MPI_Info, MPI_Request*);
typedef int AllgathervInitC(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
                            MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
typedef int AllreduceInitC(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                           MPI_Request*);
typedef int StatusAll(int, const MPI_Request*, int*, MPI_Status*);
typedef int StatusAny(int, const MPI_Request*, int*, int*, MPI_Status*);
typedef int StatusSome(int, const MPI_Request*, int*, int*, MPI_Status*);

enum { most_ranks = 8, count = 7001 };
static int own[count], all[most_ranks * 2 * count], message[count], sum[count];

static void* find(const char* name) { return dlsym(RTLD_DEFAULT, name); }

static void expect_ours(const char* what) {
    if (expect_thalweg() && check_size > 1) CHECK(was_accelerated(), "%s: %s", what, last_reason());
}

static int value(int rank, int i, int round) { return 10000 * rank + i + 77 * round; }

static void clear(int round) {
    for (int i = 0; i < count; ++i) {
        own[i] = value(check_rank, i, round);
        message[i] = check_rank == 0 ? value(3, i, round) : -1;
        sum[i] = -1;
    }
    for (int i = 0; i < most_ranks * 2 * count; ++i) all[i] = -1;
}
static void check_message(int round) {
    for (int i = 0; i < count; ++i)
        CHECK(message[i] == value(3, i, round), "round %d, a broadcast: byte %d is wrong", round, 4 * i);
}
static void check_sum(int round) {
    for (int i = 0; i < count; ++i) {
        int wanted = 0;
        for (int rank = 0; rank < check_size; ++rank) wanted += value(rank, i, round);
        CHECK(sum[i] == wanted, "round %d, a sum: byte %d is wrong", round, 4 * i);
    }
}
/* Block `rank` has `counts[rank]` ints at `places[rank]`, and nothing lies between blocks. */
static void check_blocks(int round, const MPI_Count* counts, const MPI_Aint* places) {
    for (int rank = 0; rank < check_size; ++rank) {
        for (int i = 0; i < (int)counts[rank]; ++i)
            CHECK(all[places[rank] + i] == value(rank, i, round), "round %d, block %d: byte %d is wrong",
                  round, rank, 4 * i);
        CHECK(all[places[rank] + counts[rank]] == -1, "round %d: behind block %d", round, rank);
    }
}

/* Blocks of `count` ints each, one behind the other. */
static void check_rows(int round) {
    for (int rank = 0; rank < check_size; ++rank)
        for (int i = 0; i < count; ++i)
            CHECK(all[rank * count + i] == value(rank, i, round), "round %d, block %d: byte %d is wrong",
                  round, rank, 4 * i);
}

static MPI_Count counts[most_ranks];
static MPI_Aint places[most_ranks];
static void lay_out(void) {
    for (int rank = 0; rank < check_size; ++rank) {
        counts[rank] = count - 900 * rank;
        places[rank] = (MPI_Aint)rank * 2 * count;
    }
}

static void nonblocking(void) {
    IbcastC* const ibcast = (IbcastC*)find("MPI_Ibcast_c");
    IallgatherC* const iallgather = (IallgatherC*)find("MPI_Iallgather_c");
    IallgathervC* const iallgatherv = (IallgathervC*)find("MPI_Iallgatherv_c");
    IallreduceC* const iallreduce = (IallreduceC*)find("MPI_Iallreduce_c");
    MPI_Request requests[3];
    for (int round = 0; round < 3; ++round) {
        clear(round);
        ibcast(message, count, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
        expect_ours("MPI_Ibcast_c");
        iallreduce(own, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
        expect_ours("MPI_Iallreduce_c");
        iallgatherv(own, counts[check_rank], MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD,
                    &requests[2]);
        expect_ours("MPI_Iallgatherv_c");
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        check_message(round);
        check_sum(round);
        check_blocks(round, counts, places);
        clear(round);
        iallgather(own, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD, &requests[0]);
        expect_ours("MPI_Iallgather_c");
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        check_rows(round);
    }
}

static void persistent(void) {
    AllgatherInitC* const allgather = (AllgatherInitC*)find("MPI_Allgather_init_c");
    AllgathervInitC* const allgatherv = (AllgathervInitC*)find("MPI_Allgatherv_init_c");
    AllreduceInitC* const allreduce = (AllreduceInitC*)find("MPI_Allreduce_init_c");
    MPI_Request plans[2], rest;
    allgatherv(own, counts[check_rank], MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
               &plans[0]);
    expect_ours("MPI_Allgatherv_init_c");
    allreduce(own, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &plans[1]);
    expect_ours("MPI_Allreduce_init_c");
    for (int round = 0; round < 3; ++round) {
        clear(round);
        MPI_Startall(2, plans);
        MPI_Waitall(2, plans, MPI_STATUSES_IGNORE);
        check_blocks(round, counts, places);
        check_sum(round);
    }
    for (int i = 0; i < 2; ++i) MPI_Request_free(&plans[i]);
    allgather(own, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &rest);
    expect_ours("MPI_Allgather_init_c");
    for (int round = 0; round < 3; ++round) {
        clear(round);
        MPI_Start(&rest);
        MPI_Wait(&rest, MPI_STATUS_IGNORE);
        check_rows(round);
    }
    MPI_Request_free(&rest);
}

/* Requests 0 and 1 are ours, 2 is a receive that nobody matches until the end. Which of the first two are
 * complete, as the call says it. */
enum { by_all, by_any, by_some, ways };
static int complete_of(int way, const MPI_Request* requests) {
    static StatusAll* ask_all;
    static StatusAny* ask_any;
    static StatusSome* ask_some;
    MPI_Status states[3];
    int flag = 0, index = -1, some = 0, indices[3];
    if (ask_all == NULL) {
        ask_all = (StatusAll*)find("MPI_Request_get_status_all");
        ask_any = (StatusAny*)find("MPI_Request_get_status_any");
        ask_some = (StatusSome*)find("MPI_Request_get_status_some");
    }
    if (way == by_all) {
        ask_all(3, requests, &flag, MPI_STATUSES_IGNORE);
        CHECK(!flag, "all are complete, and one is not");
        ask_all(2, requests, &flag, states);
        return flag ? 3 : 0;
    }
    if (way == by_any) {
        ask_any(3, requests, &index, &flag, &states[0]);
        CHECK(!flag || index == 0 || index == 1, "request %d is complete", index);
        return flag ? 1 << index : 0;
    }
    ask_some(3, requests, &some, indices, states);
    int complete = 0;
    for (int i = 0; i < some; ++i) {
        CHECK(indices[i] == 0 || indices[i] == 1, "request %d is complete", indices[i]);
        complete |= 1 << indices[i];
    }
    return complete;
}

static void statuses(void) {
    const int last = check_size - 1;
    for (int round = 0; round < 2 * ways; ++round) {
        const int way = round % ways;
        MPI_Request requests[3], before[3];
        int number = -1;
        clear(round);
        MPI_Irecv(&number, 1, MPI_INT, check_rank, 7, MPI_COMM_WORLD, &requests[2]);
        /* The last rank comes when the others have asked in vain. */
        for (int rank = 0; rank < last && check_rank == last; ++rank)
            MPI_Recv(NULL, 0, MPI_BYTE, rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Iallreduce(own, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
        expect_ours("a sum that is asked about");
        MPI_Iallgather(own, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD, &requests[1]);
        expect_ours("an allgather that is asked about");
        if (check_rank != last) {
            for (int i = 0; i < 20; ++i) CHECK(complete_of(way, requests) == 0, "complete before all came");
            MPI_Send(NULL, 0, MPI_BYTE, last, 6, MPI_COMM_WORLD);
        }
        memcpy(before, requests, sizeof before);
        int complete = 0;
        while (complete == 0) complete = complete_of(way, requests);
        if (complete & 1) check_sum(round);
        if (complete & 2) check_rows(round);
        CHECK(memcmp(before, requests, sizeof before) == 0, "a request has changed");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_sum(round);
        MPI_Send(&round, 1, MPI_INT, check_rank, 7, MPI_COMM_WORLD);
        MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    CHECK(check_size <= most_ranks, "%d ranks", check_size);
    const int counted = find("MPI_Allreduce_init_c") != NULL,
              asked = find("MPI_Request_get_status_any") != NULL;
    MPI_Request request;
    MPI_Ibcast(own, 1, MPI_INT, 0, MPI_COMM_WORLD, &request); /* asks for the set-up */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    lay_out();
    if (counted) nonblocking();
    /* Native plans of some libraries are wrong (collectives.c). */
    if (counted && expect_thalweg() && check_size > 1) persistent();
    if (asked) statuses();
    if (!counted && !asked) SKIP("this MPI has none of these forms");
    if (check_rank == 0 && !counted) printf("not looked at: counts of MPI_Count, which this MPI lacks\n");
    if (check_rank == 0 && !asked)
        printf("not looked at: MPI_Request_get_status_any, which this MPI lacks\n");
    return check_end();
}
