/* The messages between the ranks that share a mesh, stage by stage, and the ways to exchange them. */
#ifndef APPS_AMR_EXCHANGE_H
#define APPS_AMR_EXCHANGE_H

#include "amr/mesh.h"

typedef enum { amr_isend, amr_waitall, amr_persistent, amr_neighbor, amr_init, amr_versions } AmrVersion;
extern const char* const amr_names[amr_versions];

typedef struct AmrExchange AmrExchange;

/* Who exchanges what on this mesh; `data` are this rank's blocks. Both must live as long. Local, but for
 * finding out who shares a host: collective over MPI_COMM_WORLD. Null: no memory. */
AmrExchange* amr_find_messages(const AmrMesh* mesh, AmrCell* const* data, int rank, int ranks);
/* Communicators, requests and plans of a version. Collective. */
void amr_make_exchange(AmrExchange* exchange, AmrVersion version);
/* All faces of all blocks, one axis after the other. Seconds inside MPI calls. */
double amr_exchange(AmrExchange* exchange);
/* Collective; null is nothing. */
void amr_free_exchange(AmrExchange* exchange);

#endif
