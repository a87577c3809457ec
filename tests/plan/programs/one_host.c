/* All ranks on one host and nothing asked for: broadcasts go to the native library without being looked at,
 * on every communicator and below what any row takes, until an algorithm is asked for, and again afterwards.
 */
#include <stddef.h>

#include "check.h"
#if !defined(MPI_ABI_VERSION)
#include "fortran.h"
#endif

enum { most_bytes = 200000 }; /* less than what the built-in rows take */

static unsigned char* data;
static unsigned seed = 0;

static void broadcast(size_t bytes, MPI_Comm comm) {
    const int root = (int)(++seed % (unsigned)check_size);
    memset(data, poison_value, bytes);
    if (check_rank == root) fill(data, bytes, seed);
    MPI_Bcast(data, (int)bytes, MPI_BYTE, root, comm);
    verify(data, bytes, seed, "a broadcast on one host");
}

static thalweg_last_call last(int expected) {
    thalweg_last_call call;
    memset(&call, 0xff, sizeof call);
    const int code = look_last_call(&call, sizeof call);
    CHECK(code == expected, "thalweg_get_last_call returned %d, not %d: %s", code, expected, call.reason);
    return call;
}

/* Programs made with other headers: of an older one, whose structure ended with `reason`, nothing behind it
 * is written; of a newer one, what is not known here is 0; and nothing at all of one that is shorter than
 * any, or where nothing is known. */
static void of_other_headers(int expected) {
    enum { first = offsetof(thalweg_last_call, transport), more = sizeof(thalweg_last_call) + 40 };
    const thalweg_last_call known = last(expected);
    unsigned char* const older = guarded_new(first);
    CHECK(look_last_call((thalweg_last_call*)older, first) == expected, "an older structure is refused");
    CHECK(memcmp(older, &known, first) == 0, "an older structure got something else");
    guarded_free(older, first);
    unsigned char* const newer = guarded_new(more);
    CHECK(look_last_call((thalweg_last_call*)newer, more) == expected, "a newer structure is refused");
    CHECK(memcmp(newer, &known, sizeof known) == 0, "a newer structure got something else");
    for (size_t i = sizeof known; i < more; ++i) CHECK(newer[i] == 0, "unknown byte %zu was left", i);
    memset(newer, poison_value, more);
    CHECK(look_last_call((thalweg_last_call*)newer, first - 1) == THALWEG_ERR_ARGUMENT, "no room, and taken");
    CHECK(look_last_call(NULL, more) == THALWEG_ERR_ARGUMENT, "null is taken");
    for (size_t i = 0; i < more; ++i) CHECK(newer[i] == poison_value, "byte %zu of a refused one", i);
    guarded_free(newer, more);
}

/* Every broadcast is looked at, whatever else is not, and there was none. */
static void nothing_known(void) {
    thalweg_last_call call;
    const int code = look_last_call(&call, sizeof call);
    CHECK(code == THALWEG_NOT_FOUND, "thalweg_get_last_call returned %d: %s", code, call.reason);
}

static void unseen(MPI_Comm comm) {
    static const size_t sizes[] = {0, 1, 8, 4096, most_bytes};
    for (int i = 0; i < 5; ++i) {
        broadcast(sizes[i], comm);
        const thalweg_last_call call = last(THALWEG_DECLINED);
        CHECK(!call.accelerated && call.bytes == 0 && strstr(call.reason, "one host"), "seen: %s",
              call.reason);
    }
}

/* Nothing would advance them: the first is looked at, and all are counted, once each, whichever language they
 * are made in. */
static void unattended(MPI_Comm comm, int in_fortran) {
    MPI_Request request;
#if !defined(MPI_ABI_VERSION)
    if (in_fortran) {
        MPI_Fint handle = MPI_Comm_c2f(comm), made, code;
        void (*call)();
        *(void**)&call = fortran("mpi_ibarrier", 0);
        call(&handle, &made, &code);
        request = MPI_Request_f2c(made);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    }
#endif
    (void)in_fortran;
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    data = guarded_new(most_bytes);
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    unseen(MPI_COMM_WORLD);
    unseen(twin);
    of_other_headers(THALWEG_DECLINED);
    set_option("THALWEG_BCAST", "linear");
    nothing_known();
    for (int i = 0; i < 5; ++i) {
        broadcast(most_bytes, i % 2 ? twin : MPI_COMM_WORLD);
        const thalweg_last_call call = last(THALWEG_OK);
        CHECK(call.accelerated == (check_size > 1), "native: %s", last_reason());
        if (!call.accelerated) continue;
        CHECK(strcmp(call.transport, "mpi") == 0, "over \"%s\"", call.transport);
        CHECK(strcmp(call.waits, "spin") == 0 || strcmp(call.waits, "naps") == 0, "waits: \"%s\"",
              call.waits);
    }
    of_other_headers(THALWEG_OK);
    /* What is asked for of others takes nothing back. */
    set_option("THALWEG_ALLREDUCE", "recursive_doubling");
    CHECK(last(THALWEG_OK).accelerated == (check_size > 1), "forgotten: %s", last_reason());
    set_option("THALWEG_ALLREDUCE", NULL);
    nothing_known();
    set_option("THALWEG_BCAST", "native");
    for (int i = 0; i < 3; ++i) {
        broadcast(most_bytes, MPI_COMM_WORLD);
        const thalweg_last_call call = last(THALWEG_OK);
        CHECK(!call.accelerated, "accelerated although the native library was asked for");
        CHECK(call.transport[0] == 0 && call.waits[0] == 0, "over \"%s\", waits: \"%s\"", call.transport,
              call.waits);
    }
    set_option("THALWEG_BCAST", NULL);
    unseen(MPI_COMM_WORLD);
    unseen(twin);
    int languages = 1;
#if !defined(MPI_ABI_VERSION)
    languages += has_fortran();
#endif
    for (int i = 0; i < 30; ++i) unattended(i % 2 ? twin : MPI_COMM_WORLD, i / 2 % languages);
    set_option("THALWEG_BCAST", "linear"); /* and still the report says what was handed on before */
    MPI_Comm_free(&twin);
    guarded_free(data, most_bytes);
    return check_end();
}
