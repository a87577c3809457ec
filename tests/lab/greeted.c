/* Ranks that have an endpoint of libucp to some others, made for an earlier communicator, while those have
 * none to them: the first messages of the next communicator, more than one frame each and of which some ask
 * for an answer, meet endpoints that are made as they arrive. Every byte is checked.
 */
#include "../plan/programs/check.h"

enum { block = 256 << 10, calls = 9, longest_s = 100 };

int main(int argc, char** argv) {
    static const char* const algorithms[] = {"hierarchical", "ring", "spread", "ring"};
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    alarm(longest_s);
    const size_t all = (size_t)check_size * block;
    unsigned char* const sent = guarded_new(block);
    unsigned char* const got = guarded_new(all);
    for (unsigned each = 0; each < sizeof algorithms / sizeof *algorithms; ++each) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        set_option("THALWEG_ALLGATHER", algorithms[each]);
        for (int call = 0; call < calls; ++call) {
            MPI_Request request;
            fill(sent, block, (unsigned)(100 * call + check_rank));
            memset(got, poison_value, all);
            MPI_Iallgather(sent, block, MPI_BYTE, got, block, MPI_BYTE, comm, &request);
            if (call == calls - 1) CHECK(was_accelerated(), "%s: %s", algorithms[each], last_reason());
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            for (int rank = 0; rank < check_size; ++rank)
                verify(got + (size_t)rank * block, block, (unsigned)(100 * call + rank), algorithms[each]);
            MPI_Barrier(comm);
        }
        MPI_Comm_free(&comm);
    }
    guarded_free(sent, block);
    guarded_free(got, all);
    return check_end();
}
