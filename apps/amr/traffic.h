/* Which bytes of a stage cross between hosts: what each rank can know of it from the mesh alone. No MPI here.
 */
#ifndef APPS_AMR_TRAFFIC_H
#define APPS_AMR_TRAFFIC_H

#include <stdint.h>

#include "amr/mesh.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of one stage: what all ranks exchange along one axis, one message per pair of ranks and direction. */
typedef struct {
    int64_t crossing; /* bytes between hosts, all of them */
    int64_t busiest;  /* bytes that leave a host or that enter it, the most of any host and direction */
    int64_t messages; /* between hosts */
    int64_t largest;  /* bytes of the largest of these */
} AmrTraffic;

/* hosts: by rank, a number below `ranks` that tells its host from others. 0: no memory, and nothing is set;
 * it takes 8 ranks^2 bytes for as long as it runs. */
int amr_traffic(const AmrMesh* mesh, int axis, const int* hosts, int ranks, AmrTraffic* traffic);

#ifdef __cplusplus
}
#endif

#endif
