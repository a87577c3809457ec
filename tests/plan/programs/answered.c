/* A tool in front of Thalweg answers MPI_Finalize with PMPI_Finalize, as tools do: what is done at the end is
 * done nevertheless, and the report is written.
 *
 *     answered all|one [plan]
 *
 * `one`: rank 0 alone has the tool. `plan`: a persistent operation is left.
 */
#include <unistd.h>

#include "check.h"

typedef int AllgatherInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                          MPI_Request*);

static int answers = 1;

int MPI_Finalize(void) {
    int (*next)(void);
    *(void**)&next = dlsym(RTLD_NEXT, "MPI_Finalize");
    return answers ? PMPI_Finalize() : next();
}

int main(int argc, char** argv) {
    const char* const report = getenv("THALWEG_REPORT");
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK(report != NULL, "there is no report to look for");
    if (check_rank == 0) unlink(report);
    answers = check_rank == 0 || strcmp(argv[1], "all") == 0;
    int own = check_rank, all[64];
    MPI_Request request;
    for (int round = 0; round < 3; ++round) {
        MPI_Iallgather(&own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(all[check_size - 1] == check_size - 1, "a wrong value");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    AllgatherInit* init = NULL;
    *(void**)&init = dlsym(RTLD_DEFAULT, "MPI_Allgather_init");
    if (argc > 2 && init != NULL) {
        init(&own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    if (check_rank == 0 && expect_thalweg()) {
        if (access(report, R_OK) != 0) {
            fprintf(stderr, "there is no report %s\n", report);
            return 1;
        }
        printf("ok: there is a report\n");
    }
    return 0;
}
