// One line of the answer, for people and for machines.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "select/select.h"
#include "sim/point.h"
#include "sim/request.h"

namespace thalweg::sim {

// What hides behind computation, by OSU's definition: percent of the time that the operation takes alone.
struct Hidden {
    double by_caller = 0, by_agent = 0;              // percent
    double total_by_caller = 0, total_by_agent = 0;  // seconds of operation and computation together
};

// `alone`: seconds of the operation by itself, a rank's mean. None where one of both was not simulated.
std::optional<Hidden> hidden_behind(double alone, const Outcome& by_caller, const Outcome& by_agent);

struct Row {
    std::string column;     // as asked for
    std::string algorithm;  // what ran; empty: nothing could
    std::string reason;     // why it was chosen, or could not run
    std::string family;     // of the native library whose model ran; empty: Thalweg's
    int ranks = 0, hosts = 0;
    std::uint64_t bytes = 0;
    std::optional<HaloGrid> grid;  // whose cells are exchanged
    std::string pattern;           // as asked for
    bool simulated = false;        // false with seconds > 0: from the cost model
    double seconds = 0;
    double limit_seconds = 0;      // what the wire needs whatever the algorithm
    double predicted_seconds = 0;  // by the cost model's closed forms; 0: none, or beyond them
    PointResult result;
    std::vector<double> samples;  // seconds, ascending; empty: one operation was simulated
    std::optional<Hidden> hidden;
};

// Why there is nothing to simulate.
inline constexpr const char* alone = "one rank has nobody to talk to";

// What Thalweg would decide by there (plan/communicator.cpp), where it knows what the network is like. Ranks
// sleep while they wait where they share cores, or something else advances the call (select/sleeps.h).
Selection selection_of(const Request& request, Collective collective, const Topology& topology,
                       bool overlapped);

// "1.25 ms"; "-" for none.
std::string duration_text(double seconds);

// Asks what each column runs, and simulates it. `told` is called before every simulation with a short
// sentence.
std::vector<Row> answer(const Request& request, const std::function<void(const std::string&)>& told,
                        std::string& why);

std::string json_line(const Request& request, const Row& row);
void print_table(const Request& request, const std::vector<Row>& rows);

}  // namespace thalweg::sim
