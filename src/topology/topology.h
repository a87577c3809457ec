// Where the ranks of one communicator live. Hosts ("nodes") are numbered by their lowest rank; ranks of one
// host need not be consecutive, and hosts may have different numbers of ranks.
//
// A value that never changes: copies share what it takes, 12 bytes per rank.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace thalweg {

class Topology {
  public:
    Topology() : table_(none()) {}  // of no ranks
    // And no moves, behind which there would be nothing.
    Topology(const Topology&) = default;
    Topology& operator=(const Topology&) = default;

    // All `size` ranks on one node.
    static Topology single_node(int size);

    // host_key[r] identifies the host of rank r; equal keys are the same host. Pure: every rank that passes
    // the same table gets the same topology.
    static Topology from_table(std::span<const std::uint64_t> host_key);

    // "node:4 core:2" (4 hosts of 2 ranks, block-wise), "node:4 core:2 map:cyclic", "node:3 core:1,2,4"
    // (ragged), "ranks:0,1,0,2" (host of each rank in rank order: permuted and ragged). "core" may be left
    // out: one rank per host. At most 2^24 ranks. invalid_argument: the text is none of these, `topology` is
    // unchanged and `why` is one sentence that gives the accepted form.
    static Status from_text(std::string_view text, Topology& topology, std::string& why);
    // The same checks, and how many ranks the text places, without placing them: O(length of the text), where
    // from_text takes time and memory for every rank.
    static Status count_ranks(std::string_view text, int& ranks, std::string& why);

    int size() const { return static_cast<int>(table_->node_of.size()); }
    int nodes() const { return static_cast<int>(table_->ranks_begin.size()) - 1; }
    int node_of(int rank) const { return table_->node_of[rank]; }
    int local_rank(int rank) const { return table_->local_rank[rank]; }
    // The ranks of one host, ascending. Valid while a copy lives.
    std::span<const int> ranks_on(int node) const {
        const int* const ranks = table_->ranks.data();
        return {ranks + table_->ranks_begin[node], ranks + table_->ranks_begin[node + 1]};
    }
    int max_ranks_per_node() const { return table_->max_ranks_per_node; }
    int min_ranks_per_node() const { return table_->min_ranks_per_node; }  // 0: there are no ranks
    // Equal on all ranks of a communicator; part of a plan's and a tuning row's key.
    std::uint64_t digest() const { return table_->digest; }
    // Whether each rank's host has the same number. O(ranks) where it has and they share nothing.
    bool operator==(const Topology& other) const;
    // The same text form that from_text accepts ("ranks:…" when no shorter form fits).
    std::string to_text() const;

  private:
    struct Table {
        std::vector<int> node_of, local_rank;
        std::vector<int> ranks, ranks_begin{0};
        int max_ranks_per_node = 0, min_ranks_per_node = 0;
        std::uint64_t digest = 0;
    };
    static const std::shared_ptr<const Table>& none();

    std::shared_ptr<const Table> table_;
};

}  // namespace thalweg
