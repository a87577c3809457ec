/* Faces of grids whose mix changes in mid-run: which of them are large, who comes late, who is whose
 * neighbour. Faces are strided on both sides, with other strides; every byte of a face and between its rows
 * is checked.
 *
 *     halo PHASES          one letter per phase:
 *       c   large faces inside hosts, small ones between them
 *       w   larger ones between hosts
 *       s   rows of 8 bytes
 *       l   one rank comes late, another one at each exchange
 *       g   another grid: a ring
 *       a   8 MiB in the first dimension of the grid, which lies between hosts, 64 KiB in the last one
 *       A   the same on a grid whose first dimension is the other one's last
 *       h   in a lab: faces of 4 MiB inside hosts, of 64 KiB between them
 *       H   the same while the links have a fortieth of their rate
 *       L   the same while one rank comes late, another one at each exchange
 *       d   faces that are sent lie in memory that all ranks have mapped (MPI_Win_allocate_shared)
 *       m   they lie in what MPI_Alloc_mem gives, and it is told whether all ranks have that mapped
 *       t   blocking calls only: those of the trial are taken, THALWEG_TEST_TAKEN=trial says
 *       k   a rank is killed in the middle (ended.py says what must become of the job)
 *
 * Ranks 0 and 1, 2 and 3 … are each other's neighbours in the last dimension of the grid.
 */
#include <unistd.h>

#include "check.h"

typedef int AlltoallwInit(const void*, const int*, const MPI_Aint*, const MPI_Datatype*, void*, const int*,
                          const MPI_Aint*, const MPI_Datatype*, MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallwInit* alltoallw_init;

/* Rows of `row` bytes, `gap` bytes between them. */
typedef struct {
    int rows, row, gap;
} Shape;

enum { dimensions = 2, neighbours = 2 * dimensions };

typedef struct {
    MPI_Comm comm;
    int rank, peers[neighbours];
    Shape shapes[neighbours];
    int send_gaps[neighbours];
    int counts[neighbours];
    MPI_Aint sent_at[neighbours], received_at[neighbours];
    MPI_Datatype sent[neighbours], received[neighbours];
    size_t send_bytes, receive_bytes;
    unsigned char *send, *receive;
    enum { own, window, allocated } memory; /* of what is sent */
    MPI_Win shared;                         /* or MPI_WIN_NULL */
} Halo;

typedef enum { square, ring, turned, grids } Grid;
static MPI_Comm make_grid(Grid grid) {
    static const char* const names[grids] = {"square", "ring", "turned"};
    int dims[dimensions] = {check_size / 2, 2}, periods[dimensions] = {0, 0};
    if (grid == ring || check_size % 2 != 0) dims[0] = check_size, dims[1] = 1, periods[0] = 1;
    MPI_Comm ordered = MPI_COMM_WORLD, comm;
    if (grid == turned && check_size % 2 == 0) {
        dims[0] = 2, dims[1] = check_size / 2;
        MPI_Comm_split(MPI_COMM_WORLD, 0, check_rank % 2 * check_size + check_rank, &ordered);
    }
    MPI_Cart_create(ordered, dimensions, dims, periods, 0, &comm);
    MPI_Comm_set_name(comm, names[grid]);
    if (ordered != MPI_COMM_WORLD) MPI_Comm_free(&ordered);
    return comm;
}

static size_t extent_of(Shape shape, int gap) {
    return (size_t)shape.rows * (size_t)(shape.row + gap) + guard_bytes;
}

static MPI_Datatype type_of(Shape shape, int gap) {
    MPI_Datatype type;
    MPI_Type_vector(shape.rows, shape.row, shape.row + gap, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

/* The number of the file that `memory` is mapped from together with others; 0: there is none. And whether
 * this process has mapped the file `wanted`. */
static unsigned long file_of(const void* memory, unsigned long wanted, int* has) {
    char line[512];
    unsigned long found = 0;
    FILE* const maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long begin, end, inode;
        char rights[5];
        if (sscanf(line, "%lx-%lx %4s %*s %*s %lu", &begin, &end, rights, &inode) != 4) continue;
        if (rights[3] != 's' || inode == 0) continue;
        if ((uintptr_t)memory >= begin && (uintptr_t)memory < end) found = inode;
        *has |= inode == wanted;
    }
    fclose(maps);
    return found;
}
/* What a process shares with its host has a ring for each rank there, and none for others: of 128 KiB, or of
 * 512 where ranks share cores. */
static void check_rings(unsigned long ranks_of_host) {
    const unsigned long shorter = 128 * 1024, longer = 512 * 1024;
    char line[512];
    FILE* const maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long begin, end;
        if (strstr(line, "/memfd:thalweg") == NULL || sscanf(line, "%lx-%lx", &begin, &end) != 2) continue;
        const unsigned long bytes = end - begin;
        const int is_long = bytes > ranks_of_host * longer && bytes < (ranks_of_host + 1) * longer;
        CHECK(bytes < (ranks_of_host + 1) * shorter || is_long, "%lu bytes are shared with %lu ranks", bytes,
              ranks_of_host);
    }
    fclose(maps);
}
/* Whether the memory of each rank lies in a file that all of them have mapped. */
static int is_mapped_by_all(const void* memory) {
    unsigned long files[64];
    int has = 0, all = 1;
    const unsigned long mine = file_of(memory, 0, &has);
    CHECK(check_size <= 64, "at most 64 ranks");
    MPI_Allgather(&mine, 1, MPI_UNSIGNED_LONG, files, 1, MPI_UNSIGNED_LONG, MPI_COMM_WORLD);
    for (int rank = 0; rank < check_size; ++rank) {
        has = 0;
        file_of(memory, files[rank], &has);
        all &= files[rank] != 0 && has;
    }
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

static void get_memory(Halo* halo) {
    const MPI_Aint bytes = (MPI_Aint)halo->send_bytes;
    if (halo->memory == window) {
        MPI_Comm host;
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
        MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, host, &halo->send, &halo->shared);
        MPI_Comm_free(&host);
    } else if (halo->memory == allocated) {
        MPI_Alloc_mem(bytes, MPI_INFO_NULL, &halo->send);
        const int mapped = is_mapped_by_all(halo->send);
        if (check_rank == 0) printf("what MPI_Alloc_mem gives is mapped by %s\n", mapped ? "all" : "one");
    } else {
        halo->send = guarded_new(halo->send_bytes);
    }
}
static void give_memory_back(Halo* halo) {
    if (halo->memory == window)
        MPI_Win_free(&halo->shared);
    else if (halo->memory == allocated)
        MPI_Free_mem(halo->send);
    else
        guarded_free(halo->send, halo->send_bytes);
}

static void open_halo(Halo* halo, MPI_Comm comm, Shape across, Shape inside, char letter) {
    memset(halo, 0, sizeof *halo);
    halo->comm = comm;
    MPI_Comm_rank(comm, &halo->rank);
    halo->memory = letter == 'd' ? window : letter == 'm' ? allocated : own;
    halo->shared = MPI_WIN_NULL;
    for (int d = 0; d < dimensions; ++d)
        MPI_Cart_shift(comm, d, 1, &halo->peers[2 * d], &halo->peers[2 * d + 1]);
    for (int block = 0; block < neighbours; ++block) {
        const Shape shape = block < 2 ? across : inside;
        halo->shapes[block] = shape;
        halo->send_gaps[block] = halo->memory != own ? 0 : 24 * (block % 3);
        halo->counts[block] = 1;
        halo->sent_at[block] = (MPI_Aint)halo->send_bytes;
        halo->received_at[block] = (MPI_Aint)halo->receive_bytes;
        halo->sent[block] = type_of(shape, halo->send_gaps[block]);
        halo->received[block] = type_of(shape, shape.gap);
        halo->send_bytes += extent_of(shape, halo->send_gaps[block]);
        halo->receive_bytes += extent_of(shape, shape.gap);
    }
    get_memory(halo);
    halo->receive = guarded_new(halo->receive_bytes);
}

static void close_halo(Halo* halo) {
    for (int block = 0; block < neighbours; ++block) {
        MPI_Type_free(&halo->sent[block]);
        MPI_Type_free(&halo->received[block]);
    }
    give_memory_back(halo);
    guarded_free(halo->receive, halo->receive_bytes);
}

/* Of what rank `rank` sends as its block `block`. */
static unsigned seed_of(int rank, int block, int round) {
    return (unsigned)(rank * 977 + block * 131 + round * 7);
}
static unsigned char byte_of(unsigned seed, int row, int i) {
    return (unsigned char)(seed + (unsigned)row * 29u + (unsigned)i * 5u + (unsigned)(i >> 8));
}

static void prepare(Halo* halo, int round) {
    memset(halo->receive, poison_value, halo->receive_bytes);
    for (int block = 0; block < neighbours; ++block) {
        const Shape shape = halo->shapes[block];
        const unsigned seed = seed_of(halo->rank, block, round);
        for (int row = 0; row < shape.rows; ++row) {
            unsigned char* const at = halo->send + halo->sent_at[block] +
                                      (size_t)row * (size_t)(shape.row + halo->send_gaps[block]);
            for (int i = 0; i < shape.row; ++i) at[i] = byte_of(seed, row, i);
        }
    }
}

static void examine(const Halo* halo, int round, const char* what) {
    for (int block = 0; block < neighbours; ++block) {
        const Shape shape = halo->shapes[block];
        const int known = halo->peers[block] != MPI_PROC_NULL;
        /* What went up comes from below. */
        const unsigned seed = seed_of(halo->peers[block], block ^ 1, round);
        const unsigned char* at = halo->receive + halo->received_at[block];
        for (int row = 0; row < shape.rows; ++row, at += shape.row + shape.gap) {
            for (int i = 0; i < shape.row; ++i) {
                const unsigned char right = known ? byte_of(seed, row, i) : poison_value;
                if (at[i] != right)
                    FAIL("%s, round %d: face %d, row %d: byte %d is wrong: %02x, not %02x", what, round,
                         block, row, i, at[i], right);
            }
            for (int i = shape.row; i < shape.row + shape.gap; ++i)
                if (at[i] != poison_value) FAIL("%s: byte %d behind row %d is wrong", what, i, row);
        }
        ++check_count;
    }
    guarded_check(halo->receive, halo->receive_bytes);
}

static void expect_taken(const char* what) {
    const char* const taken = getenv("THALWEG_TEST_TAKEN");
    if (taken == NULL || strcmp(taken, "1") != 0 || !expect_thalweg()) return;
    CHECK(was_accelerated(), "%s: %s", what, last_reason());
}

static void exchange_blocking(Halo* halo) {
    MPI_Neighbor_alltoallw(halo->send, halo->counts, halo->sent_at, halo->sent, halo->receive, halo->counts,
                           halo->received_at, halo->received, halo->comm);
}

typedef enum { anyhow, together, one_late } Arrival;
/* The next exchange begins. */
static void arrive(Arrival arrival, int round) {
    if (arrival == together) MPI_Barrier(MPI_COMM_WORLD);
    if (arrival == one_late && round % check_size == check_rank) usleep(15000);
}

static void phase(Halo* halo, int rounds, Arrival arrival, int dies) {
    MPI_Request plan = MPI_REQUEST_NULL;
    for (int round = 0; round < rounds; ++round) {
        prepare(halo, round);
        arrive(arrival, round);
        exchange_blocking(halo);
        examine(halo, round, "blocking");
        MPI_Request request;
        prepare(halo, round + 100);
        arrive(arrival, round + 1);
        MPI_Ineighbor_alltoallw(halo->send, halo->counts, halo->sent_at, halo->sent, halo->receive,
                                halo->counts, halo->received_at, halo->received, halo->comm, &request);
        expect_taken("nonblocking");
        if (dies && round == 2 && check_rank == 1) die();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        examine(halo, round + 100, "nonblocking");
    }
    if (alltoallw_init == NULL) return;
    alltoallw_init(halo->send, halo->counts, halo->sent_at, halo->sent, halo->receive, halo->counts,
                   halo->received_at, halo->received, halo->comm, MPI_INFO_NULL, &plan);
    expect_taken("persistent");
    for (int round = 0; round < 2 * rounds; ++round) {
        prepare(halo, round + 200);
        arrive(arrival, round);
        MPI_Start(&plan);
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        examine(halo, round + 200, "persistent");
    }
    MPI_Request_free(&plan);
}

/* Of this lab's hosts, each of which shapes what it sends; as the lab shaped it, but for the rate. */
static void divide_rates(double by) {
    const char* const rate = getenv("THALWEG_LAB_NOMINAL_BITS_PER_S");
    const char* const burst = getenv("THALWEG_LAB_BURST_BYTES");
    CHECK(rate != NULL && burst != NULL, "this is no lab");
    MPI_Comm host;
    int local = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &local);
    MPI_Comm_free(&host);
    char command[256];
    snprintf(
        command, sizeof command,
        "PATH=$PATH:/usr/sbin:/sbin LD_PRELOAD= tc qdisc change dev rail0 root tbf rate %.0fbit burst %sb "
        "limit 67108864",
        strtod(rate, NULL) / by, burst);
    if (local == 0) CHECK(system(command) == 0, "the link keeps its rate");
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Eight native ones, one of ours, then sixteen in both ways in turns, and what was faster. */
static void trial(Halo* halo) {
    const char* const taken = getenv("THALWEG_TEST_TAKEN");
    const int trials = taken != NULL && strcmp(taken, "trial") == 0 && expect_thalweg();
    for (int call = 0; call < 30; ++call) {
        prepare(halo, call);
        exchange_blocking(halo);
        if (trials && call < 25)
            CHECK(was_accelerated() == (call == 8 || (call > 8 && tried_as_schedule(call - 9))),
                  "call %d of the trial: %s", call, last_reason());
        examine(halo, call, "of the trial");
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    *(void**)&alltoallw_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoallw_init");
    const Shape medium = {48, 1024, 16}, small = {4, 16, 8};
    const char* const phases = argc > 1 ? argv[1] : "csl";
    MPI_Comm comms[grids] = {make_grid(square), make_grid(ring), MPI_COMM_NULL};
    if (strchr(phases, 'A') != NULL) comms[turned] = make_grid(turned);
    for (const char* letter = phases; *letter != '\0'; ++letter) {
        Shape across = medium, inside = medium;
        int rounds = 3;
        const Arrival arrival = strchr("hH", *letter) != NULL   ? together
                                : strchr("lL", *letter) != NULL ? one_late
                                                                : anyhow;
        if (*letter == 'c') across = small, inside = (Shape){64, 8192, 0}, rounds = 8;
        if (*letter == 'w') across = (Shape){1024, 8192, 64}, inside = (Shape){64, 8192, 32}, rounds = 2;
        if (*letter == 's') across = inside = (Shape){4096, 8, 8};
        if (strchr("hHL", *letter) != NULL) across = (Shape){16, 4096, 64}, inside = (Shape){512, 8192, 0};
        /* A rate is believed to be a lower one by a twentieth at each exchange. */
        if (*letter == 'H') rounds = 16;
        if (strchr("dm", *letter) != NULL) across = small, inside = (Shape){64, 1024, 0};
        if (strchr("aA", *letter) != NULL)
            across = (Shape){1024, 8192, 64}, inside = (Shape){64, 1024, 16}, rounds = 2;
        const Grid grid = *letter == 'g' ? ring : *letter == 'A' ? turned : square;
        Halo halo;
        open_halo(&halo, comms[grid], across, inside, *letter);
        if (*letter == 'H') divide_rates(40);
        if (*letter == 't')
            trial(&halo);
        else
            phase(&halo, rounds, arrival, *letter == 'k');
        if (*letter == 'H') divide_rates(1);
        close_halo(&halo);
    }
    for (Grid grid = square; grid < grids; ++grid)
        if (comms[grid] != MPI_COMM_NULL) MPI_Comm_free(&comms[grid]);
    const char* const hosts = getenv("THALWEG_TOPOLOGY");
    if (hosts != NULL && strcmp(hosts, "node:2 core:2") == 0) check_rings(2);
    return check_end();
}
