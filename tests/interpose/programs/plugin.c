/* MPI behind a library: a plugin linked with MPI, which loader.c opens with RTLD_LOCAL, as Python opens its
 * modules. With PLUGIN_HANDLE=LIBRARY it finds MPI_Init and MPI_Finalize on a handle of that file, as Julia
 * does: whoever is loaded in front of the library is passed by. With PLUGIN_HANDLE_ALL as well, all the
 * others. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void* handle;

/* The function of that name on the handle, or else `linked`. */
#define FOUND(name, everywhere) \
    ((__typeof__(&name))(handle != NULL && (everywhere) ? dlsym(handle, #name) : (void*)name))

int plugin_main(void) {
    int rank, size, wrong = 0;
    const char* library = getenv("PLUGIN_HANDLE");
    const int all = getenv("PLUGIN_HANDLE_ALL") != NULL;
    if (library != NULL && (handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL)) == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    FOUND(MPI_Init, 1)(NULL, NULL);
    FOUND(MPI_Comm_rank, all)(MPI_COMM_WORLD, &rank);
    FOUND(MPI_Comm_size, all)(MPI_COMM_WORLD, &size);
    static char data[70000];
    for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < 70000; ++i) data[i] = (char)(rank == 0 ? i * 7 + round : 0);
        FOUND(MPI_Bcast, all)(data, 70000, MPI_CHAR, 0, MPI_COMM_WORLD);
        for (int i = 0; i < 70000; ++i) wrong += data[i] != (char)(i * 7 + round);
    }
    FOUND(MPI_Finalize, 1)();
    if (rank == 0 && !wrong) printf("done on %d ranks\n", size);
    return wrong != 0;
}
