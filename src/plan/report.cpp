#include "plan/report.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/float_modes.h"
#include "base/log.h"
#include "base/signals_blocked.h"
#include "base/text.h"
#include "plan/bypass.h"
#include "plan/plan_account.h"
#include "plan/report_agent.h"
#include "plan/report_file.h"
#include "plan/report_neighbours.h"
#include "plan/report_network.h"
#include "plan/report_text.h"
#include "plan/unasked.h"
#include "plan/window_plan.h"
#include "thalweg/thalweg.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

bool spawned = false;  // this world was made by MPI_Comm_spawn; set in MPI_Init

// What one process did in all, in numbers that can be compared between ranks.
enum Total {
    calls,
    accelerated,
    declined,
    bytes,
    accelerated_bytes,
    elapsed_ns,
    staged,
    errors,
    polls,
    sleeps,
    slept_ns,
    totals
};
constexpr const char* total_names[totals] = {
    "calls",  "accelerated", "declined", "bytes",  "accelerated_bytes", "accelerated_ns",
    "staged", "errors",      "polls",    "sleeps", "slept_ns"};
using Totals = std::array<std::uint64_t, totals>;

// Declined before anything was asked about the communicator.
struct DeclinedRow {
    CallKind kind;
    Reason reason;
    std::uint64_t calls;
};
std::vector<DeclinedRow> declined_rows() {
    std::vector<DeclinedRow> rows;
    for (int kind = 0; kind < call_kinds; ++kind)
        for (int reason = 0; reason < reason_count; ++reason) {
            std::uint64_t calls = 0;
            for (const DeclinedShard& shard : declined_calls)
                calls += shard.calls[static_cast<std::size_t>(kind)][static_cast<std::size_t>(reason)].load(
                    std::memory_order_relaxed);
            if (calls != 0) rows.push_back({static_cast<CallKind>(kind), static_cast<Reason>(reason), calls});
        }
    return rows;
}

Totals add_up(const std::vector<std::shared_ptr<CommunicatorRecord>>& records) {
    Totals sum{};
    for (const SmallShard& shard : small_calls) {
        for (const auto& count : shard.calls) {
            sum[calls] += count.load(std::memory_order_relaxed);
            sum[declined] += count.load(std::memory_order_relaxed);
        }
        sum[bytes] += shard.bytes.load(std::memory_order_relaxed);
    }
    for (const DeclinedRow& row : declined_rows()) {
        sum[calls] += row.calls;
        sum[declined] += row.calls;
    }
    for (const auto& record : records)
        for (const Tally& tally : record->tallies) {
            sum[calls] += tally.calls;
            sum[tally.accelerated ? accelerated : declined] += tally.calls;
            sum[bytes] += tally.bytes;
            if (tally.accelerated) sum[accelerated_bytes] += tally.bytes;
            sum[elapsed_ns] += tally.elapsed_ns;
            sum[staged] += tally.staged_calls;
            sum[errors] += tally.errors;
            sum[polls] += tally.waited.polls;
            sum[sleeps] += tally.waited.sleeps;
            sum[slept_ns] += tally.waited.slept_ns;
        }
    return sum;
}

// Those that were handed on unseen at some time.
std::vector<Collective> handed_on(const World& world) {
    std::vector<Collective> collectives;
    for (int i = 0; i < collective_count; ++i)
        if (world.handed_on(static_cast<Collective>(i))) collectives.push_back(static_cast<Collective>(i));
    return collectives;
}

struct SmallRow {
    int size_class;
    std::uint64_t calls;
};
std::vector<SmallRow> small_rows() {
    std::vector<SmallRow> rows;
    for (std::size_t k = 0; k < small_calls[0].calls.size(); ++k) {
        std::uint64_t count = 0;
        for (const SmallShard& shard : small_calls) count += shard.calls[k].load(std::memory_order_relaxed);
        if (count != 0) rows.push_back({static_cast<int>(k), count});
    }
    return rows;
}

// One form of a call: how often it was seen, taken, and left to the MPI library, and why.
struct OperationRow {
    std::uint64_t seen = 0, accelerated = 0;
    std::array<std::uint64_t, reason_count> declined{};
    void count(Reason reason, std::uint64_t calls) {
        seen += calls;
        declined[static_cast<std::size_t>(reason)] += calls;
    }
};
using OperationRows = std::array<OperationRow, call_kinds>;

OperationRows operation_rows(const std::vector<std::shared_ptr<CommunicatorRecord>>& records) {
    OperationRows rows;
    for (const SmallRow& row : small_rows()) rows[0].count(Reason::small, row.calls);
    for (const DeclinedRow& row : declined_rows())
        rows[static_cast<std::size_t>(row.kind)].count(row.reason, row.calls);
    for (const auto& record : records)
        for (const Tally& tally : record->tallies) {
            OperationRow& row = rows[static_cast<std::size_t>(tally.kind)];
            if (!tally.accelerated) {
                row.count(tally.reason, tally.calls);
                continue;
            }
            row.seen += tally.calls;
            row.accelerated += tally.calls;
        }
    return rows;
}

void append_operations(std::string& text, const OperationRows& rows) {
    bool first = true;
    for (int kind = 0; kind < call_kinds; ++kind) {
        const OperationRow& row = rows[static_cast<std::size_t>(kind)];
        if (row.seen == 0) continue;
        append(text, "%s\n  \"%s\": {\"seen\": %" PRIu64 ", \"accelerated\": %" PRIu64 ", \"declined\": {",
               first ? "" : ",", text_of(static_cast<CallKind>(kind)), row.seen, row.accelerated);
        first = false;
        bool first_reason = true;
        for (int reason = 0; reason < reason_count; ++reason) {
            const std::uint64_t calls = row.declined[static_cast<std::size_t>(reason)];
            if (calls == 0) continue;
            text += (first_reason ? "" : ", ") + quoted(text_of(static_cast<Reason>(reason)));
            append(text, ": %" PRIu64, calls);
            first_reason = false;
        }
        text += "}}";
    }
}

void append_totals(std::string& text, const Totals& sum) {
    text += '{';
    for (int i = 0; i < totals; ++i)
        append(text, "%s\"%s\": %" PRIu64, i == 0 ? "" : ", ", total_names[i], sum[i]);
    text += '}';
}

void append_tally(std::string& text, const Tally& tally) {
    append(text,
           "{\"operation\": \"%s\", \"bytes_from\": %" PRIu64 ", \"calls\": %" PRIu64 ", \"bytes\": %" PRIu64,
           text_of(tally.kind), class_begin(tally.size_class), tally.calls, tally.bytes);
    if (!tally.accelerated) {
        text += ", \"declined\": " + quoted(text_of(tally.reason)) + "}";
        return;
    }
    text += ", \"algorithm\": " + quoted(tally.algorithm);
    append(text, ", \"seconds\": %s, \"staged\": %" PRIu64 ", \"errors\": %" PRIu64,
           seconds_text(tally.elapsed_ns).c_str(), tally.staged_calls, tally.errors);
    append(text, ", \"polls\": %" PRIu64 ", \"sleeps\": %" PRIu64 ", \"slept_seconds\": %s}",
           tally.waited.polls, tally.waited.sleeps, seconds_text(tally.waited.slept_ns).c_str());
}

std::string as_json(const World& world, const std::vector<std::shared_ptr<CommunicatorRecord>>& records,
                    const Totals& own, const Totals& most) {
    std::string text = "{\n";
    append(text, " \"thalweg\": \"%d.%d.%d\",\n \"mpi\": ", THALWEG_VERSION_MAJOR, THALWEG_VERSION_MINOR,
           THALWEG_VERSION_PATCH);
    text += quoted(host()->library_version);
    append(text,
           ",\n \"ranks\": %d,\n \"rank\": %d,\n \"spawned\": %s,\n \"more_ranks_than_cores\": %s,\n "
           "\"settings\": {",
           world.size(), world.rank(), spawned ? "true" : "false", world.crowded() ? "true" : "false");
    bool first = true;
    for (std::size_t i = 0; i < option_count; ++i) {
        if (world.settings().origin[i] == Origin::standard) continue;
        text += (first ? "" : ", ") + quoted(options()[i].variable) + ": " +
                quoted(world.settings().value_text(i));
        first = false;
    }
    text += "},\n \"totals\": ";
    append_totals(text, own);
    text += ",\n \"largest_of_any_rank\": ";
    append_totals(text, most);
    text += ",\n \"operations\": {";
    append_operations(text, operation_rows(records));
    text += "},\n \"plans\": [" + plans_json() + "],\n \"windows_left\": " + std::to_string(windows_alive()) +
            ",\n \"agent\": ";
    append_agent_json(text);
    append_neighbours_json(text, records);
    append_network_json(text, world);
    text += ",\n \"unseen\": [";
    first = true;
    for (const Collective collective : handed_on(world)) {
        append(text, "%s{\"operation\": \"%s\", \"reason\": ", first ? "" : ", ",
               std::string(name_of(collective)).c_str());
        text += quoted(Bypass::reason(collective)) + "}";
        first = false;
    }
    text += "],\n \"small\": [";
    first = true;
    for (const SmallRow& row : small_rows()) {
        append(text,
               "%s\n  {\"operation\": \"bcast\", \"bytes_from\": %" PRIu64 ", \"calls\": %" PRIu64
               ", \"declined\": ",
               first ? "" : ",", class_begin(row.size_class), row.calls);
        text += quoted(text_of(Reason::small)) + "}";
        first = false;
    }
    text += "],\n \"everywhere\": [";
    first = true;
    for (const DeclinedRow& row : declined_rows()) {
        append(text, "%s\n  {\"operation\": \"%s\", \"calls\": %" PRIu64 ", \"declined\": ", first ? "" : ",",
               text_of(row.kind), row.calls);
        text += quoted(text_of(row.reason)) + "}";
        first = false;
    }
    text += "],\n \"communicators\": [";
    first = true;
    for (const auto& record : records) {
        if (record->tallies.empty()) continue;
        append(text, "%s\n  {\"communicator\": %" PRIu64 ", \"name\": ", first ? "" : ",", record->number);
        text += quoted(record->name);
        append(text, ", \"size\": %d, \"hosts\": %d, \"communicators\": %" PRIu64 ", \"wait\": \"%s\", ",
               record->size, record->nodes, record->communicators, record->sleeps ? "sleep" : "spin");
        if (*record->carrier != '\0') append(text, "\"nonblocking_over\": \"%s\", ", record->carrier);
        text += "\"rows\": [";
        first = false;
        bool first_row = true;
        for (const Tally& tally : record->tallies) {
            text += first_row ? "\n   " : ",\n   ";
            append_tally(text, tally);
            first_row = false;
        }
        text += "]}";
    }
    return text + "]\n}\n";
}

std::string as_table(const World& world, const std::vector<std::shared_ptr<CommunicatorRecord>>& records,
                     const Totals& most) {
    std::string text;
    append(text, "thalweg %d.%d.%d: %d %sranks, %s, rank %d's calls\n", THALWEG_VERSION_MAJOR,
           THALWEG_VERSION_MINOR, THALWEG_VERSION_PATCH, world.size(), spawned ? "spawned " : "",
           host()->library_version, world.rank());
    append(text, "  %-15s %10s %9s %12s %10s  %s\n", "operation", "bytes from", "calls", "bytes", "seconds",
           "how (waits: sleeps)");
    for (const Collective collective : handed_on(world))
        append(text, "  %-15s %10s %9s %12s %10s  native: %s\n", std::string(name_of(collective)).c_str(), "",
               "", "", "", Bypass::reason(collective).c_str());
    for (const SmallRow& row : small_rows())
        append(text, "  %-15s %10s %9" PRIu64 " %12s %10s  native: %s\n", "bcast",
               bytes_text(class_begin(row.size_class)).c_str(), row.calls, "", "", text_of(Reason::small));
    for (const DeclinedRow& row : declined_rows())
        append(text, "  %-15s %10s %9" PRIu64 " %12s %10s  native: %s\n", text_of(row.kind), "", row.calls,
               "", "", text_of(row.reason));
    for (const auto& record : records) {
        if (record->tallies.empty()) continue;
        append(text, " %s, %d rank%s",
               record->name.empty() ? "unnamed communicator" : printable(record->name).c_str(), record->size,
               record->size == 1 ? "" : "s");
        if (record->communicators > 1) append(text, ", %" PRIu64 " of them", record->communicators);
        if (record->nodes > 0)
            append(text, ", %s%d host%s", record->merged ? "up to " : "", record->nodes,
                   record->nodes == 1 ? "" : "s");
        if (*record->carrier != '\0') append(text, ", nonblocking over %s", record->carrier);
        text += '\n';
        for (const Tally& tally : record->tallies) {
            append(text, "  %-15s %10s %9" PRIu64 " %12" PRIu64 " ", text_of(tally.kind),
                   bytes_text(class_begin(tally.size_class)).c_str(), tally.calls, tally.bytes);
            if (tally.accelerated)
                append(text, "%10.6f  %s (%s: %" PRIu64 ")\n", static_cast<double>(tally.elapsed_ns) * 1e-9,
                       tally.algorithm.c_str(), record->sleeps ? "sleeps" : "spins", tally.waited.sleeps);
            else
                append(text, "%10s  native: %s\n", "", text_of(tally.reason));
        }
    }
    text += plans_table();
    append_neighbours_table(text, records);
    append_agent_table(text);
    append_network_table(text, world);
    append(text, "  largest of any rank: %.6f s in %" PRIu64 " accelerated calls, %.6f s of it asleep\n",
           static_cast<double>(most[elapsed_ns]) * 1e-9, most[accelerated],
           static_cast<double>(most[slept_ns]) * 1e-9);
    return text;
}

void say(const std::string& text) {
    const WriteSignalsBlocked blocked;
    std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

void note_origin() {
    note_report_folder();
    MPI_Comm parent = host()->comm_null;
    if (host()->Comm_get_parent == nullptr || host()->Comm_get_parent(&parent) != MPI_SUCCESS) return;
    spawned = parent != host()->comm_null;
}

void write_report(World& world) {
    const std::string_view target = world.settings().report.view();
    if (target.empty()) return;
    const Host& mpi = *host();
    Unasked::settle(nullptr);
    Bypass::count_requests(Attendance::refusal());
    const std::vector<std::shared_ptr<CommunicatorRecord>> records = registry().records();
    const Totals own = add_up(records);
    Totals most = own;
    if (mpi.Allreduce(own.data(), most.data(), totals, mpi.uint64, mpi.max, mpi.comm_world) != MPI_SUCCESS)
        most = own;
    if (world.rank() != 0) return;
    const auto table = [&] {
        return with_texts_in_standard_modes([&] { return as_table(world, records, most); });
    };
    if (target == "-") {
        say(table());
        return;
    }
    const std::string asked = world.settings().report.c_str();
    const std::string path = report_path(spawned ? path_of_spawned(asked) : asked);
    const std::string json = with_texts_in_standard_modes([&] { return as_json(world, records, own, most); });
    const std::string why = write_report_file(path, json);
    if (why.empty()) return;
    THALWEG_LOG_AT(warn, "THALWEG_REPORT: %s could not be written: %s; what it would have said, as a table",
                   path.c_str(), why.c_str());
    say(table());
}

}  // namespace thalweg
