/* What the generated wrappers share. The functions are exported by the core object to the objects with the
 * optional names. */
#ifndef THALWEG_INTERPOSE_RUNTIME_H
#define THALWEG_INTERPOSE_RUNTIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A handle passed by value, whatever the family: ints and pointers both travel in one integer register, and a
 * wrapper that hands on the whole register is right even for an MPI whose handles have another size than it
 * was built for. */
typedef intptr_t ThalwegHandle;

/* MPI_Count: 64 bits in every family. */
typedef int64_t ThalwegCount;

/* Names the symbol of a wrapper. The wrappers are not called MPI_* in C, because mpi.h would fix their
 * argument types to one family's handles. */
#define THALWEG_WRAPS(symbol) __asm__(#symbol) __attribute__((visibility("default")))

#pragma GCC visibility push(default)

/* Marks the thread as inside a wrapper. 1: it was not before, call thalweg_leave() when done; 0: MPI's own
 * code came back to us (a Fortran binding that calls the C function): pass the call on. `frame` is
 * __builtin_frame_address(0): a mark that a longjmp left behind is recognised by the stack having grown back.
 */
int thalweg_enter(void* frame);
void thalweg_leave(void);

/* Around the native call of the same name; the first is in front of MPI_Session_init as well. */
void thalweg_before_init(void);
void thalweg_after_init(void);
/* Inside the native MPI_Init, in front of the PMIx_Commit it makes. */
void thalweg_before_commit(void);
void thalweg_before_finalize(void);
void thalweg_after_session_init(void);
void thalweg_before_session_finalize(void);

/* Before MPI_Comm_free and MPI_Comm_disconnect, from C and from Fortran. A Fortran binding that calls the C
 * function asks twice, which does no harm; the native call is not marked as ours, because the program's own
 * attribute callbacks run inside it. */
void thalweg_before_MPI_Comm_free(const void* comm);
void thalweg_before_mpi_comm_free(int comm);

/* 1: done, *error is what the wrapper returns; 0: pass the call on; 2: pass it on, and remember the function
 * it was passed on to. */
int thalweg_take_MPI_Bcast(void* buffer, ThalwegCount count, ThalwegHandle datatype, int root,
                           ThalwegHandle comm, int* error);
/* The same from Fortran: handles are Fortran integers, and buffer may be Fortran's MPI_BOTTOM. */
int thalweg_take_mpi_bcast(void* buffer, int count, int datatype, int root, int comm, int* error);

/* `shortcut` is an _Atomic(void*), null at first: the function that the wrapper calls without asking. It
 * becomes `native` until calls want to be seen again; then it is null. */
void thalweg_remember(void* shortcut, void* native);

/* Any definition of `name` but `self` in the loaded objects, else of P`name` (p`name` for Fortran); null when
 * there is none. */
void* thalweg_find_native(const char* name, void* self);
/* Says once per name that the MPI library of this process lacks a function that the program called. */
void thalweg_report_missing(const char* name);
/* What a wrapper returns when there is nothing to pass the call on to. */
int thalweg_missing_error(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
