/* Exchanges of strided faces behind MPI_BOTTOM: where they lie is in the datatypes alone. Neighbours on a
 * ring that is joined both ways, and each rank with itself; MPI_Neighbor_alltoallw and MPI_Alltoallw,
 * blocking, nonblocking and persistent. Rows of a face are long or short, in order or backwards, and the runs
 * of one kind follow no stride. The extent of one kind is larger than memory.
 */
#include "check.h"

typedef int AlltoallwInit(const void*, const int*, const MPI_Aint*, const MPI_Datatype*, void*, const int*,
                          const MPI_Aint*, const MPI_Datatype*, MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallwInit* neighbours_init;

enum { edges = 3, rounds = 3, face_bytes = 96 << 10, room = 4 * face_bytes };
typedef enum { long_rows, short_rows, backwards, uneven, kinds } Kind;
typedef enum { blocking, nonblocking, persistent, everybody, forms } Form;
static const char* const form_names[] = {"a blocking exchange", "a nonblocking exchange",
                                         "a persistent exchange", "an alltoallw"};

static MPI_Comm ring;
static unsigned char *sent[edges], *received[edges];

/* Byte i of a face of this kind lies there, from the begin of its memory. */
static size_t place_of(Kind kind, size_t i) {
    const size_t row = kind == short_rows ? 48 : 2048, rows = face_bytes / row, r = i / row;
    if (kind == backwards) return (rows - 1 - r) * 2 * row + i % row;
    if (kind == uneven) return r * row + r * r + i % row;
    return r * 2 * row + i % row;
}

static MPI_Datatype type_of(Kind kind, const unsigned char* memory) {
    const int row = kind == short_rows ? 48 : 2048, rows = face_bytes / row, one = 1;
    MPI_Datatype rows_type, type;
    MPI_Aint at;
    MPI_Get_address(memory, &at);
    if (kind == uneven) {
        int lengths[face_bytes / 2048];
        MPI_Aint places[face_bytes / 2048];
        for (int r = 0; r < rows; ++r) {
            lengths[r] = row;
            places[r] = at + (MPI_Aint)place_of(kind, (size_t)r * (size_t)row);
        }
        MPI_Type_create_hindexed(rows, lengths, places, MPI_BYTE, &type);
    } else {
        at += (MPI_Aint)place_of(kind, 0);
        MPI_Type_vector(rows, row, kind == backwards ? -2 * row : 2 * row, MPI_BYTE, &rows_type);
        MPI_Type_create_hindexed(1, &one, &at, rows_type, &type);
        MPI_Type_free(&rows_type);
    }
    if (kind == backwards) { /* there is no second element, and its place is no address */
        rows_type = type;
        MPI_Type_create_resized(rows_type, 0, (MPI_Aint)1 << 60, &type);
        MPI_Type_free(&rows_type);
    }
    MPI_Type_commit(&type);
    return type;
}

static void exchange(Form form, Kind out, Kind in) {
    static const int ones[edges] = {1, 1, 1};
    static const MPI_Aint nowhere[edges] = {0, 0, 0};
    const int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    const int to[edges] = {left, right, check_rank}, from[edges] = {right, left, check_rank};
    MPI_Datatype sends[edges], receives[edges];
    MPI_Request request = MPI_REQUEST_NULL;
    for (int i = 0; i < edges; ++i) sends[i] = type_of(out, sent[i]), receives[i] = type_of(in, received[i]);
    if (form == persistent)
        neighbours_init(MPI_BOTTOM, ones, nowhere, sends, MPI_BOTTOM, ones, nowhere, receives, ring,
                        MPI_INFO_NULL, &request);
    for (int round = 0; round < (form == persistent ? rounds : 1); ++round) {
        const unsigned seed = (unsigned)(1000 * round + 100 * (int)form);
        for (int i = 0; i < edges; ++i) {
            memset(received[i], poison_value, room);
            for (size_t b = 0; b < face_bytes; ++b)
                sent[i][place_of(out, b)] = pattern(b, seed + (unsigned)(check_rank * edges + i));
        }
        if (form == blocking)
            MPI_Neighbor_alltoallw(MPI_BOTTOM, ones, nowhere, sends, MPI_BOTTOM, ones, nowhere, receives,
                                   ring);
        if (form == nonblocking)
            MPI_Ineighbor_alltoallw(MPI_BOTTOM, ones, nowhere, sends, MPI_BOTTOM, ones, nowhere, receives,
                                    ring, &request);
        if (form == everybody) {
            int counts[64] = {0}, places[64] = {0};
            MPI_Datatype all_sends[64], all_receives[64];
            for (int peer = 0; peer < check_size; ++peer) all_sends[peer] = all_receives[peer] = MPI_BYTE;
            for (int i = 0; i < edges; ++i) {
                counts[to[i]] = 1;
                all_sends[to[i]] = sends[i];
                all_receives[from[i]] = receives[i];
            }
            MPI_Ialltoallw(MPI_BOTTOM, counts, places, all_sends, MPI_BOTTOM, counts, places, all_receives,
                           ring, &request);
        }
        if (getenv("THALWEG_TEST_TAKEN") != NULL && round == 0)
            CHECK(was_accelerated(), "%s: %s", form_names[form], last_reason());
        if (form == persistent) MPI_Start(&request);
        if (form != blocking) MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < edges; ++i)
            for (size_t b = 0; b < face_bytes; ++b) {
                const unsigned char got = received[i][place_of(in, b)];
                const unsigned char right_one = pattern(b, seed + (unsigned)(from[i] * edges + i));
                if (got != right_one)
                    FAIL("%s, kinds %d and %d, round %d: byte %zu of the face from %d is %02x, not %02x",
                         form_names[form], (int)out, (int)in, round, b, from[i], got, right_one);
            }
        ++check_count;
    }
    if (form == persistent) MPI_Request_free(&request);
    for (int i = 0; i < edges; ++i) MPI_Type_free(&sends[i]), MPI_Type_free(&receives[i]);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    CHECK(check_size >= 3 && check_size <= 64, "3 to 64 ranks");
    *(void**)&neighbours_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoallw_init");
    const int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    const int to[edges] = {left, right, check_rank}, from[edges] = {right, left, check_rank};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, edges, from, MPI_UNWEIGHTED, edges, to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &ring);
    for (int i = 0; i < edges; ++i) {
        sent[i] = malloc(room), received[i] = malloc(room);
        CHECK(sent[i] != NULL && received[i] != NULL, "no memory");
    }
    for (Form form = blocking; form < forms; ++form) {
        if (form == persistent && neighbours_init == NULL) continue;
        for (Kind out = long_rows; out < kinds; ++out)
            for (Kind in = long_rows; in < kinds; ++in) exchange(form, out, in);
    }
    for (int i = 0; i < edges; ++i) free(sent[i]), free(received[i]);
    MPI_Comm_free(&ring);
    return check_end();
}
