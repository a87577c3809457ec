/* Exchanges in pieces, again and again on one communicator, whose receives have room to spare: of sizes
 * around those of whole pieces, where a message is told to have ended by its last piece only. What is sent
 * arrives, and the room behind it keeps what it held; any rank may have other sizes at any call.
 *
 *     pieces CHUNK_BYTES [CALLS]        60 by default
 *
 * THALWEG_TEST_TAKEN=1: all were taken.
 */
#include "check.h"

enum { most_blocks = 16, poison = 0xEE };
static int chunk;

typedef enum { blocking, nonblocking, neighbours, forms } Form;
static const char* const form_names[] = {"a blocking alltoallv", "a nonblocking alltoallv",
                                         "a neighbour alltoallv"};

static int size_of(int which) {
    const int sizes[] = {1,         chunk - 1,     chunk, chunk + 1, 2 * chunk, 3 * chunk - 1,
                         3 * chunk, 3 * chunk + 1, 0};
    return sizes[which % 9];
}
/* What block `block` of rank `from` has at a call. None only where both ends know of it: of neighbours. */
static int sent(Form form, int from, int block, int call) {
    const int which = from * 5 + block * 3 + call * (1 + from % 2);
    return size_of(form == neighbours ? which : which % 8);
}
static int room(int bytes, int from, int block, int call) {
    const int more[] = {0, 0, 1, chunk - 1, chunk, 4 * chunk};
    return bytes + more[(from + block * 7 + call * 5) % 6];
}
static unsigned char value_of(int from, int block, int call, int i) {
    return (unsigned char)(from * 31 + block * 7 + call * 3 + i + i / 251);
}

/* Blocks of one call: of an alltoallv one per rank, of neighbours on a ring the two of a rank. */
typedef struct {
    int counts[most_blocks], places[most_blocks];
    unsigned char* data;
} Side;

static int sender_of(Form form, int block) {
    if (form != neighbours) return block;
    return block == 0 ? (check_rank + check_size - 1) % check_size : (check_rank + 1) % check_size;
}
/* Which of its blocks the sender of a block here has for this rank. */
static int block_there(Form form, int block) { return form == neighbours ? 1 - block : check_rank; }

static void exchange(Form form, Side* out, Side* in, MPI_Comm comm) {
    if (form == neighbours) {
        MPI_Neighbor_alltoallv(out->data, out->counts, out->places, MPI_BYTE, in->data, in->counts,
                               in->places, MPI_BYTE, comm);
    } else if (form == blocking) {
        MPI_Alltoallv(out->data, out->counts, out->places, MPI_BYTE, in->data, in->counts, in->places,
                      MPI_BYTE, comm);
    } else {
        MPI_Request request;
        MPI_Ialltoallv(out->data, out->counts, out->places, MPI_BYTE, in->data, in->counts, in->places,
                       MPI_BYTE, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void one_call(Form form, int call, Side* out, Side* in, MPI_Comm comm) {
    const int blocks = form == neighbours ? 2 : check_size, most = 8 * chunk + 16;
    for (int block = 0; block < blocks; ++block) {
        out->counts[block] = sent(form, check_rank, block, call);
        out->places[block] = in->places[block] = block * most;
        const int from = sender_of(form, block), there = block_there(form, block);
        in->counts[block] = room(sent(form, from, there, call), from, there, call);
        for (int i = 0; i < out->counts[block]; ++i)
            out->data[block * most + i] = value_of(check_rank, block, call, i);
    }
    memset(in->data, poison, (size_t)blocks * (size_t)most);
    exchange(form, out, in, comm);
    const char* const taken = getenv("THALWEG_TEST_TAKEN");
    if (taken != NULL && expect_thalweg() && check_size > 1)
        CHECK(was_accelerated(), "%s, call %d: %s", form_names[form], call, last_reason());
    for (int block = 0; block < blocks; ++block) {
        const int from = sender_of(form, block), there = block_there(form, block);
        const int came = sent(form, from, there, call);
        for (int i = 0; i < most; ++i) {
            const int found = in->data[block * most + i];
            const int right = i < came ? value_of(from, there, call, i) : poison;
            if (found != right)
                FAIL("%s, call %d: from %d, of %d bytes number %d is %d, not %d", form_names[form], call,
                     from, came, i, found, right);
        }
        ++check_count;
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    chunk = argc > 1 ? atoi(argv[1]) : 4096;
    const int calls = argc > 2 ? atoi(argv[2]) : 60, periodic = 1;
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &check_size, &periodic, 0, &ring);
    Side out, in;
    out.data = malloc((size_t)most_blocks * (8 * (size_t)chunk + 16));
    in.data = malloc((size_t)most_blocks * (8 * (size_t)chunk + 16));
    CHECK(check_size <= most_blocks && out.data != NULL && in.data != NULL, "no memory");
    for (int call = 0; call < calls; ++call)
        for (Form form = blocking; form < forms; ++form)
            one_call(form, call, &out, &in, form == neighbours ? ring : MPI_COMM_WORLD);
    free(out.data), free(in.data);
    MPI_Comm_free(&ring);
    return check_end();
}
