/* What the ranks of one job agree on. The argument is the algorithm that every rank must have used, "native",
 * or "any". The environment differs between ranks in ways that the test program's caller chooses. */
#include "check.h"

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    const char* const want = argc > 1 ? argv[1] : "any";
    unsigned char* const data = guarded_new(200000);
    for (unsigned round = 0; round < 20; ++round) {
        const int root = (int)(round % (unsigned)check_size);
        memset(data, poison_value, 200000);
        if (check_rank == root) fill(data, 200000, round);
        MPI_Bcast(data, 200000, MPI_BYTE, root, MPI_COMM_WORLD);
        verify(data, 200000, round, want);
        thalweg_last_call call = {0};
        const int code = look_last_call ? look_last_call(&call, sizeof call) : THALWEG_NOT_FOUND;
        if (strcmp(want, "native") == 0)
            CHECK(code == THALWEG_NOT_FOUND || !call.accelerated, "accelerated by %s", call.algorithm);
        else if (strcmp(want, "any") != 0)
            CHECK(code == 0 && call.accelerated && strncmp(call.algorithm, want, strlen(want)) == 0,
                  "used \"%s\" (%s), not %s", call.algorithm, call.reason, want);
    }
    guarded_free(data, 200000);
    return check_end();
}
