/* All ranks on one host and nothing asked for but a tuning table, whose row (one_host.json) takes broadcasts
 * of 256 KiB and more between 2 ranks: those are seen and run, shorter ones are not seen, whatever types
 * describe them; both ranks do the same. */
#include "check.h"

enum { taken_from = 262144, most_bytes = 1 << 20 };

static unsigned char *data, *spread;
static unsigned seed = 0;

/* What the row speaks for. */
static int has_row(void) { return check_size == 2 && expect_thalweg(); }

/* `bytes` as `count` of `type`, whose true extent is as long; accelerated exactly where it has to be. */
static void broadcast(size_t bytes, int count, MPI_Datatype type, const char* what) {
    static const unsigned char mark = 0x3c;
    const int root = (int)(++seed % (unsigned)check_size);
    memset(data, mark, bytes);
    if (check_rank == root) fill(data, bytes, seed);
    MPI_Bcast(data, count, type, root, MPI_COMM_WORLD);
    verify(data, bytes, seed, what);
    const int ran = bytes >= taken_from && has_row();
    if (bytes < taken_from) return;
    CHECK(was_accelerated() == ran, "%s of %zu bytes: %s", what, bytes, last_reason());
}

/* The same message by another type on each rank. */
static void by_types(size_t bytes) {
    MPI_Datatype pair, all;
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_contiguous((int)(bytes / 8), MPI_DOUBLE, &all);
    MPI_Type_commit(&pair);
    MPI_Type_commit(&all);
    const MPI_Datatype types[] = {MPI_DOUBLE, pair, all};
    const int counts[] = {(int)(bytes / 8), (int)(bytes / 16), 1};
    for (int mine = 0; mine < 3; ++mine)
        for (int turn = 0; turn < 3; ++turn) {
            const int use = (mine + check_rank * turn) % 3;
            broadcast(bytes, counts[use], types[use], "by types");
        }
    MPI_Type_free(&pair);
    MPI_Type_free(&all);
}

/* Blocks with gaps: what lies between them stays. */
static void with_gaps(size_t bytes) {
    const int blocks = (int)(bytes / 4);
    MPI_Datatype type;
    MPI_Type_vector(blocks, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int root = 0; root < check_size; ++root) {
        memset(spread, poison_value, 2 * bytes);
        ++seed;
        if (check_rank == root) {
            fill(data, bytes, seed);
            for (int i = 0; i < blocks; ++i) memcpy(spread + 8 * i, data + 4 * i, 4);
        }
        MPI_Bcast(spread, 1, type, root, MPI_COMM_WORLD);
        for (int i = 0; i < blocks; ++i) {
            memcpy(data + 4 * i, spread + 8 * i, 4);
            if (i + 1 < blocks)
                for (int k = 4; k < 8; ++k)
                    CHECK(spread[8 * i + k] == poison_value, "written into gap %d", i);
        }
        verify(data, bytes, seed, "with gaps");
    }
    MPI_Type_free(&type);
}

/* Every predefined type that can tell its size by its handle tells it right: as many of each as make a
 * message just too short, and as many more as make one that is taken. */
static void predefined_types(void) {
    const MPI_Datatype types[] = {
        MPI_CHAR,
        MPI_SIGNED_CHAR,
        MPI_UNSIGNED_CHAR,
        MPI_BYTE,
        MPI_SHORT,
        MPI_UNSIGNED,
        MPI_LONG,
        MPI_LONG_LONG,
        MPI_WCHAR,
        MPI_UNSIGNED_LONG,
        MPI_UNSIGNED_SHORT,
        MPI_UNSIGNED_LONG_LONG,
        MPI_FLOAT,
        MPI_DOUBLE,
        MPI_LONG_DOUBLE,
        MPI_C_BOOL,
        MPI_INT8_T,
        MPI_INT16_T,
        MPI_INT32_T,
        MPI_INT64_T,
        MPI_UINT8_T,
        MPI_UINT16_T,
        MPI_UINT32_T,
        MPI_UINT64_T,
        MPI_AINT,
        MPI_OFFSET,
        MPI_COUNT,
        MPI_C_FLOAT_COMPLEX,
        MPI_2INT,
        MPI_INT,
        MPI_C_DOUBLE_COMPLEX,
        MPI_C_LONG_DOUBLE_COMPLEX,
        MPI_FLOAT_INT,
        MPI_SHORT_INT,
        MPI_LONG_INT,
        MPI_DOUBLE_INT,
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
        int size = 0;
        MPI_Aint lower = 0, extent = 0;
        MPI_Type_size(types[i], &size);
        MPI_Type_get_extent(types[i], &lower, &extent);
        for (int more = -1; more <= 0; ++more) {
            const int count = (taken_from + size - 1) / size + more;
            memset(data, 0, (size_t)count * (size_t)extent);
            if (check_rank == 0)
                for (int k = 0; k < count; ++k) data[k * extent] = (unsigned char)(k % 251 + 1);
            MPI_Bcast(data, count, types[i], 0, MPI_COMM_WORLD);
            for (int k = 0; k < count; ++k)
                CHECK(data[k * extent] == k % 251 + 1 || types[i] == MPI_C_BOOL, "type %zu, element %d", i,
                      k);
            if (more == 0) CHECK(was_accelerated() == has_row(), "type %zu: %s", i, last_reason());
        }
    }
}

static int handled;
static void count_error(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    ++handled;
}

/* Wrong arguments of any size are the native library's, and its handler runs once. */
static void wrong(void) {
    MPI_Errhandler counting;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(count_error, &counting);
    MPI_Comm_set_errhandler(comm, counting);
    const struct {
        int count;
        MPI_Datatype type;
        int root;
    } calls[] = {{-1, MPI_BYTE, 0},
                 {-(1 << 30), MPI_DOUBLE, 0},
                 {taken_from, MPI_DATATYPE_NULL, 0},
                 {taken_from, MPI_BYTE, check_size},
                 {8, MPI_DATATYPE_NULL, 0}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
        handled = 0;
        MPI_Bcast(data, calls[i].count, calls[i].type, calls[i].root, comm);
        CHECK(handled == 1, "wrong call %zu: handled %d times", i, handled);
    }
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&counting);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    data = guarded_new(8 * most_bytes);
    spread = guarded_new(2 * most_bytes);
    /* Until a set-up pays. */
    for (int i = 0; i < 64; ++i) {
        MPI_Bcast(data, most_bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        if (was_accelerated()) break;
    }
    static const size_t sizes[] = {0, 1, 4096, taken_from - 1, taken_from, taken_from + 1, most_bytes};
    for (int round = 0; round < 3; ++round)
        for (int i = 0; i < 7; ++i) broadcast(sizes[i], (int)sizes[i], MPI_BYTE, "bytes");
    for (size_t bytes = taken_from / 2; bytes <= most_bytes; bytes *= 2) {
        by_types(bytes);
        with_gaps(bytes);
    }
    predefined_types();
    wrong();
    if (has_row()) {
        set_option("THALWEG_BCAST", "native");
        MPI_Bcast(data, most_bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        CHECK(!was_accelerated(), "accelerated although the native library was asked for");
        set_option("THALWEG_BCAST", NULL);
        broadcast(most_bytes, most_bytes, MPI_BYTE, "again");
        set_option("THALWEG_BCAST_MIN_BYTES", "512K");
        MPI_Bcast(data, most_bytes / 2 - 1, MPI_BYTE, 0, MPI_COMM_WORLD);
        thalweg_last_call call;
        CHECK(look_last_call(&call, sizeof call) == THALWEG_DECLINED, "seen below the limit asked for: %s",
              call.reason);
        CHECK(strstr(call.reason, "below 512K") != NULL, "\"%s\"", call.reason);
        broadcast(most_bytes / 2, most_bytes / 2, MPI_BYTE, "with a limit");
    }
    guarded_free(spread, 2 * most_bytes);
    guarded_free(data, 8 * most_bytes);
    return check_end();
}
