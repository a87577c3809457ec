/* The messages between the ranks that share a mesh, stage by stage, and the ways to exchange them. */
#ifndef APPS_AMR_EXCHANGE_H
#define APPS_AMR_EXCHANGE_H

#include "amr/mesh.h"

typedef enum { amr_isend, amr_waitall, amr_persistent, amr_neighbor, amr_init, amr_versions } AmrVersion;
extern const char* const amr_names[amr_versions];

typedef struct AmrExchange AmrExchange;

/* By rank, the lowest rank of its host. Collective over MPI_COMM_WORLD. */
void amr_find_hosts(int rank, int* hosts);

/* Who exchanges what on this mesh; `data` are this rank's blocks. Both must live as long. Messages to other
 * hosts come first. Local. Null: no memory. */
AmrExchange* amr_find_messages(const AmrMesh* mesh, AmrCell* const* data, const int* hosts, int rank,
                               int ranks);
/* Communicators, requests and plans of a version. Collective. */
void amr_make_exchange(AmrExchange* exchange, AmrVersion version);
/* All faces of all blocks, one axis after the other: a stage begins on a rank when it has sent and received
 * all of the one before. Seconds inside MPI calls. */
double amr_exchange(AmrExchange* exchange);
/* Collective; null is nothing. */
void amr_free_exchange(AmrExchange* exchange);

#endif
