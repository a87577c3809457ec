// Proof of work: what the kernel counted on the busiest host's link against what the schedule says must cross
// it.
#pragma once

#include <cstdint>
#include <string>

#include "algorithms/algorithm.h"
#include "bench/results.h"

namespace thalweg::bench {

struct LinkClaim {
    std::uint64_t tx_bytes = 0, rx_bytes = 0;  // payload on the host whose link carries most, by direction
    std::uint64_t messages = 0;                // that leave that host
};

// Of the choice of a broadcast, or of another collective, on a block-wise topology of hosts x ppn. False with
// one sentence in `why` when the text is not a choice or refuses the problem.
bool link_claim(const std::string& choice, int hosts, int ppn, int root, std::uint64_t bytes,
                LinkClaim& claim, std::string& why, Collective collective = Collective::bcast);

// Bytes that the kernel should count as sent by that host: payload, 66 bytes of headers per full segment, and
// up to one acknowledgement of 66 bytes per segment received. Low and high, because the kernel merges
// segments and acknowledgements.
struct Expected {
    double low = 0, high = 0;
};
Expected expected_tx_bytes(const LinkClaim& claim);

enum class Proof : std::uint8_t { agrees, differs, not_counted };
// Where at least 64 KiB are broadcast, or must cross the link: the counter lies within 12 % of what is
// expected.
Proof prove(const Row& row, int hosts, int ppn);

}  // namespace thalweg::bench
