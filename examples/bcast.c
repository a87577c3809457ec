/* Broadcasts and checks every byte: an ordinary MPI program that knows nothing of Thalweg.
 *
 *     bcast [--reps N] [SIZE...]        sizes in bytes, with K, M or G for 2^10, 2^20, 2^30
 *
 * For each size: N timed broadcasts from rank 0, then one from every other root (eight at most), then one in
 * which the root sends plain bytes and the others receive them into a strided datatype. Buffers are poisoned
 * before and compared after every call, guard bytes included. Rank 0 prints, per size, the bytes and the
 * median over the timed calls of the slowest rank's seconds. Exits with 1 on a wrong byte, 2 on wrong
 * arguments. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { guard = 64, max_roots = 8, stride_block = 3, stride = 5 };

static const unsigned char poison = 0xA5;
static int rank, ranks;

/* The bytes that message `seed` carries: no two messages agree, so data kept from an earlier call is seen. */
static void fill(unsigned char* data, size_t bytes, uint64_t seed) {
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        uint64_t x = (seed << 40) + i + UINT64_C(0x9E3779B97F4A7C15);
        x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
        x ^= x >> 31;
        size_t left = bytes - i;
        memcpy(data + i, &x, left < sizeof x ? left : sizeof x);
    }
}

static void complain(const char* what, size_t bytes, int root, size_t at) {
    fprintf(stderr, "rank %d: %s of %zu bytes from root %d: wrong byte at %zu\n", rank, what, bytes, root,
            at);
}

/* Compares `bytes` of data and the guard on both sides of it; returns 1 and says where if one byte differs.
 */
static int differs(const unsigned char* data, const unsigned char* expected, size_t bytes, const char* what,
                   int root) {
    if (bytes && memcmp(data, expected, bytes) != 0) {
        size_t at = 0;
        while (data[at] == expected[at]) at++;
        complain(what, bytes, root, at);
        return 1;
    }
    for (int i = 0; i < guard; i++) {
        if (data[-1 - i] != poison || data[bytes + (size_t)i] != poison) {
            complain("guard", bytes, root, (size_t)i);
            return 1;
        }
    }
    return 0;
}

/* One broadcast; returns its seconds on this rank and adds to `errors`. */
static double once(unsigned char* area, unsigned char* expected, size_t bytes, int root, uint64_t seed,
                   long* errors) {
    unsigned char* data = area + guard;
    fill(expected, bytes, seed);
    memset(area, poison, bytes + 2 * guard);
    if (rank == root && bytes) memcpy(data, expected, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    MPI_Bcast(data, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start;
    *errors += differs(data, expected, bytes, "broadcast", root);
    return seconds;
}

/* The root sends contiguous bytes, everybody else receives them into blocks of 3 bytes every 5: the type
 * signatures agree, as the standard asks, and the gaps must keep their poison. One element of a type on both
 * sides: Open MPI cuts a large broadcast between elements, delivers wrong bytes or hangs where the ranks
 * count them differently, and this program has to run on every MPI by itself. */
static void strided(unsigned char* expected, size_t bytes, int root, uint64_t seed, long* errors) {
    size_t blocks = bytes / stride_block;
    if (blocks == 0) return;
    size_t payload = blocks * stride_block;
    unsigned char* data = malloc(blocks * stride + 2 * guard);
    if (!data) MPI_Abort(MPI_COMM_WORLD, 3);
    memset(data, poison, blocks * stride + 2 * guard);
    fill(expected, payload, seed);

    MPI_Datatype type;
    if (rank == root)
        MPI_Type_contiguous((int)payload, MPI_BYTE, &type);
    else
        MPI_Type_vector((int)blocks, stride_block, stride, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    if (rank == root) {
        MPI_Bcast(expected, 1, type, root, MPI_COMM_WORLD);
    } else {
        MPI_Bcast(data + guard, 1, type, root, MPI_COMM_WORLD);
        for (size_t i = 0; i < blocks * stride; i++) {
            size_t block = i / stride, within = i % stride;
            unsigned char want = within < stride_block ? expected[block * stride_block + within] : poison;
            if (data[guard + i] != want) {
                complain("strided broadcast", payload, root, i);
                ++*errors;
                break;
            }
        }
    }
    MPI_Type_free(&type);
    free(data);
}

static int ascending(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

/* Returns 0 when `text` is no size that an MPI_Bcast of bytes can take. */
static int parse_size(const char* text, size_t* bytes) {
    char* end;
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *text == '-') return 0;
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (shift) end++;
    if (*end || value > (unsigned long long)(INT32_MAX >> shift)) return 0;
    *bytes = (size_t)(value << shift);
    return 1;
}

int main(int argc, char** argv) {
    static const char* defaults[] = {"0", "1", "8", "1000", "64K", "256K", "1M", "4M"};
    int reps = 5, first = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 2 && strcmp(argv[1], "--reps") == 0) {
        char* end = NULL;
        long value = strtol(argv[2], &end, 10);
        reps = *end == 0 && value >= 1 && value <= 1000000 ? (int)value : 0;
        first = 3;
    }
    const char** sizes = first < argc ? (const char**)argv + first : defaults;
    int count = first < argc ? argc - first : (int)(sizeof defaults / sizeof *defaults);
    for (int s = 0; s < count; s++) {
        size_t ignored;
        if (reps >= 1 && parse_size(sizes[s], &ignored)) continue;
        if (rank == 0)
            fprintf(stderr, "usage: bcast [--reps N] [SIZE...]   (SIZE: 1000, 64K, 4M; below 2G)\n");
        MPI_Finalize();
        return 2;
    }

    long errors = 0;
    uint64_t seed = 1;
    double* seconds = malloc((size_t)reps * sizeof *seconds);
    if (!seconds) MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 0) printf("# %d ranks\n# %10s %14s\n", ranks, "bytes", "seconds");
    for (int s = 0; s < count; s++) {
        size_t bytes = 0;
        parse_size(sizes[s], &bytes);
        unsigned char* area = malloc(bytes + 2 * guard);
        unsigned char* expected = malloc(bytes + sizeof(uint64_t));
        if (!area || !expected) MPI_Abort(MPI_COMM_WORLD, 3);
        for (int i = 0; i < reps; i++) {
            double mine = once(area, expected, bytes, 0, seed++, &errors);
            MPI_Allreduce(&mine, &seconds[i], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        }
        for (int root = 1; root < ranks && root < max_roots; root++) {
            once(area, expected, bytes, root, seed++, &errors);
        }
        strided(expected, bytes, ranks - 1, seed++, &errors);
        free(area);
        free(expected);
        if (rank == 0) {
            qsort(seconds, (size_t)reps, sizeof *seconds, ascending);
            printf("%12zu %14.9f\n", bytes, seconds[reps / 2]);
            fflush(stdout);
        }
    }
    free(seconds);
    long all = 0;
    MPI_Allreduce(&errors, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && all) printf("# %ld WRONG broadcasts\n", all);
    if (rank == 0 && !all) printf("# every byte correct\n");
    MPI_Finalize();
    return all ? 1 : 0;
}
