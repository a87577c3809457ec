/* One MPI program with many modes, each a thing that breaks interposers. It knows nothing of Thalweg: run.py
 * runs it with and without the preload objects and compares what it says. Exit status 0: every byte was
 * right. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int rank, size, wrong;

static void expect(int condition, const char* what) {
    if (condition) return;
    printf("rank %d: wrong: %s\n", rank, what);
    fflush(stdout);
    ++wrong;
}

static unsigned char byte_at(size_t i, int salt) {
    return (unsigned char)(i * 131 + (i >> 8) * 7 + (size_t)salt);
}

static void broadcast_and_check(size_t bytes, int root, MPI_Comm comm, int salt) {
    int me;
    MPI_Comm_rank(comm, &me);
    unsigned char* buffer = malloc(bytes + 2);
    for (size_t i = 0; i < bytes + 2; ++i) buffer[i] = 0xa5;
    if (me == root)
        for (size_t i = 0; i < bytes; ++i) buffer[i + 1] = byte_at(i, salt);
    MPI_Bcast(buffer + 1, (int)bytes, MPI_BYTE, root, comm);
    size_t bad = buffer[0] != 0xa5 || buffer[bytes + 1] != 0xa5;
    for (size_t i = 0; i < bytes; ++i) bad += buffer[i + 1] != byte_at(i, salt);
    expect(bad == 0, "bytes of a broadcast");
    free(buffer);
}

static void every_size(MPI_Comm comm) {
    int members;
    MPI_Comm_size(comm, &members);
    const size_t sizes[] = {0, 1, 3, 64, 4097, 65536, 300001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        broadcast_and_check(sizes[i], (int)i % members, comm, (int)i);
}

/* Sub- and split communicators, derived types that differ between ranks, MPI_BOTTOM, an intercommunicator. */
static void mode_bcast(void) {
    every_size(MPI_COMM_WORLD);
    every_size(MPI_COMM_SELF);
    MPI_Comm half, reversed;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    every_size(half);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    every_size(reversed);

    /* The root sends 3000 ints from a vector, the others receive 12000 bytes, at an absolute address. */
    static int numbers[6000];
    MPI_Datatype every_second;
    MPI_Type_vector(3000, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    if (rank == 0) {
        for (int i = 0; i < 6000; ++i) numbers[i] = i % 2 ? -1 : i / 2;
        MPI_Bcast(numbers, 1, every_second, 0, MPI_COMM_WORLD);
    } else {
        MPI_Aint address;
        MPI_Get_address(numbers, &address);
        MPI_Datatype there;
        int block = 3000;
        MPI_Type_create_hindexed(1, &block, &address, MPI_INT, &there);
        MPI_Type_commit(&there);
        MPI_Bcast(MPI_BOTTOM, 1, there, 0, MPI_COMM_WORLD);
        MPI_Type_free(&there);
        int bad = 0;
        for (int i = 0; i < 3000; ++i) bad += numbers[i] != i;
        expect(bad == 0, "a strided broadcast to an absolute address");
    }
    MPI_Type_free(&every_second);

    if (size > 1) {
        MPI_Comm between;
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 == 0 ? 1 : 0, 7, &between);
        int value = rank == 0 ? 4711 : 0;
        int root = rank % 2 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
        MPI_Bcast(&value, 1, MPI_INT, root, between);
        if (rank % 2) expect(value == 4711, "a broadcast between two groups");
        MPI_Comm_free(&between);
    }
    MPI_Comm_free(&half);
    MPI_Comm_free(&reversed);
    expect(half == MPI_COMM_NULL, "the handle after MPI_Comm_free");
}

static void say_error(const char* what, int error) {
    int class_ = -1, length = 0;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_class(error, &class_);
    MPI_Error_string(error, text, &length);
    if (rank == 0) printf("%s: class %d: %s\n", what, class_, text);
}

/* The texts must be the native library's own: run.py compares them with a run without us. */
static void mode_errors(void) {
    int value = 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    say_error("negative count", MPI_Bcast(&value, -1, MPI_INT, 0, MPI_COMM_WORLD));
    say_error("null datatype", MPI_Bcast(&value, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
    say_error("root too large", MPI_Bcast(&value, 1, MPI_INT, size, MPI_COMM_WORLD));
    say_error("large, root too large", MPI_Bcast(&value, 1 << 20, MPI_INT, size, MPI_COMM_WORLD));
    say_error("negative root", MPI_Bcast(&value, 1, MPI_INT, -7, MPI_COMM_WORLD));
    say_error("null communicator", MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_NULL));
    say_error("large, null communicator", MPI_Bcast(&value, 1 << 20, MPI_INT, 0, MPI_COMM_NULL));
    MPI_Comm none = MPI_COMM_NULL;
    say_error("free of the null communicator", MPI_Comm_free(&none));
    every_size(MPI_COMM_WORLD);
}

/* A child of fork() that leaves by exit(), and one that becomes another program. */
static void mode_fork(void) {
    for (int way = 0; way < 2; ++way) {
        every_size(MPI_COMM_WORLD);
        pid_t child = fork();
        if (child == 0) {
            if (way == 1) execl("/bin/true", "true", (char*)NULL);
            exit(42);
        }
        int status = 0;
        expect(waitpid(child, &status, 0) == child, "waitpid");
        expect(WIFEXITED(status) && WEXITSTATUS(status) == (way == 0 ? 42 : 0), "the child's exit status");
    }
    every_size(MPI_COMM_WORLD);
}

static MPI_Comm late_comm = MPI_COMM_NULL;
static int late_calls = 0;

static int broadcast_late(MPI_Comm comm, int keyval, void* value, void* state) {
    (void)comm, (void)keyval, (void)value, (void)state;
    int number = rank == 0 ? 99 : 0;
    MPI_Bcast(&number, 1, MPI_INT, 0, late_comm);
    every_size(late_comm);
    expect(number == 99, "a broadcast in a callback");
    ++late_calls;
    return MPI_SUCCESS;
}

/* Broadcasts inside MPI's own calls: a delete callback in MPI_Comm_free, and one in MPI_Finalize. */
static void mode_callbacks(void) {
    int keyval;
    MPI_Comm other;
    late_comm = MPI_COMM_WORLD;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, broadcast_late, &keyval, NULL);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &other);
    every_size(other);
    MPI_Comm_set_attr(other, keyval, NULL);
    MPI_Comm_free(&other);
    expect(late_calls == 1, "the delete callback in MPI_Comm_free");
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
}

/* Collective operations on a file of which the ranks' parts interleave, so that they have to tell each other
 * what to write. PMPI_Wait, because nothing but what the library calls itself shall be counted. */
static void mode_files(const char* program) {
    enum { values = 64 };
    int out[values], in[values];
    char name[512];
    MPI_File file;
    MPI_Datatype stripes;
    MPI_Request request;
    const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    snprintf(name, sizeof name, "%s.data", program);
    if (MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        expect(0, "a file that cannot be opened");
        return;
    }
    MPI_Type_vector(values, 1, size, MPI_INT, &stripes);
    MPI_Type_commit(&stripes);
    MPI_File_set_view(file, (MPI_Offset)sizeof(int) * rank, MPI_INT, stripes, "native", MPI_INFO_NULL);
    for (int nonblocking = 0; nonblocking < 2; ++nonblocking) {
        for (int i = 0; i < values; ++i) out[i] = 1000 * nonblocking + 100 * rank + i, in[i] = -1;
        if (nonblocking) {
            MPI_File_iwrite_at_all(file, 0, out, values, MPI_INT, &request);
            PMPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_File_write_at_all(file, 0, out, values, MPI_INT, MPI_STATUS_IGNORE);
        }
        MPI_File_sync(file);
        MPI_File_read_at_all(file, 0, in, values, MPI_INT, MPI_STATUS_IGNORE);
        expect(memcmp(in, out, sizeof in) == 0, "what a file holds");
    }
    MPI_File_close(&file);
    MPI_Type_free(&stripes);
}

static void* broadcast_often(void* comm) {
    for (int i = 0; i < 50; ++i) {
        broadcast_and_check(64, i % size, *(MPI_Comm*)comm, i);
        broadcast_and_check(20000, i % size, *(MPI_Comm*)comm, i);
    }
    return NULL;
}

static void mode_threads(void) {
    MPI_Comm first, second;
    pthread_t thread;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &first);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &second);
    pthread_create(&thread, NULL, broadcast_often, &second);
    broadcast_often(&first);
    pthread_join(thread, NULL);
    MPI_Comm_free(&first);
    MPI_Comm_free(&second);
}

/* Does the process think that MPI has a function? Must be MPI's own answer. */
static void mode_names(void) {
    const char* names[] = {"MPI_Bcast_c", "MPI_Session_init", "MPI_Session_finalize", "mpi_session_init_"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (rank == 0) printf("%s: %s\n", names[i], dlsym(RTLD_DEFAULT, names[i]) ? "yes" : "no");
}

static int nothing_of(void* state, MPI_Status* status) {
    (void)state;
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}
static int nothing_to_free(void* state) {
    (void)state;
    return MPI_SUCCESS;
}
static int nothing_to_cancel(void* state, int complete) {
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

#include "calls.h"

/* What a declined small broadcast costs over PMPI_Bcast, on one rank alone, in blocks taken in turns. */
static void mode_overhead(void) {
    enum { blocks = 401, calls = 1000 };
    static double difference[blocks];
    char data[8] = {0};
    for (int block = 0; block < blocks; ++block) {
        double t0 = seconds();
        for (int i = 0; i < calls; ++i) MPI_Bcast(data, 8, MPI_BYTE, 0, MPI_COMM_SELF);
        double t1 = seconds();
        for (int i = 0; i < calls; ++i) PMPI_Bcast(data, 8, MPI_BYTE, 0, MPI_COMM_SELF);
        double t2 = seconds();
        difference[block] = ((t1 - t0) - (t2 - t1)) / calls * 1e9;
    }
    qsort(difference, blocks, sizeof *difference, by_value);
    if (rank == 0) printf("overhead_ns %.1f\n", difference[blocks / 2]);
}

/* Open MPI 5 has sessions and calls itself 3.1. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_SESSIONS 1
#ifdef OMPI_MAJOR_VERSION
enum { epochs = 1 }; /* Open MPI 5.0.11 crashes in the second MPI_Session_init of a process */
#else
enum { epochs = 2 };
#endif
/* Sessions one after the other, no world. */
static int sessions_only(void) {
    for (int epoch = 0; epoch < epochs; ++epoch) {
        MPI_Session session;
        MPI_Group group;
        MPI_Comm comm;
        if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return 1;
        MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
        MPI_Comm_create_from_group(group, "interpose-test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
        MPI_Group_free(&group);
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        every_size(comm);
        MPI_Comm_free(&comm);
        MPI_Session_finalize(&session);
    }
    if (rank == 0) printf("%d sessions done on %d ranks\n", epochs, size);
    return wrong != 0;
}
#endif

static void mode_bigcount(void) {
    unsigned char* data = malloc(100000);
    for (int i = 0; i < 100000; ++i) data[i] = rank == 0 ? byte_at((size_t)i, 5) : 0;
    int (*broadcast)(void*, MPI_Count, MPI_Datatype, int, MPI_Comm) = NULL;
    *(void**)&broadcast = dlsym(RTLD_DEFAULT, "MPI_Bcast_c");
    if (broadcast == NULL) {
        if (rank == 0) printf("no MPI_Bcast_c\n");
        return;
    }
    for (int i = 0; i < 3; ++i) broadcast(data, 100000, MPI_BYTE, 0, MPI_COMM_WORLD);
    int bad = 0;
    for (int i = 0; i < 100000; ++i) bad += data[i] != byte_at((size_t)i, 5);
    expect(bad == 0, "MPI_Bcast_c");
    free(data);
}

/* Of Fortran, by a binding that calls the C function. */
static void mode_binding(void) {
#if !defined(MPI_ABI_VERSION) /* whose header knows no Fortran */
    void (*broadcast)(int*, int*, MPI_Fint*, int*, MPI_Fint*, MPI_Fint*);
    MPI_Fint type = MPI_Type_c2f(MPI_INT), comm = MPI_Comm_c2f(MPI_COMM_WORLD), error;
    int data = rank == 0, count = 1, root = 0;
    *(void**)&broadcast = dlsym(RTLD_DEFAULT, "mpi_bcast_");
    broadcast(&data, &count, &type, &root, &comm, &error);
    MPI_Bcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD);
    expect(data == 1, "a broadcast of Fortran's");
#endif
}

/* What may be called before MPI_Init, and before anything of ours is set up. */
static void asked_before_init(void) {
    int initialized = 1, finalized = 1, version = 0, subversion = -1, length = 0;
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    expect(!initialized && !finalized, "MPI_Initialized and MPI_Finalized before MPI_Init");
    MPI_Get_version(&version, &subversion);
    expect(version >= 3 && subversion >= 0, "MPI_Get_version before MPI_Init");
    MPI_Get_library_version(library, &length);
    expect(length > 0 && library[0] != 0, "MPI_Get_library_version before MPI_Init");
}

int main(int argc, char** argv) {
    const char* mode = argc > 1 ? argv[1] : "bcast";
    int provided = 0;
#ifdef HAS_SESSIONS
    if (strcmp(mode, "sessions") == 0) return sessions_only();
#endif
    asked_before_init();
    if (strcmp(mode, "threads") == 0) {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
        if (provided < MPI_THREAD_MULTIPLE) printf("no MPI_THREAD_MULTIPLE\n");
    } else {
        MPI_Init(&argc, &argv);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(mode, "bcast") == 0) mode_bcast();
    if (strcmp(mode, "errors") == 0) mode_errors();
    if (strcmp(mode, "binding") == 0) mode_binding();
    if (strcmp(mode, "fork") == 0) mode_fork();
    if (strcmp(mode, "callbacks") == 0) mode_callbacks();
    if (strcmp(mode, "files") == 0) mode_files(argv[0]);
    if (strcmp(mode, "threads") == 0 && provided == MPI_THREAD_MULTIPLE) mode_threads();
    if (strcmp(mode, "requests") == 0) mode_requests();
    if (strcmp(mode, "passing") == 0) mode_passing();
    if (strcmp(mode, "names") == 0) mode_names();
    if (strcmp(mode, "overhead") == 0) mode_overhead();
    if (strcmp(mode, "bigcount") == 0) mode_bigcount();
    if (strcmp(mode, "exit") == 0) {
        every_size(MPI_COMM_WORLD);
        exit(3); /* without MPI_Finalize */
    }
    if (strcmp(mode, "abort") == 0) {
        every_size(MPI_COMM_WORLD);
        if (rank == size - 1) MPI_Abort(MPI_COMM_WORLD, 5);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    if (strcmp(mode, "callbacks") == 0) expect(late_calls == 2, "the delete callback in MPI_Finalize");
    if (rank == 0 && !wrong) printf("done on %d ranks\n", size);
    return wrong != 0;
}
