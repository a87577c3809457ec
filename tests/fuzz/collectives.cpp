// Any algorithm with any parameters on any group: what it does not refuse is proved by the validator, does
// what it claims, and leaves the right bytes in the oracle.
#include "algorithms/algorithm.h"
#include "fuzz/fuzz.h"
#include "oracle/oracle.h"
#include "schedule/validate.h"

using namespace thalweg;

namespace {

Choice read_choice(fuzz::Input& input, Collective collective, bool may_have_parts) {
    std::vector<const Algorithm*> rows;
    for (const Algorithm& row : algorithms())
        if (row.collective == collective && (may_have_parts || row.parts.empty())) rows.push_back(&row);
    Choice choice = standard_choice(*rows[input.below(rows.size())]);
    for (std::size_t i = 0; i < choice.parts.size(); ++i)
        choice.parts[i] = read_choice(input, choice.algorithm->parts[i].collective, false);
    for (std::size_t i = 0; i < choice.algorithm->parameters.size(); ++i) {
        const Parameter& parameter = choice.algorithm->parameters[i];
        if (input.chance(4)) continue;  // its standard value
        const std::uint64_t value = input.below(parameter.name.ends_with("_bytes") ? 400 : 9);
        choice.values[i] = std::clamp(value, parameter.minimum, parameter.maximum);
    }
    return choice;
}

// All ranks on one host, blocks of equal size, or every rank anywhere.
Topology read_topology(fuzz::Input& input, int size) {
    const std::uint64_t kind = input.below(4), hosts = 1 + input.below(9);
    std::vector<std::uint64_t> host_of(static_cast<std::size_t>(size), 0);
    for (std::size_t rank = 0; rank < host_of.size(); ++rank)
        if (kind != 0) host_of[rank] = kind == 1 ? rank / hosts : input.below(hosts);
    return Topology::from_table(host_of);
}

// Any lengths, in any order in the buffer, with gaps.
std::vector<Block> read_blocks(fuzz::Input& input, int size) {
    std::vector<Block> blocks(static_cast<std::size_t>(size));
    std::vector<Block*> order;
    for (Block& block : blocks) {
        order.insert(order.begin() + static_cast<std::ptrdiff_t>(input.below(order.size() + 1)), &block);
        block.bytes = input.chance(3) ? 0 : input.below(60);
    }
    std::uint64_t at = 0;
    for (Block* block : order) {
        block->offset = at + input.below(4);
        at = block->offset + block->bytes;
    }
    return blocks;
}

}  // namespace

std::vector<std::string> fuzz::seeds() { return {}; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const auto collective = static_cast<Collective>(input.below(collective_count));
    const Choice choice = read_choice(input, collective, true);
    Problem problem;
    problem.size = 1 + static_cast<int>(input.below(input.chance(8) ? 130 : 24));
    problem.root = static_cast<int>(input.below(static_cast<std::uint64_t>(problem.size)));
    problem.bytes = input.below(input.chance(2) ? 3000 : 50);
    problem.in_place = collective != Collective::bcast && input.chance(2);
    std::vector<Block> blocks;
    if (collective == Collective::allgather) {
        problem.bytes %= 200;
        if (input.chance(2)) blocks = read_blocks(input, problem.size);
        problem.blocks = blocks;
    } else if (collective == Collective::allreduce) {
        const std::uint64_t elements[] = {1, 4, 8, 12};
        problem.element_bytes = elements[input.below(4)];
        problem.bytes -= problem.bytes % problem.element_bytes;
        problem.commutative = problem.element_bytes != 8 || input.chance(2);
    } else if (collective == Collective::barrier) {
        problem.bytes = 0;
    } else if (collective == Collective::alltoallv) {
        // Bytes and messages grow with the square of the ranks.
        problem.bytes %= 100;
        problem.size = 1 + (problem.size - 1) % 24;
        problem.root = 0;
    }
    const Topology topology = read_topology(input, problem.size);
    const std::uint64_t seed = input.word(8);

    const auto fail = [&](const std::string& why) {
        fuzz::fail(to_text(choice) + ", " + topology.to_text() + ", root " + std::to_string(problem.root) +
                   ", " + std::to_string(problem.bytes) + " bytes: " + why);
    };
    const std::string_view refused = refuse(choice, problem, topology);
    std::vector<Schedule> schedules;
    for (problem.rank = 0; problem.rank < problem.size; ++problem.rank) {
        if (refuse(choice, problem, topology) != refused) fail("only some ranks are refused");
        if (refused.empty()) schedules.push_back(build(choice, problem, topology));
    }
    if (!refused.empty()) return 0;

    problem.rank = 0;
    const Verdict verdict = validate(schedules, oracle::contracts_for(collective, problem));
    if (verdict.status != Status::ok) fail(verdict.why);
    const Claim claimed = claim(choice, problem, topology);
    if (verdict.messages != claimed.messages || verdict.bytes != claimed.bytes ||
        verdict.redundant_bytes != claimed.redundant_bytes)
        fail(std::to_string(verdict.messages) + " messages, " + std::to_string(verdict.bytes) +
             " bytes and " + std::to_string(verdict.redundant_bytes) + " redundant ones, " +
             std::to_string(claimed.messages) + ", " + std::to_string(claimed.bytes) + " and " +
             std::to_string(claimed.redundant_bytes) + " claimed");
    bool exact = collective != Collective::allreduce || !problem.in_place;
    for (const Block& block : blocks) exact &= block.bytes != 0;
    if (verdict.signals != claimed.signals)
        fail(std::to_string(verdict.signals) + " signals, " + std::to_string(claimed.signals) + " claimed");
    if (choice.parts.empty() && exact && verdict.rounds != claimed.rounds)
        fail(std::to_string(verdict.rounds) + " rounds, " + std::to_string(claimed.rounds) + " claimed");
    const std::string wrong = oracle::run(collective, problem, schedules, seed);
    if (!wrong.empty()) fail(wrong);
    return 0;
}
