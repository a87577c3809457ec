/* Communicators between groups that met by MPI_Comm_accept and MPI_Comm_connect, or by MPI_Comm_join: what
 * such an intercommunicator carries is the library's, on one that was merged from it bytes are right and all
 * ranks do alike, and the world stays ours.
 *
 *     connected       two halves of the world, whose rank 0 publishes a port
 *     connected join  ranks 0 and 1, which have a socket between them
 */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

enum { bytes = 123457, times = 8, calls = 12 };

static unsigned char* data;

static void use(MPI_Comm comm, int root, int is_root, unsigned seed, const char* what) {
    static const unsigned char mark = 0x5a;
    memset(data, mark, bytes);
    if (is_root) fill(data, bytes, seed);
    const uint64_t before = looked_at();
    MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
    if (root != MPI_PROC_NULL) verify(data, bytes, seed, what);
    int inter;
    MPI_Comm_test_inter(comm, &inter);
    if (inter) {
        CHECK(looked_at() == before || !was_accelerated(), "%s: an intercommunicator's is ours", what);
        return;
    }
    int ways[2];
    ways[0] = looked_at() != before && was_accelerated();
    ways[1] = -ways[0];
    MPI_Allreduce(MPI_IN_PLACE, ways, 2, MPI_INT, MPI_MAX, comm);
    CHECK(ways[0] == -ways[1], "%s: some ranks ran it, others did not: %s", what, last_reason());
}

static void use_both(MPI_Comm inter, int first, unsigned seed) {
    int rank;
    MPI_Comm_rank(inter, &rank);
    /* From rank 0 of the first group to all of the second one. */
    use(inter, !first ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, first && rank == 0, seed, "between groups");
    MPI_Comm merged;
    MPI_Intercomm_merge(inter, !first, &merged);
    MPI_Comm_rank(merged, &rank);
    for (unsigned call = 1; call <= calls; ++call) use(merged, 0, rank == 0, seed + call, "merged");
    MPI_Comm_free(&merged);
}

static void connect_halves(void) {
    const int first = check_rank % 2 == 0;
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, first, check_rank, &half);
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (check_rank == 0 && MPI_Open_port(MPI_INFO_NULL, port) != MPI_SUCCESS) port[0] = '\0';
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (port[0] == '\0') SKIP("the library opens no port");
    for (unsigned i = 0; i < times; ++i) {
        if (first)
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
        else
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
        use_both(inter, first, 100 * i);
        use(half, 0, check_rank < 2, 7, "a half");
        MPI_Comm_disconnect(&inter);
    }
    if (check_rank == 0) MPI_Close_port(port);
    MPI_Comm_free(&half);
}

/* A connected socket of ranks 0 and 1. */
static int socket_between(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int made = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(made >= 0, "no socket");
    if (check_rank == 0)
        CHECK(bind(made, (struct sockaddr*)&address, sizeof address) == 0 && listen(made, 1) == 0 &&
                  getsockname(made, (struct sockaddr*)&address, &length) == 0,
              "no port");
    MPI_Bcast(&address, sizeof address, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (check_rank == 0) {
        const int accepted = accept(made, NULL, NULL);
        close(made);
        return accepted;
    }
    CHECK(connect(made, (struct sockaddr*)&address, sizeof address) == 0, "no connection");
    return made;
}

static void join(void) {
    const int between = socket_between();
    MPI_Comm inter;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int joined = MPI_Comm_join(between, &inter) == MPI_SUCCESS && inter != MPI_COMM_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Allreduce(MPI_IN_PLACE, &joined, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!joined) SKIP("the library joins nobody");
    use_both(inter, check_rank == 0, 50);
    MPI_Comm_disconnect(&inter);
    close(between);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    data = guarded_new(bytes);
    use(MPI_COMM_WORLD, 0, check_rank == 0, 1, "the world");
    if (argc > 1 && strcmp(argv[1], "join") == 0)
        join();
    else
        connect_halves();
    for (unsigned call = 0; call < calls; ++call) use(MPI_COMM_WORLD, 0, check_rank == 0, call, "the world");
    if (expect_thalweg()) CHECK(was_accelerated(), "the world's broadcasts are not ours: %s", last_reason());
    guarded_free(data, bytes);
    return check_end();
}
