#include "sim/matching.h"

#include <algorithm>
#include <tuple>

#include "schedule/races.h"

namespace thalweg::sim {
namespace {

// One end of a message.
struct End {
    std::int32_t from = 0, to = 0;
    std::uint32_t number = 0;
    StepId step = 0;
    std::uint64_t bytes = 0;

    auto key() const { return std::tuple(from, to, number); }
};

std::vector<End> ends_of(std::span<const Schedule> schedules, StepKind kind) {
    std::vector<End> ends;
    for (const Schedule& schedule : schedules)
        for (StepId id = 0; id < schedule.steps().size(); ++id) {
            const Step& step = schedule.steps()[id];
            if (step.kind != kind) continue;
            if (kind == StepKind::send)
                ends.push_back({schedule.rank(), step.peer, step.message, id, step.source.bytes});
            else
                ends.push_back({step.peer, schedule.rank(), step.message, id, step.target.bytes});
        }
    std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.key() < b.key(); });
    return ends;
}

bool check_races(std::span<const Schedule> schedules, std::string& why) {
    for (const Schedule& schedule : schedules) {
        Race race;
        if (!find_race(schedule, race)) continue;
        why = name_of_step(schedule, race.later) + " touches byte " + std::to_string(race.byte) +
              " in no order with " + name_of_step(schedule, race.earlier);
        return false;
    }
    return true;
}

}  // namespace

std::string name_of_step(const Schedule& schedule, StepId id) {
    constexpr const char* kinds[] = {"send to ", "recv from ", "copy", "reduce"};
    const Step& step = schedule.steps()[id];
    std::string text = "rank " + std::to_string(schedule.rank()) + " step " + std::to_string(id) + " (" +
                       kinds[static_cast<int>(step.kind)];
    if (is_message(step.kind))
        text += std::to_string(step.peer) + ", message " + std::to_string(step.message);
    return text + ")";
}

bool match(std::span<const Schedule> schedules, Matching& matching, std::string& why) {
    if (!check_races(schedules, why)) return false;
    matching = {};
    matching.first.reserve(schedules.size() + 1);
    matching.first.push_back(0);
    for (const Schedule& schedule : schedules)
        matching.first.push_back(matching.first.back() + schedule.steps().size());
    matching.message.assign(matching.first.back(), none);

    const std::vector<End> sends = ends_of(schedules, StepKind::send);
    const std::vector<End> recvs = ends_of(schedules, StepKind::recv);
    matching.messages.reserve(sends.size());
    const auto rank = [&](std::int32_t r) -> const Schedule& {
        return schedules[static_cast<std::size_t>(r)];
    };
    for (std::size_t s = 0, r = 0; s < sends.size() || r < recvs.size(); ++s, ++r) {
        const bool lone_send = r == recvs.size() || (s < sends.size() && sends[s].key() < recvs[r].key());
        if (lone_send) {
            why = name_of_step(rank(sends[s].from), sends[s].step) + " meets no receive";
            return false;
        }
        if (s == sends.size() || recvs[r].key() < sends[s].key()) {
            why = name_of_step(rank(recvs[r].to), recvs[r].step) + " meets no send";
            return false;
        }
        const End &send = sends[s], &recv = recvs[r];
        if (send.bytes != recv.bytes) {
            why = name_of_step(rank(send.from), send.step) + " sends " + std::to_string(send.bytes) +
                  " bytes, but " + name_of_step(rank(recv.to), recv.step) + " receives " +
                  std::to_string(recv.bytes);
            return false;
        }
        if (s == 0 || sends[s - 1].from != send.from || sends[s - 1].to != send.to) ++matching.pairs;
        const auto index = static_cast<std::uint32_t>(matching.messages.size());
        matching.messages.push_back({send.from, send.to, send.step, recv.step, matching.pairs - 1, send.bytes,
                                     rank(send.from).steps()[send.step].direct});
        matching.message[matching.first[static_cast<std::size_t>(send.from)] + send.step] = index;
        matching.message[matching.first[static_cast<std::size_t>(recv.to)] + recv.step] = index;
    }
    return true;
}

Matching number_operations(Matching matching, std::span<const Program> programs, unsigned repeat) {
    for (std::size_t rank = 0; rank < programs.size(); ++rank)
        for (std::uint32_t number = 0; number < programs[rank].size(); ++number) {
            const Act& act = programs[rank][number];
            if (act.kind != ActKind::start) continue;
            for (StepId id = act.begin; id < act.end; ++id) {
                const std::uint32_t message = matching.message[matching.first[rank] + id];
                if (message == none || matching.messages[message].from != static_cast<int>(rank)) continue;
                matching.messages[message].operation = number;
                matching.messages[message].left = act.left;
            }
        }
    auto& messages = matching.messages;
    for (std::size_t begin = 0, end = 0; repeat > 1 && begin < messages.size(); begin = end) {
        while (end < messages.size() && messages[end].pair == messages[begin].pair) ++end;
        const std::size_t of_a_run = (end - begin) / repeat;
        for (std::size_t m = begin; m < end; ++m)
            messages[m].operation = static_cast<std::uint32_t>((m - begin) / of_a_run);
    }
    return matching;
}

}  // namespace thalweg::sim
