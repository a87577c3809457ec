/* A tool behind Thalweg, where MPI_Testall waits until the program lets it go on to the MPI library. */
#define _GNU_SOURCE
#include <dlfcn.h>

int MPI_Testall(int count, void* requests, int* flag, void* statuses) {
    int (*next)(int, void*, int*, void*);
    void (*gate)(void);
    *(void**)&next = dlsym(RTLD_NEXT, "MPI_Testall");
    *(void**)&gate = dlsym(RTLD_DEFAULT, "thalweg_test_gate");
    if (gate != 0) gate();
    return next(count, requests, flag, statuses);
}
