/* opener LIBRARY local|global [kept]: a program linked with no MPI that opens the library itself, runs,
 * finalizes, closes the library (unless `kept`) and exits. `local`: it finds the functions on the handle,
 * which passes by whoever is loaded in front; `global`: as any program finds names. Broadcasts, blocking and
 * not, and a communicator. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { bytes = 70000, rounds = 5 };
static void* place;

#define FOUND(name) ((__typeof__(&name))dlsym(place, #name))

#ifdef OPEN_MPI
/* Its predefined handles are addresses of the library's data. */
#define PREDEFINED(type, handle, symbol) ((type)dlsym(library, #symbol))
#else
#define PREDEFINED(type, handle, symbol) handle
#endif

static int right(const char* data, int seed) {
    int wrong = 0;
    for (int i = 0; i < bytes; ++i) wrong += data[i] != (char)(i * 7 + seed);
    return !wrong;
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const int global = strcmp(argv[2], "global") == 0;
    void* const library = dlopen(argv[1], RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    place = global ? RTLD_DEFAULT : library;
    const MPI_Comm world = PREDEFINED(MPI_Comm, MPI_COMM_WORLD, ompi_mpi_comm_world);
    const MPI_Datatype type = PREDEFINED(MPI_Datatype, MPI_CHAR, ompi_mpi_char);
    static char data[bytes];
    int rank, size, provided, good = 1;
    FOUND(MPI_Init_thread)(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    FOUND(MPI_Comm_rank)(world, &rank);
    FOUND(MPI_Comm_size)(world, &size);
    MPI_Comm twin;
    FOUND(MPI_Comm_dup)(world, &twin);
    for (int round = 0; round < rounds; ++round)
        for (int nonblocking = 0; nonblocking < 2; ++nonblocking) {
            MPI_Request request;
            for (int i = 0; i < bytes; ++i) data[i] = (char)(rank == 0 ? i * 7 + round : 0);
            if (!nonblocking) FOUND(MPI_Bcast)(data, bytes, type, 0, twin);
            if (nonblocking) {
                FOUND(MPI_Ibcast)(data, bytes, type, 0, twin, &request);
                FOUND(MPI_Wait)(&request, MPI_STATUS_IGNORE);
            }
            good = good && right(data, round);
        }
    FOUND(MPI_Comm_free)(&twin);
    FOUND(MPI_Finalize)();
    if (argc == 3) good = good && dlclose(library) == 0;
    if (rank == 0 && good) printf("done on %d ranks\n", size);
    return !good;
}
