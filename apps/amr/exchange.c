#include "amr/exchange.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

const char* const amr_names[amr_versions] = {"isend", "waitall", "persistent", "neighbor", "init"};

/* The messages of one axis with one neighbouring rank: links one behind the other, in the mesh's order. */
typedef struct {
    int rank, sent_links, received_links; /* of the stage's lists, those up to here */
    int sent, received;                   /* cells */
    MPI_Aint send_at, receive_at;         /* bytes into the stage's memory */
} Neighbour;

typedef struct {
    int count;
    Neighbour* neighbours;
    AmrLink *sent, *received, *own; /* by neighbour; and between blocks of this rank */
    int own_links;
    AmrCell *out, *in;
    MPI_Comm comm; /* of versions on a graph */
    MPI_Request *receives, *sends, plan;
    int *send_counts, *receive_counts;
    MPI_Aint *send_at, *receive_at;
    MPI_Datatype* types;
} Stage;

struct AmrExchange {
    const AmrMesh* mesh;
    AmrCell* const* data;
    AmrVersion version;
    Stage stages[amr_axes];
};

/* Links from one rank to another, behind those that are there; their cells. */
static int pick(const AmrMesh* mesh, const AmrLink* all, int count, int from, int to, AmrLink* picked,
                int* number) {
    int cells = 0;
    for (int i = 0; i < count; ++i) {
        if (mesh->leaves[all[i].from].owner != from || mesh->leaves[all[i].to].owner != to) continue;
        picked[(*number)++] = all[i];
        cells += amr_link_cells(mesh, &all[i]);
    }
    return cells;
}

/* order: all ranks, those of other hosts first. 0: no memory. */
static int find_stage(const AmrMesh* mesh, int axis, int rank, int ranks, const int* order, Stage* stage) {
    AmrLink* all;
    const int count = amr_links(mesh, axis, &all);
    if (all == NULL) return 0;
    const size_t links = (size_t)count + 1, most = (size_t)ranks;
    stage->neighbours = malloc(most * sizeof *stage->neighbours);
    stage->sent = malloc(links * sizeof *stage->sent);
    stage->received = malloc(links * sizeof *stage->received);
    stage->own = malloc(links * sizeof *stage->own);
    stage->receives = malloc(most * sizeof *stage->receives);
    stage->sends = malloc(most * sizeof *stage->sends);
    stage->send_counts = malloc(most * sizeof *stage->send_counts);
    stage->receive_counts = malloc(most * sizeof *stage->receive_counts);
    stage->send_at = malloc(most * sizeof *stage->send_at);
    stage->receive_at = malloc(most * sizeof *stage->receive_at);
    stage->types = malloc(most * sizeof *stage->types);
    stage->comm = MPI_COMM_NULL;
    stage->plan = MPI_REQUEST_NULL;
    int good = stage->neighbours != NULL && stage->sent != NULL && stage->received != NULL &&
               stage->own != NULL && stage->receives != NULL && stage->sends != NULL &&
               stage->send_counts != NULL && stage->receive_counts != NULL && stage->send_at != NULL &&
               stage->receive_at != NULL && stage->types != NULL;
    int sent = 0, received = 0, sent_links = 0, received_links = 0;
    for (int i = 0; good && i < ranks; ++i) {
        Neighbour next = {.rank = order[i]};
        if (next.rank == rank) {
            pick(mesh, all, count, rank, rank, stage->own, &stage->own_links);
            continue;
        }
        next.sent = pick(mesh, all, count, rank, next.rank, stage->sent, &sent_links);
        next.received = pick(mesh, all, count, next.rank, rank, stage->received, &received_links);
        /* Who gets something from a rank gives it something. */
        if (next.sent == 0) continue;
        next.sent_links = sent_links;
        next.received_links = received_links;
        next.send_at = (MPI_Aint)((size_t)sent * sizeof(AmrCell));
        next.receive_at = (MPI_Aint)((size_t)received * sizeof(AmrCell));
        sent += next.sent;
        received += next.received;
        stage->send_counts[stage->count] = next.sent;
        stage->receive_counts[stage->count] = next.received;
        stage->send_at[stage->count] = next.send_at;
        stage->receive_at[stage->count] = next.receive_at;
        stage->types[stage->count] = MPI_UINT32_T;
        stage->neighbours[stage->count++] = next;
    }
    free(all);
    stage->out = malloc(((size_t)sent + 1) * sizeof *stage->out);
    stage->in = malloc(((size_t)received + 1) * sizeof *stage->in);
    return good && stage->out != NULL && stage->in != NULL;
}

void amr_find_hosts(int rank, int* hosts) {
    MPI_Comm node;
    int lowest = rank;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, node);
    MPI_Comm_free(&node);
    MPI_Allgather(&lowest, 1, MPI_INT, hosts, 1, MPI_INT, MPI_COMM_WORLD);
}

AmrExchange* amr_find_messages(const AmrMesh* mesh, AmrCell* const* data, const int* hosts, int rank,
                               int ranks) {
    AmrExchange* const exchange = calloc(1, sizeof *exchange);
    int* const order = malloc((size_t)ranks * sizeof *order);
    int good = exchange != NULL && order != NULL, count = 0;
    /* From the next rank on, so that not all begin with the same one. */
    for (int near = 0; good && near < 2; ++near)
        for (int i = 0; i < ranks; ++i) {
            const int next = (rank + i) % ranks;
            if ((hosts[next] == hosts[rank]) == near) order[count++] = next;
        }
    if (good) {
        exchange->mesh = mesh;
        exchange->data = data;
        for (int axis = 0; axis < amr_axes && good; ++axis)
            good = find_stage(mesh, axis, rank, ranks, order, &exchange->stages[axis]);
    }
    free(order);
    return good ? exchange : NULL; /* without memory the program ends */
}

void amr_make_exchange(AmrExchange* exchange, AmrVersion version) {
    exchange->version = version;
    for (int axis = 0; axis < amr_axes; ++axis) {
        Stage* const stage = &exchange->stages[axis];
        if (version == amr_persistent)
            for (int i = 0; i < stage->count; ++i) {
                const Neighbour* const next = &stage->neighbours[i];
                MPI_Recv_init((char*)stage->in + next->receive_at, next->received, MPI_UINT32_T, next->rank,
                              axis, MPI_COMM_WORLD, &stage->receives[i]);
                MPI_Send_init((char*)stage->out + next->send_at, next->sent, MPI_UINT32_T, next->rank, axis,
                              MPI_COMM_WORLD, &stage->sends[i]);
            }
        if (version != amr_neighbor && version != amr_init) continue;
        /* The edges of a rank are its neighbours, in both directions. */
        int* const ranks = malloc(((size_t)stage->count + 1) * sizeof *ranks);
        for (int i = 0; i < stage->count; ++i) ranks[i] = stage->neighbours[i].rank;
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, stage->count, ranks, MPI_UNWEIGHTED, stage->count,
                                       ranks, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &stage->comm);
        free(ranks);
        if (version == amr_init)
            MPI_Neighbor_alltoallw_init(stage->out, stage->send_counts, stage->send_at, stage->types,
                                        stage->in, stage->receive_counts, stage->receive_at, stage->types,
                                        stage->comm, MPI_INFO_NULL, &stage->plan);
    }
}

static void pack(const AmrExchange* exchange, const Stage* stage, int neighbour) {
    AmrCell* out = (AmrCell*)((char*)stage->out + stage->neighbours[neighbour].send_at);
    for (int i = neighbour == 0 ? 0 : stage->neighbours[neighbour - 1].sent_links;
         i < stage->neighbours[neighbour].sent_links; ++i) {
        const AmrLink* const link = &stage->sent[i];
        amr_take(exchange->mesh, link, exchange->data[link->from], out);
        out += amr_link_cells(exchange->mesh, link);
    }
}

static void unpack(const AmrExchange* exchange, const Stage* stage, int neighbour) {
    const AmrCell* in = (const AmrCell*)((const char*)stage->in + stage->neighbours[neighbour].receive_at);
    for (int i = neighbour == 0 ? 0 : stage->neighbours[neighbour - 1].received_links;
         i < stage->neighbours[neighbour].received_links; ++i) {
        const AmrLink* const link = &stage->received[i];
        amr_put(exchange->mesh, link, exchange->data[link->to], in);
        in += amr_link_cells(exchange->mesh, link);
    }
}

static void copy_own(const AmrExchange* exchange, const Stage* stage, AmrCell* face) {
    for (int i = 0; i < stage->own_links; ++i) {
        const AmrLink* const link = &stage->own[i];
        amr_take(exchange->mesh, link, exchange->data[link->from], face);
        amr_put(exchange->mesh, link, exchange->data[link->to], face);
    }
}

/* Those of all stages, before anything is sent: a neighbour may be a stage ahead. */
static void start_receives(AmrExchange* exchange) {
    for (int axis = 0; axis < amr_axes; ++axis) {
        Stage* const stage = &exchange->stages[axis];
        if (exchange->version == amr_persistent) {
            MPI_Startall(stage->count, stage->receives);
            continue;
        }
        for (int i = 0; i < stage->count; ++i)
            MPI_Irecv((char*)stage->in + stage->neighbours[i].receive_at, stage->neighbours[i].received,
                      MPI_UINT32_T, stage->neighbours[i].rank, axis, MPI_COMM_WORLD, &stage->receives[i]);
    }
}

static void exchange_by_messages(AmrExchange* exchange, int axis, AmrCell* face, double* inside) {
    Stage* const stage = &exchange->stages[axis];
    const int once = exchange->version == amr_persistent, all = exchange->version == amr_waitall;
    double since;
    for (int i = 0; i < stage->count; ++i) {
        pack(exchange, stage, i);
        since = MPI_Wtime();
        if (once)
            MPI_Start(&stage->sends[i]);
        else
            MPI_Isend((char*)stage->out + stage->neighbours[i].send_at, stage->neighbours[i].sent,
                      MPI_UINT32_T, stage->neighbours[i].rank, axis, MPI_COMM_WORLD, &stage->sends[i]);
        *inside += MPI_Wtime() - since;
    }
    copy_own(exchange, stage, face);
    if (all) {
        since = MPI_Wtime();
        MPI_Waitall(stage->count, stage->receives, MPI_STATUSES_IGNORE);
        *inside += MPI_Wtime() - since;
    }
    for (int left = stage->count; left > 0; --left) {
        int arrived = left - 1;
        since = MPI_Wtime();
        if (!all) MPI_Waitany(stage->count, stage->receives, &arrived, MPI_STATUS_IGNORE);
        *inside += MPI_Wtime() - since;
        unpack(exchange, stage, arrived);
    }
    since = MPI_Wtime();
    MPI_Waitall(stage->count, stage->sends, MPI_STATUSES_IGNORE);
    *inside += MPI_Wtime() - since;
}

static void exchange_by_graph(AmrExchange* exchange, int axis, AmrCell* face, double* inside) {
    Stage* const stage = &exchange->stages[axis];
    for (int i = 0; i < stage->count; ++i) pack(exchange, stage, i);
    double since = MPI_Wtime();
    if (exchange->version == amr_init)
        MPI_Start(&stage->plan);
    else
        MPI_Neighbor_alltoallw(stage->out, stage->send_counts, stage->send_at, stage->types, stage->in,
                               stage->receive_counts, stage->receive_at, stage->types, stage->comm);
    *inside += MPI_Wtime() - since;
    copy_own(exchange, stage, face);
    since = MPI_Wtime();
    if (exchange->version == amr_init) MPI_Wait(&stage->plan, MPI_STATUS_IGNORE);
    *inside += MPI_Wtime() - since;
    for (int i = 0; i < stage->count; ++i) unpack(exchange, stage, i);
}

double amr_exchange(AmrExchange* exchange) {
    double inside = 0;
    AmrCell* const face =
        malloc((size_t)exchange->mesh->cells * (size_t)exchange->mesh->cells * sizeof *face);
    if (face == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    const int graph = exchange->version == amr_neighbor || exchange->version == amr_init;
    const double since = MPI_Wtime();
    if (!graph) start_receives(exchange);
    inside += MPI_Wtime() - since;
    for (int axis = 0; axis < amr_axes; ++axis) {
        if (graph)
            exchange_by_graph(exchange, axis, face, &inside);
        else
            exchange_by_messages(exchange, axis, face, &inside);
    }
    free(face);
    return inside;
}

void amr_free_exchange(AmrExchange* exchange) {
    for (int axis = 0; exchange != NULL && axis < amr_axes; ++axis) {
        Stage* const stage = &exchange->stages[axis];
        for (int i = 0; i < stage->count && exchange->version == amr_persistent; ++i) {
            MPI_Request_free(&stage->receives[i]);
            MPI_Request_free(&stage->sends[i]);
        }
        if (stage->plan != MPI_REQUEST_NULL) MPI_Request_free(&stage->plan);
        if (stage->comm != MPI_COMM_NULL) MPI_Comm_free(&stage->comm);
        free(stage->neighbours), free(stage->sent), free(stage->received), free(stage->own);
        free(stage->out), free(stage->in), free(stage->receives), free(stage->sends), free(stage->types);
        free(stage->send_counts), free(stage->receive_counts), free(stage->send_at), free(stage->receive_at);
    }
    free(exchange);
}
