/* Between Thalweg and the MPI library: one call fails on one rank, which has taken part in it.
 *
 *   THALWEG_TEST_FAULT=Allreduce:3:1    the third MPI_Allreduce that Thalweg itself makes on rank 1; or
 * (with or without a request), Allgather, Allgatherv, Alltoall, Bcast, Comm_create, Comm_group, Win_create,
 * Win_free; Win_lock, which locks nothing then; or Comm_split: the program's own
 * THALWEG_TEST_FAULT=Isend:9:0         or Irecv or Recv_init, which begin nothing then, or Testsome; also
 * THALWEG_TEST_FAULT=Isend:9:0:lost    it succeeds, and nothing arrives
 * THALWEG_TEST_FAULT=Isend:9:0:12      it is made, 12 s late
 * THALWEG_TEST_FAULT=count:1 none: rank 1 says at its end how often each was called
 *
 * Preloaded behind the preload object. It defines PMPI_Init, so that Thalweg takes it for the library's own
 * file; what it lacks is found in the library, which it is linked to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    Allreduce,
    Allgather,
    Allgatherv,
    Alltoall,
    Bcast,
    Comm_create,
    Comm_group,
    Comm_split,
    Isend,
    Irecv,
    Recv_init,
    Testsome,
    Win_create,
    Win_free,
    Win_lock,
    functions
};
static const char* const names[functions] = {"Allreduce",  "Allgather",   "Allgatherv", "Alltoall",
                                             "Bcast",      "Comm_create", "Comm_group", "Comm_split",
                                             "Isend",      "Irecv",       "Recv_init",  "Testsome",
                                             "Win_create", "Win_free",    "Win_lock"};
static int calls[functions], made;

/* How many calls have failed here: for a program that sets the variable itself. */
int thalweg_test_faults(void) { return made; }
/* Communicators that Thalweg has made, as long as the variable had any value. */
int thalweg_test_communicators(void) { return calls[Comm_create]; }
/* The next call of each is the first one. */
void thalweg_test_count_anew(void) { memset(calls, 0, sizeof calls); }

static void* next_of(const char* name) {
    void* const address = dlsym(RTLD_NEXT, name);
    if (address == NULL) abort();
    return address;
}

static int own_rank(void) {
    int rank = 0;
    int (*comm_rank)(MPI_Comm, int*);
    *(void**)&comm_rank = next_of("PMPI_Comm_rank");
    comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/* Called by Thalweg, and this is the call that fails. */
static int fails(int function, const void* caller) {
    const char* const wish = getenv("THALWEG_TEST_FAULT");
    char name[32];
    int which = 0, rank = 0;
    Dl_info from;
    if (wish == NULL) return 0;
    if (function != Comm_split &&
        (dladdr(caller, &from) == 0 || strstr(from.dli_fname, "libthalweg-") == NULL))
        return 0;
    ++calls[function];
    const int failing = sscanf(wish, "%31[A-Za-z_]:%d:%d", name, &which, &rank) == 3 &&
                        strcmp(name, names[function]) == 0 && calls[function] == which && own_rank() == rank;
    made += failing;
    return failing;
}

#define CALLER __builtin_return_address(0)
#define FAULTY(symbol, function, parameters, arguments) \
    int symbol parameters {                             \
        int(*next) parameters;                          \
        const int failing = fails(function, CALLER);    \
        *(void**)&next = next_of(#symbol);              \
        const int code = next arguments;                \
        return failing ? MPI_ERR_OTHER : code;          \
    }

/* THALWEG_TEST_FAULT=Rget: gets that another thread than the first one asks for are never made. */
int PMPI_Rget(void* to, int count, MPI_Datatype type, int target, MPI_Aint there, int there_count,
              MPI_Datatype there_type, MPI_Win window, MPI_Request* request) {
    const char* const wish = getenv("THALWEG_TEST_FAULT");
    int (*next)(void*, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win, MPI_Request*);
    *(void**)&next = next_of("PMPI_Rget");
    if (wish != NULL && strcmp(wish, "Rget") == 0 && gettid() != getpid()) {
        *request = MPI_REQUEST_NULL;
        return MPI_ERR_OTHER;
    }
    return next(to, count, type, target, there, there_count, there_type, window, request);
}
/* THALWEG_TEST_FAULT=Put: puts that another thread than the first one asks for move nothing. */
int PMPI_Put(const void* from, int count, MPI_Datatype type, int target, MPI_Aint there, int there_count,
             MPI_Datatype there_type, MPI_Win window) {
    const char* const wish = getenv("THALWEG_TEST_FAULT");
    int (*next)(const void*, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win);
    *(void**)&next = next_of("PMPI_Put");
    if (wish != NULL && strcmp(wish, "Put") == 0 && gettid() != getpid()) return MPI_SUCCESS;
    return next(from, count, type, target, there, there_count, there_type, window);
}
/* THALWEG_TEST_FAULT=Win_test: where another thread than the first one asks, no epoch is ever over. */
int PMPI_Win_test(MPI_Win window, int* over) {
    const char* const wish = getenv("THALWEG_TEST_FAULT");
    int (*next)(MPI_Win, int*);
    *(void**)&next = next_of("PMPI_Win_test");
    if (wish == NULL || strcmp(wish, "Win_test") != 0 || gettid() == getpid()) return next(window, over);
    *over = 0;
    return MPI_SUCCESS;
}
/* THALWEG_TEST_FAULT=Win_create: there are no windows. */
int PMPI_Win_create(void* base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* window) {
    const char* const wish = getenv("THALWEG_TEST_FAULT");
    int (*next)(void*, MPI_Aint, int, MPI_Info, MPI_Comm, MPI_Win*);
    *(void**)&next = next_of("PMPI_Win_create");
    if (wish != NULL && strcmp(wish, "Win_create") == 0) {
        *window = MPI_WIN_NULL;
        return MPI_ERR_OTHER;
    }
    const int failing = fails(Win_create, CALLER);
    const int code = next(base, bytes, unit, info, comm, window);
    return failing ? MPI_ERR_OTHER : code;
}
int PMPI_Win_lock(int type, int rank, int assertion, MPI_Win window) {
    int (*next)(int, int, int, MPI_Win);
    *(void**)&next = next_of("PMPI_Win_lock");
    return fails(Win_lock, CALLER) ? MPI_ERR_OTHER : next(type, rank, assertion, window);
}
/* THALWEG_TEST_FAULT=Ialltoall: by a class that nothing of Thalweg's has. */
static MPI_Comm exchanged_on, failed_on;
/* Whether the latest one was on the communicator of the latest that failed. */
int thalweg_test_failed_there(void) { return exchanged_on == failed_on; }
int PMPI_Ialltoall(const void* send, int sent, MPI_Datatype send_type, void* receive, int received,
                   MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
    const char* const wish = getenv("THALWEG_TEST_FAULT");
    int (*next)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Request*);
    *(void**)&next = next_of("PMPI_Ialltoall");
    exchanged_on = comm;
    if (wish == NULL || strcmp(wish, "Ialltoall") != 0)
        return next(send, sent, send_type, receive, received, receive_type, comm, request);
    failed_on = comm;
    *request = MPI_REQUEST_NULL;
    return MPI_ERR_NO_SPACE;
}
/* How many communicators Thalweg has made of a group by the tag of the one before, since it was last asked:
 * two threads may do so at once. */
static int group_tag = -1, same_group_tags;
int thalweg_test_same_group_tags(void) {
    const int same = same_group_tags;
    group_tag = -1;
    same_group_tags = 0;
    return same;
}
int PMPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* twin) {
    Dl_info from;
    int (*next)(MPI_Comm, MPI_Group, int, MPI_Comm*);
    *(void**)&next = next_of("PMPI_Comm_create_group");
    if (dladdr(CALLER, &from) != 0 && strstr(from.dli_fname, "libthalweg-") != NULL) {
        same_group_tags += tag == group_tag;
        group_tag = tag;
    }
    return next(comm, group, tag, twin);
}
/* How often Thalweg has looked for ranks of a group in another. */
static int translated;
int thalweg_test_translations(void) { return translated; }
int PMPI_Group_translate_ranks(MPI_Group of, int count, const int* ranks, MPI_Group in, int* there) {
    Dl_info from;
    int (*next)(MPI_Group, int, const int*, MPI_Group, int*);
    *(void**)&next = next_of("PMPI_Group_translate_ranks");
    translated += dladdr(CALLER, &from) != 0 && strstr(from.dli_fname, "libthalweg-") != NULL;
    return next(of, count, ranks, in, there);
}
/* THALWEG_TEST_FAULT=integers: Fortran's have eight bytes. */
int PMPI_Type_size_x(MPI_Datatype type, MPI_Count* bytes) {
    const char* const wish = getenv("THALWEG_TEST_FAULT");
    int (*next)(MPI_Datatype, MPI_Count*);
    *(void**)&next = next_of("PMPI_Type_size_x");
    const int code = next(type, bytes);
    if (wish != NULL && strcmp(wish, "integers") == 0 && type == MPI_INTEGER) *bytes = 8;
    return code;
}
/* THALWEG_TEST_FAULT=handler: once Thalweg has put its own error handler in the place of the program's, that
 * sets another, as a second thread of it might. */
int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
    const char* const wish = getenv("THALWEG_TEST_FAULT");
    Dl_info from;
    int (*next)(MPI_Comm, MPI_Errhandler);
    *(void**)&next = next_of("PMPI_Comm_set_errhandler");
    const int code = next(comm, handler);
    if (wish != NULL && strcmp(wish, "handler") == 0 && handler == MPI_ERRORS_RETURN &&
        dladdr(CALLER, &from) != 0 && strstr(from.dli_fname, "libthalweg-") != NULL)
        next(comm, MPI_ERRORS_ARE_FATAL);
    return code;
}
/* THALWEG_TEST_FAULT=Grequest_complete: generalized requests are complete a while after they are said to be.
 */
int PMPI_Grequest_complete(MPI_Request request) {
    const char* const wish = getenv("THALWEG_TEST_FAULT");
    int (*next)(MPI_Request);
    *(void**)&next = next_of("PMPI_Grequest_complete");
    if (wish != NULL && strcmp(wish, "Grequest_complete") == 0) usleep(50000);
    return next(request);
}
int PMPI_Init(int* argc, char*** argv) {
    int (*next)(int*, char***);
    *(void**)&next = next_of("PMPI_Init");
    return next(argc, argv);
}
FAULTY(PMPI_Allreduce, Allreduce,
       (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm comm),
       (send, receive, count, type, operation, comm))
FAULTY(PMPI_Allgather, Allgather,
       (const void* send, int sent, MPI_Datatype send_type, void* receive, int received,
        MPI_Datatype receive_type, MPI_Comm comm),
       (send, sent, send_type, receive, received, receive_type, comm))
FAULTY(PMPI_Allgatherv, Allgatherv,
       (const void* send, int sent, MPI_Datatype send_type, void* receive, const int* counts,
        const int* places, MPI_Datatype receive_type, MPI_Comm comm),
       (send, sent, send_type, receive, counts, places, receive_type, comm))
FAULTY(PMPI_Alltoall, Alltoall,
       (const void* send, int sent, MPI_Datatype send_type, void* receive, int received,
        MPI_Datatype receive_type, MPI_Comm comm),
       (send, sent, send_type, receive, received, receive_type, comm))
FAULTY(PMPI_Win_free, Win_free, (MPI_Win * window), (window))
FAULTY(PMPI_Bcast, Bcast, (void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),
       (buffer, count, type, root, comm))

/* The same by way of a request, where ranks sleep: what fails has been completed. */
#define FAULTY_REQUEST(symbol, function, parameters, arguments)                    \
    int symbol parameters {                                                        \
        int(*next) parameters;                                                     \
        const int failing = fails(function, CALLER);                               \
        *(void**)&next = next_of(#symbol);                                         \
        const int code = next arguments;                                           \
        if (failing && code == MPI_SUCCESS) PMPI_Wait(request, MPI_STATUS_IGNORE); \
        return failing ? MPI_ERR_OTHER : code;                                     \
    }
FAULTY_REQUEST(PMPI_Iallreduce, Allreduce,
               (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op operation,
                MPI_Comm comm, MPI_Request* request),
               (send, receive, count, type, operation, comm, request))
FAULTY_REQUEST(PMPI_Ibcast, Bcast,
               (void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request),
               (buffer, count, type, root, comm, request))
/* THALWEG_TEST_FAULT=crosswise: of two threads that make a communicator each, the first one has its own a
 * second later than the other on even ranks, and the other way round on odd ones. */
int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
    const char* const wish = getenv("THALWEG_TEST_FAULT");
    int (*next)(MPI_Comm, MPI_Group, MPI_Comm*);
    const int failing = fails(Comm_create, CALLER);
    *(void**)&next = next_of("PMPI_Comm_create");
    const int code = next(comm, group, made);
    if (wish != NULL && strcmp(wish, "crosswise") == 0 && (gettid() == getpid()) == (own_rank() % 2 == 0))
        sleep(1);
    return failing ? MPI_ERR_OTHER : code;
}
FAULTY(PMPI_Comm_group, Comm_group, (MPI_Comm comm, MPI_Group* group), (comm, group))

/* Messages. One that is lost goes to its own rank, where nobody expects it. */
static const char* kind_of_fault(void) {
    const char* kind = getenv("THALWEG_TEST_FAULT");
    for (int i = 0; i < 3 && kind != NULL; ++i) kind = strchr(kind + 1, ':');
    return kind == NULL ? "" : kind + 1;
}
int PMPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
    int (*next)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
    *(void**)&next = next_of("PMPI_Isend");
    if (fails(Isend, CALLER)) {
        const char* const kind = kind_of_fault();
        if (*kind == '\0') {
            *request = MPI_REQUEST_NULL;
            return MPI_ERR_OTHER;
        }
        if (strcmp(kind, "lost") == 0) return next(data, 0, type, own_rank(), tag, comm, request);
        sleep((unsigned)atoi(kind));
    }
    return next(data, count, type, to, tag, comm, request);
}
int PMPI_Recv_init(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                   MPI_Request* request) {
    int (*next)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
    *(void**)&next = next_of("PMPI_Recv_init");
    if (!fails(Recv_init, CALLER)) return next(data, count, type, from, tag, comm, request);
    *request = MPI_REQUEST_NULL;
    return MPI_ERR_OTHER;
}
int PMPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
               MPI_Request* request) {
    int (*next)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
    *(void**)&next = next_of("PMPI_Irecv");
    if (!fails(Irecv, CALLER)) return next(data, count, type, from, tag, comm, request);
    *request = MPI_REQUEST_NULL;
    return MPI_ERR_OTHER;
}
FAULTY(PMPI_Testsome, Testsome,
       (int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses),
       (count, requests, completed, indices, statuses))

FAULTY(MPI_Comm_split, Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made),
       (comm, color, key, made))

__attribute__((destructor)) static void say(void) {
    const char* const wish = getenv("THALWEG_TEST_FAULT");
    if (wish == NULL || strncmp(wish, "count:", 6) != 0 || calls[Allreduce] == 0) return;
    for (int i = 0; i < functions; ++i) fprintf(stderr, "called %s %d\n", names[i], calls[i]);
}
