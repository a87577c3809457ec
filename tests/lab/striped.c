/* Two faces of 1 MiB each way between each rank of one host and one of the other, one in one piece and one
 * whose rows lie apart, and what each rail of this host sent meanwhile. Every integer that arrives is
 * checked, and what lies between rows.
 *
 *     striped planned|blocking|nonblocking
 */
#include "links.h"

enum { faces = 2, face = 1 << 18, row = 256, calls = 5 };
enum { all = face + 2 * face }; /* integers: the second face has as much between its rows */

typedef int AlltoallwInit(const void*, const int*, const MPI_Aint*, const MPI_Datatype*, void*, const int*,
                          const MPI_Aint*, const MPI_Datatype*, MPI_Comm, MPI_Info, MPI_Request*);

static int place_of(int which, int i) { return which == 0 ? i : face + i / row * 2 * row + i % row; }

static int value_of(int rank, int which, int call, int i) {
    return ((rank * faces + which) * calls + call + 1) * face + i;
}

static void examine(const int* got, int peer, int call) {
    for (int which = 0; which < faces; ++which)
        for (int i = 0; i < face; ++i)
            CHECK(got[place_of(which, i)] == value_of(peer, which, call, i), "call %d, face %d: integer %d",
                  call, which, i);
    for (int i = 0; i < face; ++i)
        CHECK(got[face + i / row * 2 * row + row + i % row] == -1, "call %d: %d behind a row", call, i);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    const char* const form = argc > 1 ? argv[1] : "planned";
    CHECK(check_size % 2 == 0, "as many ranks on one host as on the other");
    AlltoallwInit* alltoallw_init;
    *(void**)&alltoallw_init = find_or_skip("MPI_Neighbor_alltoallw_init");
    const int here = check_size / 2, peer = (check_rank + here) % check_size;
    const int peers[faces] = {peer, peer}, counts[faces] = {1, 1};
    const MPI_Aint places[faces] = {0, face * sizeof(int)};
    MPI_Datatype types[faces];
    MPI_Type_contiguous(face, MPI_INT, &types[0]);
    MPI_Type_vector(face / row, row, 2 * row, MPI_INT, &types[1]);
    for (int which = 0; which < faces; ++which) MPI_Type_commit(&types[which]);
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, faces, peers, MPI_UNWEIGHTED, faces, peers, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    int* const sent = malloc(all * sizeof(int));
    int* const got = malloc(all * sizeof(int));
    CHECK(sent != NULL && got != NULL, "no memory");
    memset(sent, 0, all * sizeof(int));
    MPI_Request request = MPI_REQUEST_NULL;
    const int planned = strcmp(form, "planned") == 0, nonblocking = strcmp(form, "nonblocking") == 0;
    if (planned) {
        alltoallw_init(sent, counts, places, types, got, counts, places, types, comm, MPI_INFO_NULL,
                       &request);
        CHECK(was_accelerated(), "%s: %s", form, last_reason());
    }
    unsigned long long bytes[2] = {0, 0};
    for (int call = 0; call < calls; ++call) {
        for (int which = 0; which < faces; ++which)
            for (int i = 0; i < face; ++i) sent[place_of(which, i)] = value_of(check_rank, which, call, i);
        for (int i = 0; i < all; ++i) got[i] = -1;
        MPI_Barrier(MPI_COMM_WORLD);
        if (call == 1) /* the first one finds its peers */
            for (int rail = 0; rail < 2; ++rail) bytes[rail] = sent_over(rail);
        if (planned) {
            MPI_Start(&request);
        } else if (nonblocking) {
            MPI_Ineighbor_alltoallw(sent, counts, places, types, got, counts, places, types, comm, &request);
            CHECK(was_accelerated(), "%s: %s", form, last_reason());
        } else {
            MPI_Neighbor_alltoallw(sent, counts, places, types, got, counts, places, types, comm);
            CHECK(was_accelerated(), "%s: %s", form, last_reason());
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        examine(got, peer, call);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* the peer has all of it */
    for (int rail = 0; rail < 2; ++rail) bytes[rail] = sent_over(rail) - bytes[rail];
    if (check_rank == 0)
        printf("bytes %llu %llu of %llu\n", bytes[0], bytes[1],
               here * (calls - 1ull) * faces * face * sizeof(int));
    if (planned) MPI_Request_free(&request);
    for (int which = 0; which < faces; ++which) MPI_Type_free(&types[which]);
    MPI_Comm_free(&comm);
    free(sent);
    free(got);
    return check_end();
}
