/* Names of Fortran's without an underscore, which no preload object has.
 *
 *     plain_names own NAMESAKES       a library in C has functions of its own by them
 *     plain_names called PLAIN_CALLS  code from Fortran calls MPI by them: on all ranks but the first, what
 *                                     that calls in C. Open MPI's bindings behind them tell nobody: then all
 *                                     is the library's.
 *     plain_names begins PLAIN_CALLS  MPI begins by them here, and in C where it is called with `beside`:
 *                                     under Open MPI this rank is as one without us
 */
#include "check.h"

enum { bytes = 20000, rounds = 4 };

static void* library_of(const char* path) {
    void* const library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return library;
}

static void* function_of(void* library, const char* name) {
    void* const function = dlsym(library, name);
    CHECK(function != NULL, "no %s", name);
    return function;
}

static void call_own(int argc, char** argv) {
    int (*namesakes)(int);
    void* const library = library_of(argv[2]);
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    *(void**)&namesakes = function_of(library, "call_namesakes");
    unsigned char* const data = guarded_new(bytes);
    for (unsigned round = 0; round < rounds; ++round) {
        const int right = namesakes(3 + (int)round);
        CHECK(right == 4, "%d of 4 functions of a library were its own", right);
        if (check_rank == 0) fill(data, bytes, round);
        MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        CHECK(was_accelerated() == expect_thalweg(), "a broadcast is native: %s", last_reason());
        verify(data, bytes, round, "a broadcast beside namesakes");
    }
    guarded_free(data, bytes);
}

#if defined(MPI_ABI_VERSION)
static void call_plainly(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    SKIP("its header knows no Fortran");
}
static void begin_plainly(int argc, char** argv) { call_plainly(argc, argv); }
#else
#include "fortran.h"

static void call_plainly(int argc, char** argv) {
    void (*broadcast)(void*, MPI_Fint, MPI_Fint, MPI_Fint, MPI_Fint, MPI_Fint*);
    void (*wait)(MPI_Fint*, MPI_Fint*, MPI_Fint*);
    void* const library = has_fortran() ? library_of(argv[2]) : NULL; /* MPI_Init looks for both */
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    load_fortran();
    *(void**)&broadcast = function_of(library, "broadcast_plainly");
    *(void**)&wait = function_of(library, "wait_plainly");
    const int taken = expect_thalweg() && !is_open_mpi();
    const MPI_Fint type = MPI_Type_c2f(MPI_BYTE), comm = MPI_Comm_c2f(MPI_COMM_WORLD);
    unsigned char* const data = guarded_new(bytes);
    for (unsigned round = 0; round < rounds; ++round) {
        MPI_Fint error = MPI_SUCCESS, status[sizeof(MPI_Status) / sizeof(MPI_Fint)];
        MPI_Request request;
        if (check_rank == 0) {
            fill(data, bytes, round);
            MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        } else {
            broadcast(data, bytes, type, 0, comm, &error);
        }
        CHECK(error == MPI_SUCCESS, "a broadcast returned %d", (int)error);
        CHECK(was_accelerated() == taken, "a broadcast was %s: %s", taken ? "native" : "taken",
              last_reason());
        verify(data, bytes, round, "a broadcast in two languages");
        memset(data, poison_value, bytes);
        if (check_rank == 0) fill(data, bytes, 100 + round);
        MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
        MPI_Fint handle = MPI_Request_c2f(request);
        wait(&handle, status, &error);
        CHECK(error == MPI_SUCCESS, "a wait returned %d", (int)error);
        CHECK(MPI_Request_f2c(handle) == MPI_REQUEST_NULL, "a request is left");
        verify(data, bytes, 100 + round, "a broadcast that the program waits for in Fortran");
    }
    guarded_free(data, bytes);
}

static void begin_plainly(int argc, char** argv) {
    const int here = has_fortran(), first = strcmp(argv[1], "begins") == 0;
    void (*begin)(MPI_Fint*);
    MPI_Fint error = MPI_SUCCESS;
    if (first && here) {
        *(void**)&begin = dlsym(library_of(argv[2]), "begin_plainly");
        begin(&error);
        MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
        MPI_Comm_size(MPI_COMM_WORLD, &check_size);
        CHECK(error == MPI_SUCCESS, "mpi_init returned %d", (int)error);
        *(void**)&look_last_call = dlsym(RTLD_DEFAULT, "thalweg_get_last_call");
    } else {
        check_start(&argc, &argv, MPI_THREAD_SINGLE);
        load_fortran();
    }
    const int taken = expect_thalweg() && !is_open_mpi();
    unsigned char* const data = guarded_new(bytes);
    for (unsigned round = 0; round < rounds; ++round) {
        if (check_rank == 0) fill(data, bytes, round);
        MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        CHECK(was_accelerated() == taken, "a broadcast was %s: %s", taken ? "native" : "taken",
              last_reason());
        verify(data, bytes, round, "a broadcast where a rank began in Fortran");
    }
    guarded_free(data, bytes);
}
#endif

int main(int argc, char** argv) {
    alarm(100);
    if (argc < 3) {
        fprintf(stderr, "plain_names own|called|begins|beside LIBRARY\n");
        return 1;
    }
    if (strcmp(argv[1], "own") == 0)
        call_own(argc, argv);
    else if (strcmp(argv[1], "called") == 0)
        call_plainly(argc, argv);
    else
        begin_plainly(argc, argv);
    return check_end();
}
