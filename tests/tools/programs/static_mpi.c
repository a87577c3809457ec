/* Looks as a program does that was linked with libmpi.a. */
int MPI_Init(void);
int PMPI_Init(void);
int PMPI_Bcast(void);

int MPI_Init(void) { return 0; }
int PMPI_Init(void) { return MPI_Init(); }
int PMPI_Bcast(void) { return 0; }

int main(void) { return PMPI_Init() + PMPI_Bcast(); }
