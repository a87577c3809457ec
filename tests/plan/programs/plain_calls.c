/* What a compiler of Fortran makes that appends no underscore to names (XL Fortran, -fno-underscoring): calls
 * of MPI by such, with Fortran's handles. */
void mpi_init(int* error);
void mpi_bcast(void* data, int* count, int* type, int* root, int* comm, int* error);
void MPI_WAIT(int* request, int* status, int* error);

void begin_plainly(int* error) { mpi_init(error); }
void broadcast_plainly(void* data, int count, int type, int root, int comm, int* error) {
    mpi_bcast(data, &count, &type, &root, &comm, error);
}
void wait_plainly(int* request, int* status, int* error) { MPI_WAIT(request, status, error); }
