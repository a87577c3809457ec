/* What the generated wrappers call: the only door between interpose/ and the rest. C, so that the wrappers
 * can be.
 *
 * Every call is made inside the wrapper of the MPI function of the same name, with the caller's own
 * arguments. */
#ifndef THALWEG_API_ENTRY_H
#define THALWEG_API_ENTRY_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* After the native MPI_Init or MPI_Init_thread succeeded. Collective over the world: finds out whether all
 * ranks have us, and agrees on rank 0's settings. */
void thalweg_entry_initialized(void);
/* Before the native MPI_Finalize: frees what we made, writes the report. Collective over the world. */
void thalweg_entry_finalizing(void);
/* After the native MPI_Session_init / before MPI_Session_finalize: local. */
void thalweg_entry_session_opened(void);
void thalweg_entry_session_closing(void);

/* Before the native MPI_Comm_free or MPI_Comm_disconnect of comm: collective over it, frees what we made for
 * it. */
void thalweg_entry_comm_freeing(MPI_Comm comm);

/* 1: the broadcast is done and *error is what MPI_Bcast returns; 0: declined, call the native library; 2: the
 * same, and nobody need ask again while the bypass is open (plan/bypass.h). */
int thalweg_entry_bcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                        int* error);

#ifdef __cplusplus
}
#endif
#endif
