// By what the operations of a communicator run that progress by themselves.
#include <algorithm>
#include <new>
#include <vector>

#include "model/cost.h"
#include "plan/attendance.h"
#include "plan/native_plan.h"
#include "plan/neighbours.h"
#include "plan/nonblocking.h"
#include "plan/quiet_errors.h"
#include "plan/set_up.h"
#include "select/exchanges.h"
#include "transport/mpi/host.h"
#include "transport/ucx/ucx.h"

namespace thalweg {

std::uint64_t NonblockingState::ports() const {
    const bool over_ucx = carrier_ == Carrier::ucx || carrier_ == Carrier::composite;
    return over_ucx ? Attendance::ucx()->rails() : 1;
}

Decisions& NonblockingState::decisions(Collective collective, bool stable) {
    const std::uint32_t generation = world_.generation();
    if (generation != generation_) {
        decided_ = {};
        stable_.reset();
        generation_ = generation;
    }
    std::optional<Decisions>& decided = stable ? stable_ : decided_[static_cast<std::size_t>(collective)];
    if (!decided)
        decided.emplace(communicator_.selector_for_overlapped(collective, stable ? Network{} : network_,
                                                              !stable, stable ? 1 : ports()));
    return *decided;
}

Decision NonblockingState::decide(Collective collective, std::uint64_t bytes, bool stable) {
    return decisions(collective, stable).of(bytes);
}

const NeighbourSelector& NonblockingState::neighbours() {
    const std::uint32_t generation = world_.generation();
    if (!neighbours_ || neighbours_generation_ != generation) {
        Selection selection = communicator_.selection(Collective::alltoallv, network_, true);
        selection.machine.inter.ports = ports();
        neighbours_.emplace(topology_, selection);
        neighbours_generation_ = generation;
    }
    return *neighbours_;
}

// All ranks know the blocks of all in an allgatherv, and so their mean.
bool is_left_everywhere(const World& world, const CollectiveCall& call, const CallShape& shape) {
    return world.settings().setup != SetupSetting::early && !world.asks_for_algorithms() &&
           !call.has_letters() && shape.bytes < world.overlapped_from(call.collective);
}

bool may_be_on_one_host(const World& world, const CollectiveCall& call) {
    return world.settings().setup == SetupSetting::early || world.asks_for_algorithms() ||
           nobody_else_serves(call) || world.overlaps_on_one_host(call.collective, call.neighbours);
}

std::optional<Reason> why_not_set_up(const World& world, const CollectiveCall& call, const CallShape& shape,
                                     Communicator::SelfDriven& self_driven) {
    if (is_left_everywhere(world, call, shape)) return Reason::native_best;
    const bool on_one_host = may_be_on_one_host(world, call);
    if (!on_one_host && self_driven.left_on_one_host) return Reason::native_best;
    self_driven.serves_one_host |= on_one_host;
    if (world.settings().setup == SetupSetting::early || world.asks_for_algorithms()) return std::nullopt;
    ++self_driven.asked_calls;
    if (!call.is_vector()) self_driven.asked_bytes += shape.total;
    const bool pays = self_driven.asked_calls >= worth_calls || self_driven.asked_bytes >= worth_bytes;
    return pays ? std::nullopt : std::optional(Reason::not_worth_yet);
}

void NonblockingState::agree_on_neighbour_bytes(MPI_Comm comm, std::uint64_t largest) {
    const QuietErrors quiet(comm);
    std::uint64_t most[1] = {largest};
    agree_on(comm, host()->max, most);
    if (most[0] != 0) neighbour_bytes_ = most[0];
}

void NonblockingState::agree_on_steps(MPI_Comm comm, const Neighbourhood* neighbours) {
    // Of two ranks each message is the k-th of both.
    edges_.in_step = edges_.in_step_in_pairs = size_ < 3;
    if (topology_.nodes() < 2 || size_ < 3 || !has_neighbours(comm)) return;
    struct Edge {
        int peer;
        std::uint64_t bytes;
    };
    const auto edges_to = [](const std::vector<int>& peers) {
        std::vector<Edge> edges;
        for (const int peer : peers)
            if (peer != MPI_PROC_NULL) edges.push_back({peer, 1});
        return edges;
    };
    TraitWords words{};
    const QuietErrors quiet(comm);
    try {
        if (neighbours == nullptr) throw std::bad_alloc();
        count_exchange(words, edges_to(neighbours->destinations), edges_to(neighbours->sources), rank_, size_,
                       topology_);
    } catch (const std::bad_alloc&) {
        ++words[word_by_distance];
        ++words[word_in_pairs];
    }
    std::uint64_t sums[trait_words];
    std::copy(words.begin(), words.end(), sums);
    agree_on(comm, host()->sum, sums);
    std::copy_n(sums, trait_words, words.begin());
    edges_ = traits_of(words, size_);
}

void NonblockingState::agree_on_edges(MPI_Comm comm) {
    Communicator::SelfDriven& self_driven = communicator_.self_driven;
    self_driven.tells_edges = false;
    leaders_.agree(comm, self_driven.edges.take(), self_driven.neighbourhood.get(), rank_, topology_);
}

void NonblockingState::agree_on_exchange_traits(MPI_Comm comm, const ExchangeSizes::Noted& noted) {
    const QuietErrors quiet(comm);
    std::uint64_t sums[trait_words + 1];
    std::copy(noted.sums.begin(), noted.sums.end(), sums);
    sums[trait_words] = noted.calls;
    agree_on(comm, host()->sum, sums);
    TraitWords all;
    std::copy_n(sums, trait_words, all.begin());
    if (all[1] == 0) return;  // no message that has bytes
    // Of each rank, but for one that had to decline some by itself.
    const auto ranks = static_cast<std::uint64_t>(size_);
    const std::uint64_t calls = (sums[trait_words] + ranks - 1) / ranks;
    exchange_traits_ = traits_of(all, size_, calls);
    exchange_traits_->sizes_agree = false;  // of the next one nobody knows
}

Picoseconds NonblockingState::predicted_native(std::uint64_t bytes) const {
    if (!network_.known() || bytes == 0) return 0;
    Problem problem;
    problem.size = size_;
    problem.bytes = bytes;
    const Choice pairwise = standard_choice(*find_algorithm(Collective::alltoallv, "pairwise"));
    return predict(pairwise, problem, topology_,
                   communicator_.selection(Collective::alltoallv, network_, true).machine);
}

}  // namespace thalweg
