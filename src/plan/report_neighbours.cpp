#include "plan/report_neighbours.h"

#include <algorithm>
#include <cinttypes>
#include <set>

#include "base/clock.h"
#include "base/text.h"
#include "plan/report_text.h"

namespace thalweg {
namespace {

using Row = PeerAccounts::Row;

constexpr std::size_t most_told = 64, most_in_table = 8;

// What is told of one communicator.
struct Neighbours {
    const CommunicatorRecord* record = nullptr;
    std::uint64_t calls = 0, accelerated = 0, elapsed_ns = 0, waiting_ns = 0;
    std::uint64_t slept_ns = 0;
    std::set<std::string> algorithms;
    std::vector<Row> rows;  // the largest first, but shared accounts last
    std::uint64_t bytes = 0, messages = 0, copying_ns = 0, wire_ns = 0;
    bool wire_is_measured = false;
};

Neighbours read(const CommunicatorRecord& record) {
    Neighbours found;
    found.record = &record;
    for (const Tally& tally : record.tallies) {
        if (!is_of_neighbours(tally.kind)) continue;
        found.calls += tally.calls;
        if (!tally.accelerated) continue;
        found.accelerated += tally.calls;
        found.elapsed_ns += tally.elapsed_ns;
        found.waiting_ns += tally.waiting_ns;
        found.slept_ns += tally.waited.slept_ns;
        found.algorithms.insert(tally.algorithm);
    }
    if (record.peers == nullptr) return found;
    found.rows = record.peers->rows();
    std::stable_sort(found.rows.begin(), found.rows.end(), [](const Row& a, const Row& b) {
        if ((a.peer < 0) != (b.peer < 0)) return b.peer < 0;
        return a.figures.bytes() > b.figures.bytes();
    });
    for (const Row& row : found.rows) {
        found.bytes += row.figures.bytes();
        found.messages += row.figures.messages();
        found.copying_ns += row.figures.copying_ns;
    }
    found.wire_is_measured = record.peers->wire_is_measured();
    found.wire_ns = record.peers->wire_ns(now_ns());
    return found;
}

std::vector<Neighbours> neighbourhoods(const Records& records) {
    std::vector<Neighbours> all;
    for (const std::shared_ptr<CommunicatorRecord>& record : records) {
        if (*record->topology == '\0') continue;
        Neighbours found = read(*record);
        if (found.calls != 0) all.push_back(std::move(found));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Neighbours& a, const Neighbours& b) { return a.bytes > b.bytes; });
    return all;
}

using Counts = std::array<PeerFigures::Count, ways>;

void append_counts(std::string& text, const char* name, const Counts& counts) {
    append(text, ", \"%s\": {", name);
    bool first = true;
    for (std::size_t i = 0; i < ways; ++i) {
        if (counts[i].messages == 0) continue;
        append(text, "%s\"%s\": {\"messages\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", first ? "" : ", ",
               name_of(static_cast<Way>(i)), counts[i].messages, counts[i].bytes);
        first = false;
    }
    text += '}';
}

void append_peer(std::string& text, const Row& row) {
    const PeerFigures& figures = row.figures;
    if (row.peer >= 0)
        append(text, "{\"rank\": %d", row.peer);
    else
        append(text, "{\"ranks\": %" PRIu64, row.peers);
    append(text, ", \"where\": \"%s\"", row.inside ? "inside" : "between");
    if (*figures.in_use.because != '\0')
        append(text, ", \"protocol\": \"%s\", \"because\": \"%s\"", name_of(figures.in_use.way),
               figures.in_use.because);
    append(text, ", \"switches\": %" PRIu64, figures.switches);
    if (row.inside)
        text += ", \"seconds_copying\": " + seconds_text(figures.copying_ns) +
                ", \"seconds_under_way\": " + seconds_text(figures.under_way_ns);
    else
        append(text, ", \"packed\": %" PRIu64 ", \"over_rails\": %" PRIu64, figures.packed,
               figures.over_rails);
    append_counts(text, "sent", figures.sent);
    append_counts(text, "received", figures.received);
    text += '}';
}

void append_json(std::string& text, const Neighbours& found) {
    const CommunicatorRecord& record = *found.record;
    append(text, "\n  {\"communicator\": %" PRIu64 ", \"name\": ", record.number);
    text += quoted(record.name);
    append(text, ", \"communicators\": %" PRIu64 ", \"size\": %d, \"hosts\": %d, \"topology\": \"%s\"",
           record.communicators, record.size, record.nodes, record.topology);
    append(text,
           ", \"over\": \"%s\", \"calls\": %" PRIu64 ", \"accelerated\": %" PRIu64 ", \"algorithms\": [",
           record.carrier, found.calls, found.accelerated);
    bool first = true;
    for (const std::string& algorithm : found.algorithms) {
        text += (first ? "" : ", ") + quoted(algorithm);
        first = false;
    }
    text += "], \"seconds_in_calls\": " + seconds_text(found.elapsed_ns) +
            ", \"seconds_waiting\": " + seconds_text(found.waiting_ns) +
            ", \"seconds_asleep\": " + seconds_text(found.slept_ns) +
            ", \"seconds_copying\": " + seconds_text(found.copying_ns);
    if (found.wire_is_measured) text += ", \"seconds_on_wire\": " + seconds_text(found.wire_ns);
    text += ", \"peers\": [";
    first = true;
    for (const Row& row : found.rows) {
        text += first ? "\n   " : ",\n   ";
        append_peer(text, row);
        first = false;
    }
    text += "]}";
}

std::string table_name(const CommunicatorRecord& record) {
    if (!record.name.empty()) return printable(record.name);
    return "communicator " + std::to_string(record.number);
}

PeerFigures::Count all_of(const Counts& counts) {
    PeerFigures::Count sum;
    for (const PeerFigures::Count& count : counts) sum.messages += count.messages, sum.bytes += count.bytes;
    return sum;
}

void append_table_row(std::string& text, const Row& row) {
    const PeerFigures& figures = row.figures;
    const PeerFigures::Count sent = all_of(figures.sent), received = all_of(figures.received);
    const std::string who =
        row.peer >= 0 ? "rank " + std::to_string(row.peer) : std::to_string(row.peers) + " others";
    append(text, "   %-12s %-8s %9" PRIu64 " %14" PRIu64 " %9" PRIu64 " %14" PRIu64 " %8" PRIu64, who.c_str(),
           row.inside ? "inside" : "between", sent.messages, sent.bytes, received.messages, received.bytes,
           figures.switches);
    if (*figures.in_use.because != '\0')
        append(text, "  %s: %s", name_of(figures.in_use.way), figures.in_use.because);
    if (figures.packed != 0) append(text, "; %" PRIu64 " packed", figures.packed);
    text += '\n';
}

}  // namespace

void append_neighbours_json(std::string& text, const Records& records) {
    const std::vector<Neighbours> all = neighbourhoods(records);
    if (all.empty()) return;
    const std::size_t told = std::min(all.size(), most_told);
    text += ",\n \"neighbourhoods\": [";
    for (std::size_t i = 0; i < told; ++i) {
        if (i != 0) text += ',';
        append_json(text, all[i]);
    }
    text += ']';
    if (told == all.size()) return;
    std::uint64_t communicators = 0, calls = 0, bytes = 0;
    for (std::size_t i = told; i < all.size(); ++i) {
        communicators += all[i].record->communicators;
        calls += all[i].calls;
        bytes += all[i].bytes;
    }
    append(text,
           ",\n \"neighbourhoods_left_out\": {\"communicators\": %" PRIu64 ", \"calls\": %" PRIu64
           ", \"bytes\": %" PRIu64 "}",
           communicators, calls, bytes);
}

void append_neighbours_table(std::string& text, const Records& records) {
    const std::vector<Neighbours> all = neighbourhoods(records);
    for (std::size_t i = 0; i < std::min(all.size(), most_in_table); ++i) {
        const Neighbours& found = all[i];
        const CommunicatorRecord& record = *found.record;
        append(text, " neighbours of %s", table_name(record).c_str());
        if (record.communicators > 1) append(text, ", %" PRIu64 " of them", record.communicators);
        append(text, ", %s of %d ranks: %" PRIu64 " of %" PRIu64 " calls taken", record.topology, record.size,
               found.accelerated, found.calls);
        if (found.accelerated == 0) {
            text += '\n';
            continue;
        }
        append(text, "; of %.6f s in them %.6f s waited", static_cast<double>(found.elapsed_ns) * 1e-9,
               static_cast<double>(found.waiting_ns) * 1e-9);
        append(text, ", %.6f s copied inside the host", static_cast<double>(found.copying_ns) * 1e-9);
        if (found.wire_is_measured)
            append(text, ", %.6f s with something on the wire", static_cast<double>(found.wire_ns) * 1e-9);
        text += '\n';
        if (found.rows.empty()) continue;
        append(text, "   %-12s %-8s %9s %14s %9s %14s %8s  %s\n", "peer", "where", "sent", "bytes",
               "received", "bytes", "switches", "protocol in use: why");
        const std::size_t shown = std::min(found.rows.size(), most_in_table);
        for (std::size_t row = 0; row < shown; ++row) append_table_row(text, found.rows[row]);
        if (shown < found.rows.size())
            append(text, "   and %zu more with fewer bytes\n", found.rows.size() - shown);
    }
    if (all.size() > most_in_table)
        append(text, " and %zu more communicators with neighbours, whose exchanges are smaller\n",
               all.size() - most_in_table);
}

}  // namespace thalweg
