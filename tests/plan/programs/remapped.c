/* Alltoallvs whose memory is another one's by the next call, at the same addresses: one rank alone gives the
 * pages of both buffers back to the system and gets new ones at the very place they had, while its arguments
 * and those of the others stay what they were. Persistent ones with a plan for each memory, nonblocking and
 * blocking ones, which may be kept and started again. Nothing may be known of an address but where it is.
 * THALWEG_TEST_TAKEN=1: all were taken. Then one plan whose memory is a file that all ranks have mapped, and
 * by the next start another one at the same addresses, or nobody else's.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallvInit* alltoallv_init;

enum { block = 96 << 10, rounds = 12, starts = 2 };

typedef enum { blocking, nonblocking, persistent, forms } Form;
static const char* const form_names[] = {"a blocking alltoallv", "a nonblocking alltoallv",
                                         "a persistent alltoallv"};

/* New pages: in the place of those at `where` if that is not null. */
static unsigned char* pages_at(void* where, size_t bytes) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (where == NULL ? 0 : MAP_FIXED);
    void* const got = mmap(where, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (got == MAP_FAILED) FAIL("no pages at %p", where);
    return got;
}

static void run(Form form, int round, const unsigned char* from, unsigned char* to, const int* counts,
                const int* places) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (form == persistent)
        alltoallv_init(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    for (int start = 0; start < (form == persistent ? starts : 1); ++start) {
        const unsigned seed = (unsigned)((round * starts + start) * 4096);
        for (int peer = 0; peer < check_size; ++peer) {
            fill((unsigned char*)from + places[peer], block, seed + (unsigned)(check_rank * 64 + peer));
            memset(to + places[peer], poison_value, block);
        }
        if (form == blocking)
            MPI_Alltoallv(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, MPI_COMM_WORLD);
        if (form == nonblocking)
            MPI_Ialltoallv(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, MPI_COMM_WORLD,
                           &request);
        if (getenv("THALWEG_TEST_TAKEN") != NULL && expect_thalweg() && start == 0)
            CHECK(was_accelerated(), "%s: %s", form_names[form], last_reason());
        if (form == persistent) MPI_Start(&request);
        if (form != blocking) MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int peer = 0; peer < check_size; ++peer)
            verify(to + places[peer], block, seed + (unsigned)(peer * 64 + check_rank), form_names[form]);
    }
    if (form == persistent) MPI_Request_free(&request);
}

static unsigned char* file_at(void* where, const char* name, size_t bytes) {
    const int file = shm_open(name, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && ftruncate(file, (off_t)bytes) == 0, "no file %s", name);
    void* const got =
        mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (where == NULL ? 0 : MAP_FIXED), file, 0);
    CHECK(got != MAP_FAILED, "no pages of %s", name);
    close(file);
    return got;
}

/* Two files of each rank, which all ranks have mapped. */
static void name_of_file(char* name, size_t room, int job, int rank, int which) {
    snprintf(name, room, "/thalweg-remapped-%d-%d-%d", job, rank, which);
}

static void one_plan_over_files(unsigned char* to, const int* counts, const int* places) {
    const size_t bytes = (size_t)check_size * block;
    unsigned char** const seen = calloc((size_t)check_size * 2, sizeof *seen);
    char name[80];
    int job = (int)getpid();
    MPI_Request request;
    MPI_Bcast(&job, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 2 * check_size; ++i) {
        name_of_file(name, sizeof name, job, i / 2, i % 2);
        seen[i] = file_at(NULL, name, bytes);
    }
    name_of_file(name, sizeof name, job, check_rank, 0);
    unsigned char* const from = file_at(NULL, name, bytes);
    alltoallv_init(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &request);
    for (int start = 0; start < rounds; ++start) {
        if (start / 2 % check_size == check_rank) { /* the other file, or pages of this rank alone */
            name_of_file(name, sizeof name, job, check_rank, start % 4 == 0);
            if (start % 4 == 1)
                pages_at(from, bytes);
            else
                file_at(from, name, bytes);
        }
        for (int peer = 0; peer < check_size; ++peer)
            fill(from + places[peer], block, (unsigned)(start * 4096 + check_rank * 64 + peer));
        memset(to, poison_value, bytes);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int peer = 0; peer < check_size; ++peer)
            verify(to + places[peer], block, (unsigned)(start * 4096 + peer * 64 + check_rank),
                   "a plan over files");
    }
    MPI_Request_free(&request);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2 * check_size; ++i) {
        name_of_file(name, sizeof name, job, i / 2, i % 2);
        if (i / 2 == check_rank) shm_unlink(name);
        munmap(seen[i], bytes);
    }
    munmap(from, bytes);
    free(seen);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    *(void**)&alltoallv_init = dlsym(RTLD_DEFAULT, "MPI_Alltoallv_init");
    const size_t bytes = (size_t)check_size * block;
    int* const counts = malloc((size_t)check_size * sizeof(int));
    int* const places = malloc((size_t)check_size * sizeof(int));
    for (int peer = 0; peer < check_size; ++peer) counts[peer] = block, places[peer] = peer * block;
    unsigned char *const from = pages_at(NULL, bytes), *const to = pages_at(NULL, bytes);
    /* The first one is native, and the barrier sets up what the next needs. */
    int* const none = calloc((size_t)check_size, sizeof(int));
    MPI_Request request;
    MPI_Ialltoallv(from, none, none, MPI_BYTE, to, none, none, MPI_BYTE, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    free(none);
    for (Form form = blocking; form < forms; ++form) {
        /* Plans of the library are not ours to judge. */
        if (form == persistent && (alltoallv_init == NULL || getenv("THALWEG_TEST_TAKEN") == NULL)) continue;
        for (int round = 0; round < rounds; ++round) {
            if (round / 2 % check_size == check_rank) {
                pages_at(from, bytes);
                pages_at(to, bytes);
            }
            run(form, round, from, to, counts, places);
        }
    }
    if (alltoallv_init != NULL && getenv("THALWEG_TEST_TAKEN") != NULL)
        one_plan_over_files(to, counts, places);
    munmap(from, bytes);
    munmap(to, bytes);
    free(counts);
    free(places);
    return check_end();
}
