int use_mpi(void);

int main(void) { return use_mpi(); }
