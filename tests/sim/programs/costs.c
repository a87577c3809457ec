/* What messages take of a core, by the clock of the process. Ranks of the lower half send to `peers` ranks of
 * the upper one. Argument "plan": a planned alltoallv, as Thalweg runs it under `thalweg run`, and with
 * "puts" behind it one that puts; else what the library does with nonblocking messages. One line of JSON per
 * size and number of peers, in seconds; of every figure the least and the median of the rounds, of which each
 * is a mean of the ranks. send: of an operation that sends. recv: of one that receives what is there already.
 * Where they put, of one that puts to ranks that have said long before that they are ready, and of one that
 * is put to. send_naps, recv_naps: how often it slept in that round. nap: of a wait for messages that come
 * 0.2 ms apart, by how often it slept: with the polling before, and what has come then; 0 where it never
 * does. naps: how often, in one operation. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/resource.h>
#include <thalweg/thalweg.h>

#include "instants.h"

enum { SEND, RECV, NAP, NAPS, FIGURES, SEND_NAPS = FIGURES, RECV_NAPS, ALL };
enum { MOST_RANKS = 16, MOST_BYTES = 4096, ROUNDS = 40 };

static MPI_Comm control;

static double naps(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_nvcsw;
}

static int plan, puts_them, rank, half, bytes, operations;
static char in[MOST_RANKS][MOST_BYTES], out[MOST_RANKS][MOST_BYTES];

/* The peer that is the p-th in turn. */
static int peer_of(int p) { return rank < half ? half + (rank + p) % half : (rank + half - p) % half; }

/* So that what is called a plan was one, over libucp. */
static void expect_plan(void) {
    int (*ask)(thalweg_last_call*, size_t);
    thalweg_last_call last;
    *(void**)&ask = dlsym(RTLD_DEFAULT, "thalweg_get_last_call");
    if (ask == NULL || ask(&last, sizeof last) != THALWEG_OK || !last.accelerated ||
        strcmp(last.transport, "ucx") != 0)
        refuse("the plan is not Thalweg's over libucp");
    if (puts_them && strncmp(last.algorithm, "notify", 6) != 0) refuse("the plan does not put");
}

/* What the next operation moves, long before it begins. */
static void prepare(int peers) {
    ++operations;
    for (int p = 0; p < peers; ++p) {
        const int peer = peer_of(p), sent = letter(rank, peer, operations);
        memset(rank < half ? in[peer] : out[peer], rank < half ? sent : -1, (size_t)bytes);
    }
}

/* Of a core: in at[0] until it is posted, in at[1] until it is over. */
static void operation(MPI_Request* planned, int peers, double* at) {
    MPI_Request requests[MOST_RANKS];
    int count = 0;
    const double begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    if (plan) {
        MPI_Start(planned);
    } else {
        for (int p = 0; p < peers; ++p) {
            const int peer = peer_of(p);
            if (rank < half)
                MPI_Isend(in[peer], bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[count++]);
            else
                MPI_Irecv(out[peer], bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[count++]);
        }
    }
    at[0] = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
    if (plan)
        MPI_Wait(planned, MPI_STATUS_IGNORE);
    else
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    at[1] = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
    for (int p = 0; p < peers && rank >= half; ++p)
        check(out[peer_of(p)], bytes, letter(peer_of(p), rank, operations));
}

int main(int argc, char** argv) {
    int size;
    MPI_Init(&argc, &argv);
    plan = argc > 1 && strcmp(argv[1], "plan") == 0;
    puts_them = plan && argc > 2 && strcmp(argv[2], "puts") == 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Comm_dup(MPI_COMM_WORLD, &control);
    half = size / 2;
    for (int point = 0; point < 4 && half > 1 && size <= MOST_RANKS; ++point) {
        const int peers = point % 2 ? half : 1;
        double figures[FIGURES][ROUNDS][2]; /* and naps of the same operation */
        int sent[MOST_RANKS] = {0}, received[MOST_RANKS] = {0}, places[MOST_RANKS];
        MPI_Request planned = MPI_REQUEST_NULL;
        bytes = point < 2 ? 256 : MOST_BYTES;
        for (int i = 0; i < size; ++i) places[i] = i * MOST_BYTES;
        for (int p = 0; p < peers; ++p) {
            if (rank < half)
                sent[half + (rank + p) % half] = bytes;
            else
                received[(rank + half - p) % half] = bytes;
        }
        if (plan) {
            MPI_Alltoallv_init(in, sent, places, MPI_BYTE, out, received, places, MPI_BYTE, MPI_COMM_WORLD,
                               MPI_INFO_NULL, &planned);
            expect_plan();
        }
        for (int round = -3; round < ROUNDS; ++round) {
            double at[2], mine[ALL] = {0}, sum[ALL];
            prepare(peers);
            double instant = agree_on_instant(control);
            sleep_until((rank < half) != puts_them ? instant : instant + 0.006);
            double before = naps();
            operation(&planned, peers, at);
            mine[rank < half ? SEND : RECV] = at[1] / half;
            mine[rank < half ? SEND_NAPS : RECV_NAPS] = (naps() - before) / half;
            prepare(peers);
            instant = agree_on_instant(control);
            sleep_until(rank < half ? instant + 0.0002 * (rank + 1) : instant);
            before = naps();
            operation(&planned, peers, at);
            if (rank >= half) mine[NAP] = (at[1] - at[0]) / half, mine[NAPS] = (naps() - before) / half;
            MPI_Request request;
            PMPI_Ibarrier(control, &request);
            nap_until_complete(&request);
            PMPI_Allreduce(mine, sum, ALL, MPI_DOUBLE, MPI_SUM, control);
            sum[NAP] = sum[NAPS] > 0 ? sum[NAP] / sum[NAPS] : 0;
            const double beside[FIGURES] = {sum[SEND_NAPS], sum[RECV_NAPS], 0, 0};
            for (int i = 0; i < FIGURES && round >= 0; ++i)
                figures[i][round][0] = sum[i], figures[i][round][1] = beside[i];
        }
        if (rank != 0) continue;
        const char* names[FIGURES] = {"send_seconds", "recv_seconds", "nap_seconds", "naps"};
        printf("{\"bytes\": %d, \"peers\": %d", bytes, peers);
        for (int i = 0; i < FIGURES; ++i) {
            double(*const of)[2] = figures[i];
            qsort(of, ROUNDS, sizeof of[0], ascending); /* by the first of both */
            printf(", \"%s\": [%.7f, %.7f]", names[i], of[0][0], of[ROUNDS / 2][0]);
            if (i == SEND || i == RECV)
                printf(", \"%s\": [%.2f, %.2f]", i == SEND ? "send_naps" : "recv_naps", of[0][1],
                       of[ROUNDS / 2][1]);
        }
        printf("}\n");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
