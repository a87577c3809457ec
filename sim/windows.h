// `thalweg sim alltoallv --rma`: an alltoallv by puts, with the window made in every call and once per plan.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/request.h"

namespace thalweg::sim {

// Seconds, each part until the last rank is done with it. The parts follow one another: what overlaps in
// reality makes a call cheaper than their sum.
struct WindowsRow {
    std::string why;  // empty: simulated
    int ranks = 0, hosts = 0;
    std::uint64_t bytes = 0;        // from each rank to each
    double messages = 0;            // the puts, all pairs at once
    double synchronised = 0;        // three barriers: one, and two fences
    double agreed = 0;              // displacements of all pairs, addresses and keys of all ranks
    double registered = 0;          // the receive buffer, and the reverse when the window is freed
    double registered_in_turn = 0;  // the same if a host's kernel serves one process after another
    double alltoallv = 0;           // the native operation instead

    double per_plan() const { return messages + synchronised; }
    double per_call() const { return per_plan() + agreed + registered; }
};

std::vector<WindowsRow> answer_windows(const Request& request,
                                       const std::function<void(const std::string&)>& told, std::string& why);

std::string json_line(const Request& request, const WindowsRow& row);
void print_table(const Request& request, const std::vector<WindowsRow>& rows);

}  // namespace thalweg::sim
