// The validator against the oracle, on random broadcasts: a list of messages and copies is played naively,
// byte by byte, and given to the builder in the same order.
//
//  - the builder's schedules, whole and cut into pieces: naive play, validator and oracle agree, both ways
//  - the same schedules with some faults planted: what the validator still accepts, the oracle runs right
#include <array>

#include "fuzz/fuzz.h"
#include "oracle/oracle.h"
#include "schedule/builder.h"
#include "schedule/passes.h"
#include "schedule/validate.h"

using namespace thalweg;

namespace {

constexpr std::uint64_t scratch_bytes = 40;
constexpr std::uint64_t runs = 4;  // of the oracle: a wrong byte is right by chance once in 256 of them

struct Action {
    int from = 0, to = 0;  // equal: a copy
    Slice source, target;
};

// What a byte holds: the index of a byte of the root's message, or nothing.
using Contents = std::vector<std::int64_t>;
constexpr std::int64_t nothing = -1;

class Broadcast {
  public:
    explicit Broadcast(fuzz::Input& input) {
        problem_.size = 1 + static_cast<int>(input.below(6));
        problem_.root = static_cast<int>(input.below(static_cast<std::uint64_t>(problem_.size)));
        problem_.bytes = input.below(64);
        held_.resize(static_cast<std::size_t>(problem_.size));
        for (auto& rank : held_) {
            rank[1].assign(problem_.bytes, nothing);
            rank[2].assign(scratch_bytes, nothing);
        }
        for (std::uint64_t i = 0; i < problem_.bytes; ++i)
            held_[static_cast<std::size_t>(problem_.root)][1][i] = static_cast<std::int64_t>(i);
        const bool may_read_nothing = input.chance(8);
        for (std::uint64_t left = input.below(24); left > 0; --left) add(input, may_read_nothing);
        if (!input.chance(4)) finish();
    }

    const Problem& problem() const { return problem_; }
    bool reads_nothing() const { return reads_nothing_; }  // a byte that was never written

    bool is_right() const {
        for (const auto& rank : held_)
            for (std::uint64_t i = 0; i < problem_.bytes; ++i)
                if (rank[1][i] != static_cast<std::int64_t>(i)) return false;
        return true;
    }

    std::vector<Schedule> build() const {
        return oracle::all_ranks(problem_.size, [&](int rank) {
            Builder builder(rank, problem_.size);
            builder.scratch(scratch_bytes);
            for (const Action& action : actions_) {
                if (action.from == action.to) {
                    if (action.from == rank) builder.copy(action.target, action.source);
                    continue;
                }
                if (action.from == rank) builder.send(action.to, action.source);
                if (action.to == rank) builder.recv(action.from, action.target);
            }
            return std::move(builder).finish();
        });
    }

  private:
    Contents& at(int rank, const Slice& slice) {
        return held_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(slice.buffer)];
    }

    void add(fuzz::Input& input, bool may_read_nothing) {
        const auto ranks = static_cast<std::uint64_t>(problem_.size);
        Action action;
        action.from = input.chance(2) ? problem_.root : static_cast<int>(input.below(ranks));
        action.to = static_cast<int>(input.below(ranks));
        const std::uint64_t bytes = input.below(std::min(problem_.bytes, scratch_bytes) + 1);
        for (Slice* slice : {&action.source, &action.target}) {
            slice->buffer = input.chance(3) ? Buffer::scratch : Buffer::out;
            slice->bytes = bytes;
            slice->offset =
                input.below((slice->buffer == Buffer::scratch ? scratch_bytes : problem_.bytes) - bytes + 1);
        }
        if (input.chance(2) && action.source.buffer == action.target.buffer && action.from != action.to)
            action.target.offset = action.source.offset;
        play(action, may_read_nothing);
    }

    // Gives every rank what it still lacks, where the root still has it.
    void finish() {
        for (int rank = 0; rank < problem_.size; ++rank) {
            const Slice all{Buffer::out, 0, problem_.bytes};
            if (rank != problem_.root) play({problem_.root, rank, all, all}, false);
        }
    }

    void play(const Action& action, bool may_read_nothing) {
        if (action.from == action.to && overlap(action.source, action.target)) return;
        const Contents& source = at(action.from, action.source);
        const auto begin = source.begin() + static_cast<std::ptrdiff_t>(action.source.offset);
        const Contents moved(begin, begin + static_cast<std::ptrdiff_t>(action.source.bytes));
        const bool undefined = std::find(moved.begin(), moved.end(), nothing) != moved.end();
        if (undefined && !may_read_nothing) return;
        reads_nothing_ |= undefined;
        std::copy(moved.begin(), moved.end(),
                  at(action.to, action.target).begin() + static_cast<std::ptrdiff_t>(action.target.offset));
        actions_.push_back(action);
    }

    Problem problem_;
    std::vector<std::array<Contents, 3>> held_;  // of every rank, by Buffer
    std::vector<Action> actions_;
    bool reads_nothing_ = false;
};

std::string oracle_says(const Problem& problem, const std::vector<Schedule>& schedules, std::uint64_t seed) {
    for (std::uint64_t run = 0; run < runs; ++run) {
        std::string wrong = oracle::run(Collective::bcast, problem, schedules, seed + run);
        if (!wrong.empty()) return wrong;
    }
    return {};
}

void all_agree(const Broadcast& broadcast, const std::vector<Schedule>& schedules, std::uint64_t seed) {
    const Problem& problem = broadcast.problem();
    const Verdict verdict = validate(schedules, oracle::contracts_for(Collective::bcast, problem));
    const bool accepted = verdict.status == Status::ok;
    if (accepted != verdict.why.empty()) fuzz::fail("a verdict and its sentence disagree: " + verdict.why);
    if (broadcast.reads_nothing()) {
        if (accepted) fuzz::fail("the validator accepts a step that reads undefined bytes");
        return;
    }
    if (accepted != broadcast.is_right())
        fuzz::fail(accepted ? "the validator accepts what leaves wrong bytes"
                            : "the validator refuses: " + verdict.why);
    const std::string wrong = oracle_says(problem, schedules, seed);
    if (wrong.empty() != accepted)
        fuzz::fail(accepted ? "the oracle objects: " + wrong : "the oracle misses: " + verdict.why);
}

// A schedule taken apart, so that faults can be planted.
struct Parts {
    std::vector<Step> steps;
    std::vector<std::vector<StepId>> after;
    std::uint64_t scratch = 0;

    explicit Parts(const Schedule& schedule)
        : steps(schedule.steps().begin(), schedule.steps().end()), scratch(schedule.scratch_bytes()) {
        for (StepId id = 0; id < steps.size(); ++id)
            after.emplace_back(schedule.after(id).begin(), schedule.after(id).end());
    }

    Schedule joined(int rank, int size) const {
        std::vector<StepId> all;
        std::vector<std::uint32_t> begin{0};
        for (const auto& list : after) {
            all.insert(all.end(), list.begin(), list.end());
            begin.push_back(static_cast<std::uint32_t>(all.size()));
        }
        return Schedule(rank, size, steps, std::move(all), std::move(begin), scratch);
    }
};

void plant(fuzz::Input& input, Parts& parts) {
    if (parts.steps.empty()) return;
    const std::size_t id = input.below(parts.steps.size());
    Step& step = parts.steps[id];
    auto& after = parts.after[id];
    Slice& slice = step.kind == StepKind::send || input.chance(2) ? step.source : step.target;
    switch (input.below(9)) {
        case 0:
            if (!after.empty())
                after.erase(after.begin() + static_cast<std::ptrdiff_t>(input.below(after.size())));
            break;
        case 1:
            after.push_back(static_cast<StepId>(input.below(parts.steps.size())));
            break;
        case 2:
            slice.offset += static_cast<std::uint64_t>(input.between(-9, 9));
            break;
        case 3:
            slice.bytes += static_cast<std::uint64_t>(input.between(-3, 3));
            break;
        case 4:
            slice.buffer = static_cast<Buffer>(input.below(3));
            break;
        case 5:
            step.peer = static_cast<int>(input.between(-1, 6));
            break;
        case 6:
            step.message = static_cast<std::uint32_t>(input.below(4));
            break;
        case 7:
            step.kind = static_cast<StepKind>(input.below(4));
            break;
        default:
            std::swap(step, parts.steps[input.below(parts.steps.size())]);
            break;
    }
}

void nothing_wrong_is_accepted(fuzz::Input& input, const Problem& problem, std::vector<Schedule> schedules,
                               std::uint64_t seed) {
    for (std::uint64_t faults = 1 + input.below(3); faults > 0; --faults) {
        const std::size_t rank = input.below(schedules.size());
        Parts parts(schedules[rank]);
        plant(input, parts);
        schedules[rank] = parts.joined(static_cast<int>(rank), problem.size);
    }
    if (validate(schedules, oracle::contracts_for(Collective::bcast, problem)).status != Status::ok) return;
    const std::string wrong = oracle_says(problem, schedules, seed);
    if (!wrong.empty()) fuzz::fail("the validator accepts a planted fault, the oracle says: " + wrong);
}

}  // namespace

std::vector<std::string> fuzz::seeds() { return {}; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::uint64_t seed = input.word(2), chunk_bytes = input.below(20);
    const Broadcast broadcast(input);
    const std::vector<Schedule> whole = broadcast.build();
    all_agree(broadcast, whole, seed);

    std::vector<Schedule> cut;
    for (const Schedule& schedule : whole)
        cut.push_back(chunked(schedule, chunk_bytes, broadcast.problem().bytes));
    all_agree(broadcast, cut, seed);

    for (int i = 0; i < 4; ++i)
        nothing_wrong_is_accepted(input, broadcast.problem(), i % 2 ? cut : whole, seed);
    return 0;
}
