/* An error handler that does not return: it leaves by the unwinder, through our frames, as one that throws an
 * exception of C++ or ends its thread, or by a longjmp over them; into the program, which goes on. Before it
 * does, it calls MPI itself. */
#include <setjmp.h>
#include <unwind.h>

#include "check.h"

static jmp_buf back;
static uintptr_t frame; /* of the function that called MPI: there it ends */
static int unwinds;
static MPI_Comm other;

static void broadcast(MPI_Comm comm, const char* when) {
    static unsigned char data[20000];
    memset(data, poison_value, sizeof data);
    if (check_rank == 0) fill(data, sizeof data, 7);
    MPI_Bcast(data, sizeof data, MPI_BYTE, 0, comm);
    if (expect_thalweg()) CHECK(was_accelerated(), "%s: %s", when, last_reason());
    verify(data, sizeof data, 7, when);
}

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                struct _Unwind_Exception* exception, struct _Unwind_Context* context,
                                void* argument) {
    (void)version, (void)class, (void)exception, (void)argument;
    if (_Unwind_GetCFA(context) > frame || (actions & _UA_END_OF_STACK) != 0) longjmp(back, 1);
    return _URC_NO_REASON;
}

static void leave(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    broadcast(other, "inside the handler");
    if (!unwinds) longjmp(back, 1);
    static struct _Unwind_Exception exception;
    memset(&exception, 0, sizeof exception);
    const _Unwind_Reason_Code why = _Unwind_ForcedUnwind(&exception, stop, NULL);
    FAIL("the unwinder came to an end: %d", (int)why);
}

/* Rank 1 expects more than rank 0 sends. Whether the call was left. */
static __attribute__((noinline)) int fail(MPI_Comm pair, unsigned char* data) {
    frame = (uintptr_t)__builtin_frame_address(0);
    if (setjmp(back) != 0) return 1;
    MPI_Bcast(data, check_rank == 0 ? 16384 : 20000, MPI_BYTE, 0, pair);
    return 0;
}

/* Far below every frame of the call that was left. */
static __attribute__((noinline)) void deeper(int times) {
    volatile char room[100000];
    room[0] = room[sizeof room - 1] = 0;
    if (times > 0)
        deeper(times - 1);
    else
        broadcast(MPI_COMM_WORLD, "after the error");
    room[1] = 0; /* no call of the last place, which would need no frame */
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    static unsigned char data[20000];
    MPI_Comm pair;
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    for (unwinds = 0; unwinds < 2 && expect_thalweg(); ++unwinds) {
        MPI_Comm_dup(MPI_COMM_WORLD, &pair);
        MPI_Comm_set_errhandler(pair, handler);
        set_option("THALWEG_BCAST", "linear");
        const int left = fail(pair, data);
        CHECK(left == (check_rank == 1), "the call was %sleft", left ? "" : "not ");
        if (check_rank == 0) broadcast(other, "beside the handler");
        /* The rest of the program works. */
        set_option("THALWEG_BCAST", "chain:chunk_bytes=4K");
        deeper(2);
        MPI_Comm_free(&pair);
    }
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&other);
    return check_end();
}
