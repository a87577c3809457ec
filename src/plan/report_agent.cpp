#include "plan/report_agent.h"

#include <cinttypes>

#include "engine/agent.h"
#include "plan/attendance.h"
#include "plan/report_inside.h"
#include "plan/report_text.h"

namespace thalweg {
namespace {

struct AgentRow {
    Attendance::Account account;
    std::uint64_t wake_ups = 0, cpu_ns = 0;
    AgentStatistics statistics;
};

AgentRow agent_row() {
    AgentRow row;
    row.account = Attendance::account();
    if (!row.account.agent) return row;
    row.statistics = Attendance::agent().statistics();
    for (const SleeperUse& use : row.statistics.uses) row.wake_ups += use.sleeps;
    row.cpu_ns = static_cast<std::uint64_t>(row.statistics.cpu_seconds * 1e9);
    return row;
}

}  // namespace

void append_agent_json(std::string& text) {
    const AgentRow row = agent_row();
    text += "{\"place\": " + quoted(row.account.agent ? row.account.place : "none");
    if (!row.account.why_there.empty()) text += ", \"why\": " + quoted(row.account.why_there);
    append(text,
           ", \"wake_ups\": %" PRIu64 ", \"useless_wake_ups\": %" PRIu64 ", \"postings\": %" PRIu64
           ", \"cpu_seconds\": ",
           row.wake_ups, row.statistics.useless, row.statistics.postings);
    text += seconds_text(row.cpu_ns);
    if (!row.account.libucp.empty()) text += ", \"libucp\": " + quoted(row.account.libucp);
    if (!row.account.addresses.empty()) text += ", \"addresses\": " + quoted(row.account.addresses);
    if (!row.account.why_not_libucp.empty()) text += ", \"no_libucp\": " + quoted(row.account.why_not_libucp);
    append_inside_json(text, row.account);
    text += '}';
}

void append_agent_table(std::string& text) {
    const AgentRow row = agent_row();
    if (!row.account.agent) return;
    append(text, "  agent: %s%s%s%s, %" PRIu64 " wake-ups, %.6f s of CPU time", row.account.place.c_str(),
           row.account.why_there.empty() ? "" : " (", row.account.why_there.c_str(),
           row.account.why_there.empty() ? "" : ")", row.wake_ups, row.statistics.cpu_seconds);
    text += row.account.libucp.empty() ? "\n" : "; " + printable(row.account.libucp) + "\n";
    if (!row.account.why_not_libucp.empty())
        text += "  not over libucp: " + row.account.why_not_libucp + "\n";
    append_inside_table(text, row.account);
}

}  // namespace thalweg
