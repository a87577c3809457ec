// Tuning tables: any text is a table, or a list of them, or is refused with a sentence; the decisions that
// follow from tables are their own choices, and below native_below() all are native.
#include <algorithm>

#include "fuzz/fuzz.h"
#include "select/select.h"
#include "select/table.h"

using namespace thalweg;

namespace {

constexpr std::uint64_t largest_bytes = std::uint64_t{1} << 44;  // of one message

void decides(const std::string& json, const std::vector<TuningTable>& tables) {
    static const Topology topology = [] {
        Topology made;
        std::string why;
        Topology::from_text("node:4 core:2", made, why);
        return made;
    }();
    Selection selection;
    selection.family = "mpich";
    selection.table = json;
    const Selector selector(Collective::bcast, topology, selection);

    std::vector<std::uint64_t> sizes = {0, 1, 65535, 65536, 1 << 20};
    for (const TuningTable& table : tables)
        for (const TuningRow& row : table.rows)
            for (std::uint64_t edge : {row.bytes.low, row.bytes.high})
                for (std::uint64_t bytes : {edge - 1, edge, edge + 1})
                    sizes.push_back(std::min(bytes, largest_bytes));
    for (std::uint64_t bytes : sizes) {
        const Decision decision = selector.decide(bytes);
        if (decision.reason.empty()) fuzz::fail("a decision without a reason");
        if (decision.choice && bytes < selector.native_below())
            fuzz::fail(std::to_string(bytes) + " bytes are not native, but all below " +
                       std::to_string(selector.native_below()) + " are");
        if (!decision.choice) continue;
        Problem problem;
        problem.size = topology.size();
        problem.bytes = bytes;
        const std::string_view refused = refuse(*decision.choice, problem, topology);
        if (!refused.empty())
            fuzz::fail(to_text(*decision.choice) + " is chosen, but " + std::string(refused));
    }
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
    std::vector<std::string> seeds(built_in_tables().begin(), built_in_tables().end());
    std::erase_if(seeds, [](const std::string& seed) { return seed.size() > 3000; });
    // A row of each kind. In single quotes, which JSON has not.
    seeds.push_back(
        "{'collective': 'bcast', 'machine': 'a lab', 'date': '2026-01-01', 'method': 'median', 'commit': "
        "'0', "
        "'latency_us': [0.5, 20], 'rate_mbit': [1000, null], 'rows': ["
        "{'family': 'mpich', 'hosts': [2, 8], 'ppn': [1, null], 'bytes': [0, 4096], 'choice': 'native'}, "
        "{'hosts': [4, 4], 'bytes': [4097, 1e6], 'choice': 'chain:chunk_bytes=64K'}, "
        "{'bytes': [1000001, null], 'choice': 'node_leader(intra=linear,inter=chain:chunk_bytes=64K)'}]}");
    seeds.push_back("{'collective': 'bcast', 'rows': [{'choice': 'scatter_ring', 'bytes': [1, 1]}]}");
    // A list.
    seeds.push_back(
        "[{'collective': 'bcast', 'rate_mbit': [1, 1000], 'rows': [{'choice': 'native', 'bytes': [0, 99]}]}, "
        "{'collective': 'alltoallv', 'rows': [{'calls': 'uneven', 'choice': 'spread'}]}, "
        "{'collective': 'bcast', 'rows': [{'choice': 'binomial', 'bytes': [50, 4096]}]}]");
    for (std::string& seed : seeds) std::replace(seed.begin(), seed.end(), '\'', '"');
    return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string json(reinterpret_cast<const char*>(data), size);
    std::vector<TuningTable> tables(1);
    tables[0].machine = "as before";
    std::string why, why_again;
    const Status status = parse_tables(json, tables, why);
    if (check_table(json, why_again) != status || why_again != why) fuzz::fail("two answers for one table");
    if (status != Status::ok) {
        if (why.empty()) fuzz::fail("refused without a word");
        if (tables.size() != 1 || tables[0].machine != "as before" || !tables[0].rows.empty())
            fuzz::fail("refused, but changed");
        if (!tables_in(json).empty()) fuzz::fail("refused, but counted");
        return 0;
    }
    if (tables.empty()) fuzz::fail("a list of nothing");
    for (const TuningTable& table : tables)
        for (const TuningRow& row : table.rows)
            for (const Range& range : {row.hosts, row.ppn, row.bytes})
                if (range.low > range.high) fuzz::fail("a range that holds nothing");
    decides(json, tables);
    return 0;
}
