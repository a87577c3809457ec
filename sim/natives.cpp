#include "sim/natives.h"

#include <bit>

namespace thalweg::sim {
namespace {

constexpr NativeModel models[] = {
    {"mpich", "MPICH 3.3 to 5.0 and its descendants (Cray MPICH, MVAPICH), default tables",
     "pmodels/mpich, maint/tuning/coll/{ch4,mpir}/generic.json; before those, "
     "src/mpi/coll/bcast_intra_smp.c"},
    {"openmpi", "Open MPI 1.x to 4.0, fixed decisions (5.0 has tables by size and ranks)",
     "open-mpi/ompi, ompi/mca/coll/tuned/coll_tuned_decision_fixed.c"},
};

// Broadcast: short messages and small groups by a binomial tree over hosts and one inside each; medium ones
// of 2^k ranks the same two levels with scatter and recursive doubling between hosts; all others flat,
// scatter and ring.
std::string mpich_bcast(std::uint64_t bytes, const Topology& topology) {
    constexpr std::uint64_t short_bytes = 12288, long_bytes = 524288, few_ranks = 8;
    const auto size = static_cast<std::uint64_t>(topology.size());
    const bool several = topology.nodes() > 1 && topology.max_ranks_per_node() > 1;
    if (bytes < short_bytes || size < few_ranks)
        return several ? "node_leader(intra=binomial,inter=binomial)" : "binomial";
    if (bytes >= long_bytes || !std::has_single_bit(size)) return "scatter_ring";
    if (!several) return "scatter_recursive_doubling";
    // The same rule again for the hosts' leaders and inside a host, each with its own number of ranks.
    const auto part = [](std::uint64_t ranks) -> std::string {
        if (ranks < few_ranks) return "binomial";
        return std::has_single_bit(ranks) ? "scatter_recursive_doubling" : "scatter_ring";
    };
    return "node_leader(intra=" + part(static_cast<std::uint64_t>(topology.max_ranks_per_node())) +
           ",inter=" + part(static_cast<std::uint64_t>(topology.nodes())) + ")";
}

// By the size of the whole result.
std::string mpich_allgather(std::uint64_t bytes, std::uint64_t size) {
    if (std::has_single_bit(size)) return bytes * size < 524288 ? "standard_exchange" : "ring";
    return bytes * size < 81920 ? "bruck" : "ring";
}

std::string mpich_allreduce(std::uint64_t bytes) {
    return bytes <= 2048 ? "recursive_doubling" : "rabenseifner";
}

std::string openmpi_bcast(std::uint64_t bytes, std::uint64_t size) {
    constexpr std::uint64_t small_bytes = 2048, intermediate_bytes = 370728;
    const auto n = static_cast<double>(bytes), p = static_cast<double>(size);
    if (bytes < small_bytes || size < 3) return "binomial";
    if (bytes < intermediate_bytes) return "split_binary:chunk_bytes=1K";
    if (p < 1.6134e-6 * n + 2.1102) return "chain:chunk_bytes=128K";
    if (size < 13) return "split_binary:chunk_bytes=8K";
    if (p < 2.3679e-6 * n + 1.1787) return "chain:chunk_bytes=64K";
    if (p < 3.2118e-6 * n + 8.7936) return "chain:chunk_bytes=16K";
    return "chain:chunk_bytes=8K";
}

std::string openmpi_allgather(std::uint64_t bytes, std::uint64_t size) {
    if (bytes * size < 50000) return std::has_single_bit(size) ? "standard_exchange" : "bruck";
    return size % 2 != 0 ? "ring" : "neighbour_exchange";
}

}  // namespace

std::span<const NativeModel> native_models() { return models; }

std::string native_choice(std::string_view family, Collective collective, std::uint64_t bytes,
                          const Topology& topology) {
    const auto size = static_cast<std::uint64_t>(topology.size());
    const bool mpich = family == "mpich";
    switch (collective) {
        case Collective::bcast:
            return mpich ? mpich_bcast(bytes, topology) : openmpi_bcast(bytes, size);
        case Collective::allgather:
            return mpich ? mpich_allgather(bytes, size) : openmpi_allgather(bytes, size);
        case Collective::allreduce:
            return mpich ? mpich_allreduce(bytes) : std::string();
        case Collective::barrier:
            return "dissemination";
        // MPICH posts 32 pairs at a time (MPIR_CVAR_ALLTOALL_THROTTLE); Open MPI goes round by round.
        case Collective::alltoallv:
            return mpich ? "spread:in_flight=32" : "pairwise";
        default:
            return {};
    }
}

}  // namespace thalweg::sim
