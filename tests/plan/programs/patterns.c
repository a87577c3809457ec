/* Two communicators whose neighbours exchange different things, for the report: four ranks, of which 0 and 1,
 * 2 and 3 share a host.
 *
 *   "faces", a grid of 2 x 2: 10 exchanges, of large faces inside the hosts and small strided ones between
 *   an unnamed distributed graph: 5 exchanges of blocks of one middling size with the same neighbours
 *
 *     patterns            these two
 *     patterns plan       these two, and 3 starts of a plan on the graph, where the library has plans
 *     patterns many N     N unnamed grids, one after the other: an exchange of small faces on each
 *     patterns kept N     the same, none of which is freed
 */
#include "check.h"

enum { large = 512 * 1024, small = 1024, middling = 256 * 1024, gap = 24, rows = 16 };

typedef int AlltoallInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                         MPI_Request*);

static AlltoallInit* find(const char* name) {
    AlltoallInit* function;
    *(void**)&function = dlsym(RTLD_DEFAULT, name);
    return function;
}

/* Of what `from` sends to `to`. */
static unsigned seed_of(int from, int to, int round) { return (unsigned)(from * 977 + to * 131 + round * 7); }

/* Rank 0, which reports, has to wait for the others. */
static void come_late(void) {
    if (check_rank != 0) usleep(50000);
}

static MPI_Comm make_grid(const char* name) {
    const int dims[2] = {2, 2}, periods[2] = {0, 0};
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    if (name != NULL) MPI_Comm_set_name(grid, name);
    return grid;
}

/* Small faces are rows with gaps between them, in memory and so on the way between hosts. */
static void exchange_faces(MPI_Comm grid, int inside, int rounds) {
    const int across_peer = check_rank ^ 2, inside_peer = check_rank ^ 1;
    const int across_room = rows * (small / rows + gap);
    unsigned char* const send = malloc((size_t)(across_room + inside));
    unsigned char* const receive = malloc((size_t)(across_room + inside));
    unsigned char packed[small];
    MPI_Datatype face;
    MPI_Type_vector(rows, small / rows, small / rows + gap, MPI_BYTE, &face);
    MPI_Type_commit(&face);
    /* Blocks: down and up the first dimension, of which one is beyond the border, then the second. */
    int peers[4];
    for (int d = 0; d < 2; ++d) MPI_Cart_shift(grid, d, 1, &peers[2 * d], &peers[2 * d + 1]);
    int counts[4];
    MPI_Aint places[4];
    MPI_Datatype types[4];
    for (int block = 0; block < 4; ++block) {
        const int across = block < 2;
        CHECK(peers[block] == MPI_PROC_NULL || peers[block] == (across ? across_peer : inside_peer),
              "block %d is rank %d's", block, peers[block]);
        types[block] = across ? face : MPI_BYTE;
        counts[block] = across ? 1 : inside;
        places[block] = across ? 0 : across_room;
    }
    for (int round = 0; round < rounds; ++round) {
        memset(receive, poison_value, (size_t)(across_room + inside));
        fill(packed, small, seed_of(check_rank, across_peer, round));
        for (int row = 0; row < rows; ++row)
            memcpy(send + row * (small / rows + gap), packed + row * (small / rows), small / rows);
        fill(send + across_room, (size_t)inside, seed_of(check_rank, inside_peer, round));
        MPI_Request request;
        if (round == 0 && inside == large) come_late();
        MPI_Ineighbor_alltoallw(send, counts, places, types, receive, counts, places, types, grid, &request);
        if (expect_thalweg()) CHECK(was_accelerated(), "round %d: %s", round, last_reason());
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int row = 0; row < rows; ++row)
            memcpy(packed + row * (small / rows), receive + row * (small / rows + gap), small / rows);
        verify(packed, small, seed_of(across_peer, check_rank, round), "a small face");
        verify(receive + across_room, (size_t)inside, seed_of(inside_peer, check_rank, round), "a face");
    }
    MPI_Type_free(&face);
    free(send);
    free(receive);
}

/* The same for both neighbours. */
static void exchange_in_graph(int rounds, int starts) {
    const int peers[2] = {check_rank ^ 2, check_rank ^ 1}, weights[2] = {1, 1};
    MPI_Comm graph;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, peers, weights, 2, peers, weights, MPI_INFO_NULL, 0,
                                   &graph);
    unsigned char* const send = malloc(2 * middling);
    unsigned char* const receive = malloc(2 * middling);
    for (int round = 0; round < rounds; ++round) {
        memset(receive, poison_value, 2 * middling);
        for (int i = 0; i < 2; ++i) fill(send + i * middling, middling, seed_of(check_rank, peers[i], round));
        MPI_Request request;
        if (round == 0) come_late();
        MPI_Ineighbor_alltoall(send, middling, MPI_BYTE, receive, middling, MPI_BYTE, graph, &request);
        if (expect_thalweg()) CHECK(was_accelerated(), "round %d of the graph: %s", round, last_reason());
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2; ++i)
            verify(receive + i * middling, middling, seed_of(peers[i], check_rank, round), "in the graph");
    }
    AlltoallInit* const alltoall_init = starts == 0 ? NULL : find("MPI_Neighbor_alltoall_init");
    MPI_Request plan = MPI_REQUEST_NULL;
    if (alltoall_init != NULL)
        alltoall_init(send, middling, MPI_BYTE, receive, middling, MPI_BYTE, graph, MPI_INFO_NULL, &plan);
    for (int round = 0; alltoall_init != NULL && round < starts; ++round) {
        memset(receive, poison_value, 2 * middling);
        for (int i = 0; i < 2; ++i)
            fill(send + i * middling, middling, seed_of(check_rank, peers[i], 100 + round));
        MPI_Start(&plan);
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2; ++i)
            verify(receive + i * middling, middling, seed_of(peers[i], check_rank, 100 + round),
                   "by the plan");
    }
    if (plan != MPI_REQUEST_NULL) MPI_Request_free(&plan);
    free(send);
    free(receive);
    MPI_Comm_free(&graph);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    CHECK(check_size == 4, "%d ranks", check_size);
    if (argc > 2) {
        const int grids = atoi(argv[2]), kept = strcmp(argv[1], "kept") == 0;
        MPI_Comm* const all = malloc((size_t)grids * sizeof *all);
        for (int i = 0; i < grids; ++i) {
            all[i] = make_grid(NULL);
            exchange_faces(all[i], small, 1);
            if (!kept) MPI_Comm_free(&all[i]);
        }
        free(all);
        return check_end();
    }
    MPI_Comm grid = make_grid("faces");
    exchange_faces(grid, large, 10);
    exchange_in_graph(5, argc > 1 ? 3 : 0);
    MPI_Comm_free(&grid);
    return check_end();
}
