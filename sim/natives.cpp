#include "sim/natives.h"

#include <bit>

namespace thalweg::sim {
namespace {

constexpr NativeModel models[] = {
    {"mpich",
     "MPICH 3.3 to 5.0 and its descendants (Cray MPICH), default tables; inside a host as until 4.1: newer "
     "ones look there first, as mvapich here",
     "pmodels/mpich, maint/tuning/coll/{ch4,mpir}/generic.json; before those, "
     "src/mpi/coll/bcast_intra_smp.c; src/mpi/coll/neighbor_alltoallw; until 4.1 ch4_progress.h asks the "
     "network before the host",
     Copies::as_matched},
    {"openmpi",
     "Open MPI 5.0, fixed decisions (4.1's are the same, without its hierarchical component); of that "
     "component the broadcast and the allgather",
     "open-mpi/ompi, ompi/mca/coll: tuned/coll_tuned_decision_fixed.c, han/coll_han_bcast.c, "
     "han/coll_han_allgather.c, han/coll_han_component.c, libnbc/nbc_ibcast.c, "
     "basic/coll_basic_neighbor_*.c",
     Copies::as_matched},
    {"mvapich", "MVAPICH2 2.3: exchanges of faces only; its tables of collectives are not modelled",
     "src/mpid/ch3/channels/mrail/src/rdma/ch3_progress.c: reads what ranks of the host sent, copies it, and "
     "returns without a look at the network if that completed something; newer ch4_progress.h of MPICH alike",
     Copies::before_network},
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

// Open MPI's fixed decisions since 4.1, by ranks and bytes: the first row that has fewer ranks and fewer
// bytes than it says. No row has parameters: a segment size or a fan-out of zero, so trees send whole
// messages and a chain has one branch.
struct Rule {
    std::uint64_t below_ranks, below_bytes;
    const char* choice;  // nullptr: nothing here does the same
};
constexpr std::uint64_t any = ~std::uint64_t{0};

std::string by_rule(std::span<const Rule> rules, std::uint64_t ranks, std::uint64_t bytes) {
    for (const Rule& rule : rules)
        if (ranks < rule.below_ranks && (bytes < rule.below_bytes || rule.below_bytes == any))
            return rule.choice == nullptr ? std::string() : rule.choice;
    return {};
}

constexpr const char *linear = "linear", *chain = "chain:chunk_bytes=0",
                     *binary = "kary:fanout=2:chunk_bytes=0", *binomial = "binomial",
                     *knomial = "knomial:radix=4", *split = "split_binary:chunk_bytes=0",
                     *doubling = "scatter_recursive_doubling";
constexpr Rule bcasts[] = {{4, 32, chain},
                           {4, 256, binary},
                           {4, 512, chain},
                           {4, 1 << 10, knomial},
                           {4, 32 << 10, linear},
                           {4, 128 << 10, binary},
                           {4, 256 << 10, chain},
                           {4, 512 << 10, linear},
                           {4, 1 << 20, binomial},
                           {4, any, binary},
                           {8, 64, binary},
                           {8, 128, binomial},
                           {8, 2 << 10, binary},
                           {8, 8 << 10, binomial},
                           {8, 1 << 20, linear},
                           {8, any, chain},
                           {16, 8, knomial},
                           {16, 64, binary},
                           {16, 4 << 10, knomial},
                           {16, 16 << 10, binary},
                           {16, 32 << 10, binomial},
                           {16, any, linear},
                           {32, 4 << 10, knomial},
                           {32, 1 << 20, binomial},
                           {32, any, doubling},
                           {64, 2 << 10, binomial},
                           {64, any, knomial},
                           {128, any, knomial},
                           {256, 2, binomial},
                           {256, 16 << 10, binary},
                           {256, 32 << 10, linear},
                           {256, 64 << 10, binary},
                           {256, any, knomial},
                           {1024, 16 << 10, knomial},
                           {1024, 32 << 10, split},
                           {1024, any, knomial},
                           {2048, 512 << 10, knomial},
                           {2048, any, doubling},
                           {4096, 256 << 10, knomial},
                           {4096, any, doubling},
                           {any, 8 << 10, knomial},
                           {any, 16 << 10, binary},
                           {any, 256 << 10, knomial},
                           {any, any, doubling}};

// Where hosts have several ranks, `han` comes first: pieces of 64 KiB among the hosts' leaders by the
// nonblocking broadcast, which is linear for few, and a broadcast inside each host.
std::string openmpi_bcast(std::uint64_t bytes, const Topology& topology) {
    constexpr std::uint64_t few_hosts = 4, piece_bytes = 64 << 10;
    if (topology.nodes() == 1 || topology.max_ranks_per_node() == 1)
        return by_rule(bcasts, static_cast<std::uint64_t>(topology.size()), bytes);
    const std::string among = static_cast<std::uint64_t>(topology.nodes()) <= few_hosts ? "linear"
                              : bytes < piece_bytes                                     ? "binomial"
                                                    : "chain:chunk_bytes=8K";
    return "node_leader(intra=binomial,inter=" + among + ")";
}

constexpr const char *exchange = "standard_exchange", *bruck = "bruck", *ring = "ring",
                     *neighbour = "neighbour_exchange";
constexpr Rule allgathers[] = {{32, any, exchange},
                               {64, 1 << 10, exchange},
                               {64, 64 << 10, neighbour},
                               {64, any, ring},
                               {128, 512, exchange},
                               {128, 64 << 10, neighbour},
                               {128, any, ring},
                               {256, 512, exchange},
                               {256, 128 << 10, neighbour},
                               {256, 512 << 10, ring},
                               {256, 1 << 20, neighbour},
                               {256, any, ring},
                               {512, 32, exchange},
                               {512, 128, bruck},
                               {512, 1 << 10, exchange},
                               {512, 128 << 10, neighbour},
                               {512, 512 << 10, ring},
                               {512, 1 << 20, neighbour},
                               {512, any, ring},
                               {1024, 64, exchange},
                               {1024, 256, bruck},
                               {1024, 2 << 10, exchange},
                               {1024, any, neighbour},
                               {2048, 256, exchange},
                               {2048, 512, bruck},
                               {2048, 4 << 10, exchange},
                               {2048, any, neighbour},
                               {4096, 512, bruck},
                               {4096, 4 << 10, exchange},
                               {4096, any, neighbour},
                               {any, 512, bruck},
                               {any, 4 << 10, exchange},
                               {any, any, neighbour}};

// By the bytes of one rank; below 512 bytes, where 1,024 ranks or more alternate between the two that take
// log p rounds, the more frequent one. What suits only some numbers of ranks falls back as the library does.
std::string openmpi_flat_allgather(std::uint64_t bytes, std::uint64_t size) {
    const std::string choice = by_rule(allgathers, size, bytes);
    if (choice == exchange && !std::has_single_bit(size)) return bruck;
    if (choice == neighbour && size % 2 != 0) return ring;
    return choice;
}

// Of any size, `han` comes first where there are several hosts of as many ranks each, and not one: a gather
// on every host, the rule above among the hosts' first ranks with what their hosts have, and a broadcast of
// the whole result on every host by the rules of those. It hands out nothing before the end (it splits the
// call into tasks, but an allgather's follow one another).
std::string openmpi_allgather(std::uint64_t bytes, const Topology& topology) {
    const auto size = static_cast<std::uint64_t>(topology.size());
    const auto hosts = static_cast<std::uint64_t>(topology.nodes());
    const auto ranks = static_cast<std::uint64_t>(topology.max_ranks_per_node());
    if (hosts == 1 || ranks == 1 || hosts * ranks != size) return openmpi_flat_allgather(bytes, size);
    return "hierarchical(intra=" + by_rule(bcasts, ranks, bytes * size) +
           ",inter=" + openmpi_flat_allgather(bytes * ranks, hosts) + ")";
}

constexpr const char *twice = "recursive_doubling", *halves = "rabenseifner", *around = "ring:chunk_bytes=0";
constexpr Rule allreduces[] = {  // of reductions that commute; reduce and broadcast have no schedule here
    {4, 8, around},          {4, 4 << 10, twice},     {4, 8 << 10, around},      {4, 16 << 10, twice},
    {4, 256 << 10, around},  {4, any, halves},        {8, 16, around},           {8, 8 << 10, twice},
    {8, any, halves},        {16, 8 << 10, twice},    {16, any, halves},         {32, 64, around},
    {32, 4 << 10, twice},    {32, any, halves},       {64, 128, around},         {64, any, halves},
    {128, 256 << 10, twice}, {128, any, halves},      {256, 128 << 10, nullptr}, {256, 256 << 10, twice},
    {256, any, halves},      {512, 4 << 10, nullptr}, {512, any, halves},        {2048, 2 << 10, nullptr},
    {2048, 16 << 10, twice}, {2048, any, halves},     {4096, 2 << 10, nullptr},  {4096, 4 << 10, around},
    {4096, 16 << 10, twice}, {4096, any, halves},     {any, 2 << 10, nullptr},   {any, 16 << 10, around},
    {any, 32 << 10, twice},  {any, any, halves}};

// By the number of ranks alone: all messages at once, or round by round.
std::string openmpi_alltoallv(std::uint64_t size) {
    const bool rounds = size < 4 || (size >= 64 && size < 128) || (size >= 256 && size < 1024);
    return rounds ? "pairwise" : "spread:in_flight=0";
}

}  // namespace

std::span<const NativeModel> native_models() { return models; }

const NativeModel* native_model(std::string_view family) {
    for (const NativeModel& model : models)
        if (model.family == family) return &model;
    return nullptr;
}

std::string native_choice(std::string_view family, Collective collective, std::uint64_t bytes,
                          const Topology& topology) {
    const auto size = static_cast<std::uint64_t>(topology.size());
    const bool mpich = family == "mpich";
    if (!mpich && family != "openmpi") return {};
    switch (collective) {
        case Collective::bcast:
            return mpich ? mpich_bcast(bytes, topology) : openmpi_bcast(bytes, topology);
        case Collective::allgather:
            return mpich ? mpich_allgather(bytes, size) : openmpi_allgather(bytes, topology);
        case Collective::allreduce:
            return mpich ? mpich_allreduce(bytes) : by_rule(allreduces, size, bytes);
        case Collective::barrier:
            return "dissemination";
        case Collective::alltoallv:  // MPICH posts 32 pairs at a time (MPIR_CVAR_ALLTOALL_THROTTLE)
            return mpich ? "spread:in_flight=32" : openmpi_alltoallv(size);
        default:
            return {};
    }
}

bool native_in_turn(std::string_view family, Collective collective) {
    return family == "mpich" && collective != Collective::alltoallv;
}

// Of all ranks: MPICH's alltoallv_intra_scattered.c, Open MPI's coll_base_alltoallv.c, where everybody begins
// with rank 0. Of neighbours: ineighbor_alltoallw_allcomm_linear.c, coll_basic_neighbor_alltoallw.c. Whatever
// goes round by round goes by distance, as ours.
Posting native_posting(std::string_view family, std::string_view algorithm, bool faces) {
    if (family.empty() || !algorithm.starts_with("spread")) return Posting::as_built;
    return family == "mpich" && !faces ? Posting::falling : Posting::listed;
}

}  // namespace thalweg::sim
