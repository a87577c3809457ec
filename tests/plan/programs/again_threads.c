/* Two threads repeat exchanges on two neighbourhoods at the same time, with faces whose datatypes both of
 * them use. In between one thread frees a type, and the next one, perhaps with the same handle, has its
 * elements elsewhere: what either communicator has kept of the one before must not serve it. */
#include <pthread.h>

#include "check.h"

enum { rounds = 60, repeats = 3, blocks = 2000, room = 3 * blocks };

static MPI_Datatype face;
static pthread_barrier_t together;

/* One int of every three: another one in each round. */
static int place_of(int round, int block) { return 3 * block + (block * 7 + round) % 3; }

static void make_face(int round) {
    static int lengths[blocks], places[blocks];
    for (int i = 0; i < blocks; ++i) lengths[i] = 1, places[i] = place_of(round, i);
    MPI_Type_indexed(blocks, lengths, places, MPI_INT, &face);
    MPI_Type_commit(&face);
}

static int value(int rank, int thread, int call, int at) {
    return rank * 100000007 + thread * 50000017 + call * 10007 + at;
}

typedef struct {
    MPI_Comm ring;
    int number;
} Thread;

static void* exchange(void* argument) {
    const Thread* const own = argument;
    const int below = (check_rank + check_size - 1) % check_size, ones[1] = {1};
    const MPI_Aint zeros[1] = {0};
    int *const from = malloc(room * sizeof(int)), *const to = malloc(room * sizeof(int));
    for (int round = 0; round < rounds; ++round) {
        if (pthread_barrier_wait(&together) == PTHREAD_BARRIER_SERIAL_THREAD) make_face(round);
        pthread_barrier_wait(&together);
        for (int call = round * repeats; call < (round + 1) * repeats; ++call) {
            for (int i = 0; i < room; ++i) from[i] = value(check_rank, own->number, call, i), to[i] = -1;
            MPI_Request request = MPI_REQUEST_NULL;
            const uint64_t seen = looked_at();
            if (call % 2 == 0)
                MPI_Neighbor_alltoallw(from, ones, zeros, &face, to, ones, zeros, &face, own->ring);
            else
                MPI_Ineighbor_alltoallw(from, ones, zeros, &face, to, ones, zeros, &face, own->ring,
                                        &request);
            if (expect_thalweg() && (looked_at() == seen || !was_accelerated()))
                FAIL("call %d: %s", call, last_reason());
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            int written = 0;
            for (int i = 0; i < room; ++i) written += to[i] != -1;
            if (written != blocks) FAIL("call %d wrote %d ints", call, written);
            for (int i = 0; i < blocks; ++i) {
                const int at = place_of(round, i);
                if (to[at] != value(below, own->number, call, at))
                    FAIL("call %d: int %d is wrong: byte %d", call, i, 4 * at);
            }
        }
        if (pthread_barrier_wait(&together) == PTHREAD_BARRIER_SERIAL_THREAD) MPI_Type_free(&face);
    }
    free(from);
    free(to);
    return NULL;
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    const int below = (check_rank + check_size - 1) % check_size, above = (check_rank + 1) % check_size;
    Thread threads[2];
    for (int i = 0; i < 2; ++i) {
        threads[i].number = i;
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &below, MPI_UNWEIGHTED, 1, &above, MPI_UNWEIGHTED,
                                       MPI_INFO_NULL, 0, &threads[i].ring);
    }
    pthread_barrier_init(&together, NULL, 2);
    pthread_t other;
    pthread_create(&other, NULL, exchange, &threads[1]);
    exchange(&threads[0]);
    pthread_join(other, NULL);
    check_count += 2 * rounds * repeats;
    for (int i = 0; i < 2; ++i) MPI_Comm_free(&threads[i].ring);
    return check_end();
}
