/* What programs learn of the links of the host that they run on. */
#ifndef LINKS_H
#define LINKS_H

#include "../plan/programs/check.h"

/* Bytes that this host has sent over a link, headers included. */
static unsigned long long sent_over(int rail) {
    char path[64];
    unsigned long long bytes = 0;
    snprintf(path, sizeof path, "/sys/class/net/rail%d/statistics/tx_bytes", rail);
    FILE* const file = fopen(path, "r");
    CHECK(file != NULL && fscanf(file, "%llu", &bytes) == 1, "there is no %s", path);
    fclose(file);
    return bytes;
}

#endif
