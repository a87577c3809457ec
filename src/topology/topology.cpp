#include "topology/topology.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "base/mixing.h"

namespace thalweg {
namespace {

constexpr std::uint64_t most_ranks = 1u << 24;

enum class Map { block, cyclic };

// The host of every rank when host h takes ranks_on[h] of them: host after host, or one rank to each host in
// turn, leaving out those that are full. O(ranks), however uneven the hosts are.
std::vector<std::uint64_t> place(std::vector<std::uint64_t> ranks_on, std::uint64_t total, Map map) {
    std::vector<std::uint64_t> host_of;
    host_of.reserve(total);
    if (map == Map::block) {
        for (std::uint64_t host = 0; host < ranks_on.size(); ++host)
            host_of.insert(host_of.end(), ranks_on[host], host);
        return host_of;
    }
    std::vector<std::uint64_t> open(ranks_on.size());  // hosts that are not full, ascending
    for (std::uint64_t host = 0; host < open.size(); ++host) open[host] = host;
    while (!open.empty()) {
        for (std::uint64_t host : open) {
            host_of.push_back(host);
            --ranks_on[host];
        }
        std::erase_if(open, [&ranks_on](std::uint64_t host) { return ranks_on[host] == 0; });
    }
    return host_of;
}

// A comma-separated list of whole numbers. False: it is not one.
bool parse_list(std::string_view text, std::vector<std::uint64_t>& list) {
    list.clear();
    for (;;) {
        std::uint64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error != std::errc{} || list.size() == most_ranks) return false;
        list.push_back(number);
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        if (text.empty()) return true;
        if (text.front() != ',') return false;
        text.remove_prefix(1);
    }
}

// The words of a topology text, taken apart but not yet placed.
struct Words {
    std::vector<std::uint64_t> nodes, cores, ranks;
    std::string_view map;
};

// An empty view, or what is wrong.
std::string_view take_apart(std::string_view text, Words& words) {
    while (true) {
        const auto begin = text.find_first_not_of(" \t");
        if (begin == text.npos) break;
        text.remove_prefix(begin);
        std::string_view word = text.substr(0, text.find_first_of(" \t"));
        text.remove_prefix(word.size());
        const auto colon = word.find(':');
        if (colon == word.npos) return "each word is a name, a colon and a value";
        const std::string_view name = word.substr(0, colon), value = word.substr(colon + 1);
        if (name == "map") {
            if (!words.map.empty()) return "map is given twice";
            if (value != "block" && value != "cyclic") return "map is block or cyclic";
            words.map = value;
            continue;
        }
        std::vector<std::uint64_t>* list = name == "node"    ? &words.nodes
                                           : name == "core"  ? &words.cores
                                           : name == "ranks" ? &words.ranks
                                                             : nullptr;
        if (list == nullptr) return "the names are node, core, map and ranks";
        if (!list->empty()) return "a name is given twice";
        if (!parse_list(value, *list)) return "a value is a whole number, or several with commas";
    }
    return {};
}

// What the words say, checked: the host of each rank, or how many ranks each host takes. Nothing is placed
// yet.
struct Plan {
    std::vector<std::uint64_t> ranks_on;
    std::uint64_t total = 0;
};

// An empty view, or what is wrong.
std::string_view check_words(const Words& words, Plan& plan) {
    if (!words.ranks.empty()) {
        if (!words.nodes.empty() || !words.cores.empty() || !words.map.empty())
            return "ranks says it all, without node, core or map";
        plan.total = words.ranks.size();
        return {};
    }
    if (words.nodes.size() != 1 || words.nodes[0] == 0) return "node is the number of hosts, at least 1";
    const std::uint64_t nodes = words.nodes[0];
    if (nodes > most_ranks) return "there are more than 16777216 ranks";
    plan.ranks_on = words.cores;
    if (plan.ranks_on.empty()) plan.ranks_on = {1};
    if (plan.ranks_on.size() != 1 && plan.ranks_on.size() != nodes)
        return "core gives one number for all hosts, or one for each";
    for (std::uint64_t ranks : plan.ranks_on) {
        if (ranks == 0) return "every host has at least 1 rank";
        if (ranks > most_ranks || (plan.total += ranks) > most_ranks)
            return "there are more than 16777216 ranks";
    }
    if (plan.ranks_on.size() == nodes) return {};
    plan.total *= nodes;
    return plan.total > most_ranks ? "there are more than 16777216 ranks" : std::string_view();
}

// One sentence with the accepted form.
std::string refusal(std::string_view text, std::string_view wrong) {
    constexpr std::size_t shown = 80;
    return "\"" + std::string(text.substr(0, shown)) + (text.size() > shown ? "..." : "") +
           "\" is no topology, because " + std::string(wrong) +
           "; write \"node:4 core:2\", \"node:4 core:2 map:cyclic\", \"node:3 core:1,2,4\" or, with the host "
           "of each "
           "rank, \"ranks:0,1,0,2\"";
}

}  // namespace

Topology Topology::single_node(int size) {
    const std::vector<std::uint64_t> keys(static_cast<std::size_t>(size), 0);
    return from_table(keys);
}

Topology Topology::from_table(std::span<const std::uint64_t> host_key) {
    const auto table = std::make_shared<Table>();
    const std::size_t size = host_key.size();
    table->node_of.resize(size);
    table->local_rank.resize(size);

    std::unordered_map<std::uint64_t, int> number_of;
    std::vector<int> ranks_on;  // per node
    table->digest = mixed(size);
    for (std::size_t rank = 0; rank < size; ++rank) {
        // Neighbours are mostly on one host: no look-up for them.
        int node = 0;
        if (rank != 0 && host_key[rank] == host_key[rank - 1])
            node = table->node_of[rank - 1];
        else
            node = number_of.emplace(host_key[rank], static_cast<int>(ranks_on.size())).first->second;
        if (node == static_cast<int>(ranks_on.size())) ranks_on.push_back(0);
        table->node_of[rank] = node;
        table->local_rank[rank] = ranks_on[static_cast<std::size_t>(node)]++;
        table->digest = mixed(table->digest + static_cast<std::uint64_t>(node) + golden_step);
    }

    for (int ranks : ranks_on) {
        table->ranks_begin.push_back(table->ranks_begin.back() + ranks);
        table->max_ranks_per_node = std::max(table->max_ranks_per_node, ranks);
    }
    if (!ranks_on.empty()) table->min_ranks_per_node = *std::min_element(ranks_on.begin(), ranks_on.end());
    table->ranks.resize(size);
    for (std::size_t rank = 0; rank < size; ++rank) {
        const auto node = static_cast<std::size_t>(table->node_of[rank]);
        table->ranks[static_cast<std::size_t>(table->ranks_begin[node] + table->local_rank[rank])] =
            static_cast<int>(rank);
    }
    Topology topology;
    topology.table_ = table;
    return topology;
}

bool Topology::operator==(const Topology& other) const {
    return table_ == other.table_ ||
           (table_->digest == other.table_->digest && table_->node_of == other.table_->node_of);
}

// Never destroyed, as topologies of communicators may live on to the end.
const std::shared_ptr<const Topology::Table>& Topology::none() {
    static const auto* const table = new std::shared_ptr<const Table>(std::make_shared<const Table>());
    return *table;
}

Status Topology::count_ranks(std::string_view text, int& ranks, std::string& why) {
    Words words;
    Plan plan;
    std::string_view wrong = take_apart(text, words);
    if (wrong.empty()) wrong = check_words(words, plan);
    if (!wrong.empty()) {
        why = refusal(text, wrong);
        return Status::invalid_argument;
    }
    ranks = static_cast<int>(plan.total);
    return Status::ok;
}

Status Topology::from_text(std::string_view text, Topology& topology, std::string& why) {
    Words words;
    Plan plan;
    std::string_view wrong = take_apart(text, words);
    if (wrong.empty()) wrong = check_words(words, plan);
    if (!wrong.empty()) {
        why = refusal(text, wrong);
        return Status::invalid_argument;
    }
    if (words.ranks.empty()) {
        if (plan.ranks_on.size() == 1) plan.ranks_on.resize(words.nodes[0], plan.ranks_on[0]);
        words.ranks =
            place(std::move(plan.ranks_on), plan.total, words.map == "cyclic" ? Map::cyclic : Map::block);
    }
    topology = from_table(words.ranks);
    return Status::ok;
}

std::string Topology::to_text() const {
    std::vector<std::uint64_t> ranks_on_node, host_of(table_->node_of.begin(), table_->node_of.end());
    bool uniform = true;
    for (int node = 0; node < nodes(); ++node) {
        ranks_on_node.push_back(ranks_on(node).size());
        uniform &= ranks_on_node.back() == ranks_on_node.front();
    }
    const bool block = host_of == place(ranks_on_node, host_of.size(), Map::block);
    const bool cyclic = !block && host_of == place(ranks_on_node, host_of.size(), Map::cyclic);

    auto list = [](const auto& numbers) {
        std::string text;
        for (auto number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
        return text;
    };
    if (size() == 0 || (!block && !cyclic)) return "ranks:" + list(host_of);
    if (uniform) ranks_on_node.resize(1);
    return "node:" + std::to_string(nodes()) + " core:" + list(ranks_on_node) + (cyclic ? " map:cyclic" : "");
}

}  // namespace thalweg
