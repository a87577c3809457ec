/* What a rank sees of the lab; rank 0 prints one line per fact, the others help. Arguments choose an ending:
   exit N: rank 1 returns N; hang: everybody waits in a collective with shared memory open. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size, local;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    char name[64] = "", *names = calloc(size, 64);
    gethostname(name, sizeof name - 1);
    MPI_Allgather(name, 64, MPI_CHAR, names, 64, MPI_CHAR, MPI_COMM_WORLD);

    MPI_Comm host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &local);
    int* locals = calloc(size, sizeof *locals);
    MPI_Allgather(&local, 1, MPI_INT, locals, 1, MPI_INT, MPI_COMM_WORLD);

    /* A segment made by rank 0 is there for its own host only. */
    if (rank == 0) close(shm_open("/lab-test", O_CREAT | O_RDWR, 0600));
    MPI_Barrier(MPI_COMM_WORLD);
    const int segment = shm_open("/lab-test", O_RDWR, 0600);
    int sees = segment >= 0, *all_see = calloc(size, sizeof *all_see);
    MPI_Allgather(&sees, 1, MPI_INT, all_see, 1, MPI_INT, MPI_COMM_WORLD);

    if (rank == 0) {
        char folder[4096];
        printf("hosts");
        for (int i = 0; i < size; ++i) printf(" %s", names + 64 * i);
        printf("\nlocal");
        for (int i = 0; i < size; ++i) printf(" %d", locals[i]);
        printf("\nshared");
        for (int i = 0; i < size; ++i) printf(" %d", all_see[i]);
        printf("\nfolder %s\n", getcwd(folder, sizeof folder));
        for (const char** variable =
                 (const char*[]){"THALWEG_TEST_VARIABLE", "OMP_NUM_THREADS", "PLAIN_VARIABLE",
                                 "THALWEG_LAB_HOSTS", "THALWEG_LAB_RATE_BYTES_PER_S", NULL};
             *variable; ++variable)
            printf("%s %s\n", *variable, getenv(*variable) ? getenv(*variable) : "(unset)");
        fflush(stdout);
    }
    if (argc > 1 && strcmp(argv[1], "hang") == 0) {
        if (rank == 0) printf("hanging\n"), fflush(stdout);
        if (rank == 0) sleep(1000);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    shm_unlink("/lab-test");
    MPI_Comm_free(&host);
    MPI_Finalize();
    return argc > 2 && strcmp(argv[1], "exit") == 0 && rank == 1 ? atoi(argv[2]) : 0;
}
