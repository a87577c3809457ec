// Tuning tables: what was measured to be best, row by row. See tables/README.md for the format.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/status.h"
#include "model/machine.h"
#include "topology/topology.h"

namespace thalweg {

// Both ends included.
struct Range {
    std::uint64_t low = 0;
    std::uint64_t high = std::numeric_limits<std::uint64_t>::max();

    bool has(std::uint64_t value) const { return low <= value && value <= high; }
};

struct TuningRow {
    std::string family;   // empty: any
    std::string library;  // how MPI_Get_library_version begins; empty: any
    // Of calls that wait for the operation, or of those that something advances meanwhile (Selection); of
    // persistent ones alone on one host, in whose memory they run; of such between neighbours, or of blocking
    // calls between these that are tried there, whose `bytes` are the mean of their messages; or of messages
    // between neighbours alone (neighbours.h), whose `bytes` are those of the largest; or of persistent
    // exchanges that would go in rounds and whose messages differ (exchanges.h), whose `bytes` are the mean
    // of all pairs.
    bool blocking = true, overlapped = true, persistent = false, neighbour_plans = false,
         neighbour_calls = false, neighbours = false, uneven = false;
    bool spinning = true, sleeping = true;  // for ranks that wait so
    bool tried = false;  // the choice and the native call take turns, and the faster one has it
    // What is tried on one host: by the MPI library's messages; or in its memory, and else natively; neither:
    // in its memory where that can be had, and else by messages.
    bool over_library = false, only_in_memory = false;
    Range hosts, ppn, bytes;
    std::optional<Choice> choice;  // empty: native
};

struct TuningTable {
    Collective collective = Collective::bcast;
    std::string machine, date, method, commit;
    Range latency_ps, bytes_per_second, ports;  // of the machines it speaks for
    std::vector<TuningRow> rows;
};

// One table, or a list of them; of all tables of a collective the first row that fits decides. `tables` is
// replaced. invalid_argument: it is neither; `why` is one sentence that names the row, and of a list the
// table by its number, and `tables` is unchanged. Throws std::bad_alloc.
Status parse_tables(std::string_view json, std::vector<TuningTable>& tables, std::string& why);
// Those of a text that is known to be right; none of one that is empty, or is not. Throws std::bad_alloc.
std::vector<TuningTable> tables_in(std::string_view json);

// The tables compiled into the library, as JSON.
std::span<const std::string_view> built_in_tables();
// The same, read: once in a process, as MPI_Init alone asks them for a dozen things. Never destroyed. Throws
// std::bad_alloc.
const std::vector<TuningTable>& built_in_tuning();

// Whether a table speaks for links like these; whether a row does for a native MPI of this family that says
// this of itself (MPI_Get_library_version; one blank is as good as many), for ranks that wait so, and for a
// communicator with these hosts.
bool speaks_for(const TuningTable& table, const Level& links);
bool speaks_of(const TuningRow& row, std::string_view family, std::string_view library);
inline bool meant_for(const TuningRow& row, bool sleeps) { return sleeps ? row.sleeping : row.spinning; }
bool fits(const TuningRow& row, const Topology& topology);

// Whether it serves neighbours whoever they are: it needs nothing that one end of a message alone does not
// know, or what the two tell each other when a persistent operation is made. Of rows for neighbours and for
// uneven messages the choice is one of these, or native.
bool goes_straight(const Choice& choice);

}  // namespace thalweg
