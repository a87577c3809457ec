/* A program that reaches MPI through a library only: linked to parallel HDF5 and to no MPI (programs.py). The
 * root's bytes are broadcast, every rank writes its own part of what it received into one file through the
 * MPI-IO driver, and every rank reads all of it back, with metadata read by one rank and broadcast by HDF5.
 * All bytes are compared with the pattern, never with each other. Exits with 1 on a wrong byte.
 *
 *     hdf5 FILE */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { per_rank = 100003, datasets = 4, guard = 64, poison = 0xA5 };

static int rank, ranks;

static unsigned char pattern(int dataset, size_t i) {
    unsigned long long x = ((unsigned long long)(dataset + 1) << 40) + i + 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return (unsigned char)(x >> 56);
}

static long compare(const char* what, const unsigned char* area, int dataset, size_t bytes) {
    for (size_t i = 0; i < bytes + 2 * guard; i++) {
        int inside = i >= guard && i < guard + bytes;
        unsigned char want = inside ? pattern(dataset, i - guard) : poison;
        if (area[i] == want) continue;
        fprintf(stderr, "rank %d: %s of data set %d: wrong byte at %zu\n", rank, what, dataset, i);
        return 1;
    }
    return 0;
}

static hid_t check(hid_t id, const char* what) {
    if (id >= 0) return id;
    fprintf(stderr, "rank %d: %s failed\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
    return id;
}

static long write_parts(hid_t file, unsigned char* area, size_t bytes) {
    long wrong = 0;
    for (int d = 0; d < datasets; d++) {
        int root = d % ranks;
        memset(area, poison, bytes + 2 * guard);
        if (rank == root)
            for (size_t i = 0; i < bytes; i++) area[guard + i] = pattern(d, i);
        MPI_Bcast(area + guard, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        wrong += compare("broadcast", area, d, bytes);

        char name[32];
        snprintf(name, sizeof name, "/set%d", d);
        hsize_t all = bytes, mine = per_rank, start = (hsize_t)rank * per_rank;
        hid_t space = check(H5Screate_simple(1, &all, NULL), "H5Screate_simple");
        hid_t part = check(H5Screate_simple(1, &mine, NULL), "H5Screate_simple");
        hid_t set =
            check(H5Dcreate2(file, name, H5T_NATIVE_UCHAR, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                  "H5Dcreate2");
        hid_t transfer = check(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate");
        check(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE), "H5Pset_dxpl_mpio");
        check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &mine, NULL), "H5Sselect_hyperslab");
        check(H5Dwrite(set, H5T_NATIVE_UCHAR, part, space, transfer, area + guard + start), "H5Dwrite");
        H5Pclose(transfer);
        H5Dclose(set);
        H5Sclose(part);
        H5Sclose(space);
    }
    return wrong;
}

static long read_all(hid_t file, unsigned char* area, size_t bytes) {
    long wrong = 0;
    for (int d = 0; d < datasets; d++) {
        char name[32];
        snprintf(name, sizeof name, "/set%d", d);
        hid_t set = check(H5Dopen2(file, name, H5P_DEFAULT), "H5Dopen2");
        memset(area, poison, bytes + 2 * guard);
        check(H5Dread(set, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, area + guard), "H5Dread");
        wrong += compare("file", area, d, bytes);
        H5Dclose(set);
    }
    return wrong;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    size_t bytes = (size_t)per_rank * (size_t)ranks;
    unsigned char* area = malloc(bytes + 2 * guard);
    if (!area) MPI_Abort(MPI_COMM_WORLD, 3);

    hid_t access = check(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
    check(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL), "H5Pset_fapl_mpio");
    check(H5Pset_all_coll_metadata_ops(access, 1), "H5Pset_all_coll_metadata_ops");
    check(H5Pset_coll_metadata_write(access, 1), "H5Pset_coll_metadata_write");
    hid_t file = check(H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access), "H5Fcreate");
    long wrong = write_parts(file, area, bytes), all = 0;
    H5Fclose(file);
    file = check(H5Fopen(argv[1], H5F_ACC_RDONLY, access), "H5Fopen");
    wrong += read_all(file, area, bytes);
    H5Fclose(file);
    H5Pclose(access);
    free(area);

    MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && all) printf("# %ld WRONG buffers\n", all);
    if (rank == 0 && !all) printf("# %d ranks: every byte correct\n", ranks);
    MPI_Finalize();
    return all != 0;
}
