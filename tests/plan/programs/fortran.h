/* Fortran's names of MPI's functions, for a program in C. Not with the header of the standard ABI, which
 * knows no Fortran. */
#ifndef THALWEG_TESTS_PLAN_FORTRAN_H
#define THALWEG_TESTS_PLAN_FORTRAN_H

#include "check.h"

/* Loads the Fortran library of this MPI, for those without a compiler's; 0 where there is none. */
static inline int has_fortran(void) {
    const char* const libraries[] = {is_open_mpi() ? "libmpi_mpifh.so.40" : "libmpichfort.so.12",
                                     "libmpifort.so.12"};
    void* library = NULL;
    for (int i = 0; i < (is_open_mpi() ? 1 : 2) && library == NULL; ++i)
        library = dlopen(libraries[i], RTLD_NOW | RTLD_GLOBAL);
    return library != NULL;
}

static inline void load_fortran(void) {
    if (!has_fortran()) SKIP("this MPI has no Fortran");
}

/* The beginning of a program with a function of Fortran's of its own. */
static inline void start_in_front(int* argc, char*** argv) {
    alarm(100);
    if (is_open_mpi()) has_fortran(); /* MPI_Init looks for it */
    check_start(argc, argv, MPI_THREAD_MULTIPLE);
    load_fortran();
}

/* As gfortran spells it; of the native library where nothing shall stand in front. */
static inline void* fortran(const char* name, int native) {
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s%s_", native ? "p" : "", name);
    void* const found = dlsym(RTLD_DEFAULT, symbol);
    CHECK(found != NULL, "no %s", symbol);
    return found;
}

#endif
