#include "amr/traffic.h"

#include <stdlib.h>
#include <string.h>

int amr_traffic(const AmrMesh* mesh, int axis, const int* hosts, int ranks, AmrTraffic* traffic) {
    const size_t side = (size_t)ranks;
    AmrLink* links;
    const int count = amr_links(mesh, axis, &links);
    int64_t* const pairs = calloc(side * side, sizeof *pairs); /* bytes, by sender and receiver */
    int64_t* const leaving = calloc(side, sizeof *leaving);    /* bytes, by host */
    int64_t* const entering = calloc(side, sizeof *entering);
    const int good = links != NULL && pairs != NULL && leaving != NULL && entering != NULL;
    if (good) {
        memset(traffic, 0, sizeof *traffic);
        for (int i = 0; i < count; ++i) {
            const int from = mesh->leaves[links[i].from].owner, to = mesh->leaves[links[i].to].owner;
            if (hosts[from] == hosts[to]) continue;
            const int64_t bytes = amr_link_cells(mesh, &links[i]) * (int64_t)sizeof(AmrCell);
            pairs[(size_t)from * side + (size_t)to] += bytes;
            leaving[hosts[from]] += bytes;
            entering[hosts[to]] += bytes;
            traffic->crossing += bytes;
        }
        for (size_t host = 0; host < side; ++host) {
            if (leaving[host] > traffic->busiest) traffic->busiest = leaving[host];
            if (entering[host] > traffic->busiest) traffic->busiest = entering[host];
        }
        for (size_t pair = 0; pair < side * side; ++pair) {
            traffic->messages += pairs[pair] > 0;
            if (pairs[pair] > traffic->largest) traffic->largest = pairs[pair];
        }
    }
    free(links), free(pairs), free(leaving), free(entering);
    return good;
}
