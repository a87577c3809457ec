/* Wrong arguments: the MPI library judges them, with and without Thalweg alike, and the next call works. */
#include "check.h"

static int class_of(int code) {
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class;
}

static void works(MPI_Comm comm, const char* after) {
    static unsigned char data[40000];
    static unsigned seed = 100;
    memset(data, poison_value, sizeof data);
    ++seed;
    if (check_rank == 0) fill(data, sizeof data, seed);
    CHECK(MPI_Bcast(data, sizeof data, MPI_BYTE, 0, comm) == MPI_SUCCESS, "a good call after %s", after);
    verify(data, sizeof data, seed, after);
    if (expect_thalweg() && check_size > 1)
        CHECK(was_accelerated(), "not accelerated after %s: %s", after, last_reason());
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm comm;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    static unsigned char data[40000];
    works(comm, "nothing");
    struct {
        const char* what;
        int got, want;
    } tried[] = {
        {"root -5", MPI_Bcast(data, sizeof data, MPI_BYTE, -5, comm), MPI_ERR_ROOT},
        {"root = size", MPI_Bcast(data, sizeof data, MPI_BYTE, check_size, comm), MPI_ERR_ROOT},
        {"a negative count", MPI_Bcast(data, -1, MPI_BYTE, 0, comm), MPI_ERR_COUNT},
        {"no datatype", MPI_Bcast(data, sizeof data, MPI_DATATYPE_NULL, 0, comm), MPI_ERR_TYPE},
        {"no communicator", MPI_Bcast(data, sizeof data, MPI_BYTE, 0, MPI_COMM_NULL), MPI_ERR_COMM},
    };
    for (size_t i = 0; i < sizeof tried / sizeof *tried; ++i) {
        CHECK(class_of(tried[i].got) == tried[i].want, "%s gives class %d, not %d", tried[i].what,
              class_of(tried[i].got), tried[i].want);
        works(comm, tried[i].what);
    }

    /* The user's error handler is still the user's after our set-up spoke on the communicator. */
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(comm, &handler);
    CHECK(handler == MPI_ERRORS_RETURN, "the error handler was changed");

    /* A receiver that expects more than the root sends gets an error, not a hang and not a success. */
    if (check_size > 1 && expect_thalweg()) {
        MPI_Comm pair;
        MPI_Comm_split(MPI_COMM_WORLD, check_rank < 2 ? 0 : MPI_UNDEFINED, 0, &pair);
        if (pair != MPI_COMM_NULL) {
            MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
            set_option("THALWEG_BCAST", "linear");
            const int code = MPI_Bcast(data, check_rank == 0 ? 16384 : 20000, MPI_BYTE, 0, pair);
            if (check_rank == 1) CHECK(code != MPI_SUCCESS, "a short message was reported as a whole one");
            MPI_Comm_free(&pair);
        } else {
            set_option("THALWEG_BCAST", "linear");
        }
    }
    MPI_Comm_free(&comm);
    return check_end();
}
