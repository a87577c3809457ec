// Which columns a table has: the native default, every algorithm the MPI can be told to use, those algorithms
// as schedules of ours, our own, the automatic choice, and native again (A/A).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::bench {

struct NativeRow {
    std::string_view mpi, collective, name, how, settings, twin, changed;
};
const std::vector<NativeRow>& native_rows();

// What natives of this MPI are that only its default runs, as choices of ours: rows whose `how` is default.
std::vector<std::string> twins_of_default(std::string_view mpi, std::string_view collective);

// The same algorithm as a choice of ours, with the parameters that the row's settings change; empty where the
// row names no twin.
std::string twin_of(const NativeRow& row);

// A choice as to_text writes it, or the text itself where it is none: for comparing what users wrote.
std::string canonical(std::string_view choice);

// One column of the driver's configuration.
struct ColumnPlan {
    std::string name;
    bool native = true;
    nlohmann::json controls = nlohmann::json::object();  // MPI_T variable -> value
    std::string option;                                  // ours: value of THALWEG_<OP>
    std::string environment;   // "NAME=value", several with spaces, that need a launch of its own; or empty
    std::string way = {};      // of a nonblocking collective: as the driver's CallWay
    std::string variant = {};  // of alltoallv, halo: a name of bench/driver/exchange_ways.h, halo_ways.h
    std::string inside = {};   // of halo, ours: THALWEG_INSIDE; empty: as the launch has it
};

inline constexpr std::string_view native_default = "native";
inline constexpr std::string_view native_again = "native (A/A)";
inline constexpr std::string_view automatic = "thalweg";
inline constexpr std::string_view ours_prefix = "thalweg ";  // then the choice as the user wrote it

// Columns of nonblocking collectives besides those above, which there start, compute and wait.
inline constexpr std::string_view native_tested = "native MPI_Test";  // tests while it computes
// The blocking call, then compute; followed by a space and a name, one of its algorithms, pure only.
inline constexpr std::string_view native_blocking = "native blocking";
inline constexpr std::string_view native_async = "native asynchronous";  // as asynchronous.def says
inline constexpr std::string_view socket_reference = "sockets";          // plain blocking sockets, asleep
inline constexpr std::string_view no_traffic = "no traffic";             // compute only
inline constexpr std::string_view agent_prefix = "thalweg agent=";       // then the value of THALWEG_AGENT

// These three get every sample, however slow they are: what is decided is decided between them.
bool always_measured(std::string_view column);
// The MPI library's own: its default, that again, or what it was told to use.
inline bool is_native(std::string_view column) { return column.starts_with("native"); }

// `ours` are choice texts to measure besides the automatic one and the twins of this MPI's algorithms. The
// first three are always default, A/A, automatic; the last ones are `ours`.
std::vector<ColumnPlan> all_columns(std::string_view mpi, std::string_view collective,
                                    const std::vector<std::string>& ours);

// Columns of a nonblocking collective ("iallgather"). `ours` as above; `agents` are values of THALWEG_AGENT;
// `rails` links a host has: allgathers over several have the rings of port_rings() besides. Those with an
// environment come last.
std::vector<ColumnPlan> overlap_columns(std::string_view mpi, std::string_view collective,
                                        const std::vector<std::string>& ours,
                                        const std::vector<std::string>& agents, int rails = 1);
// Choices of ours that tell what several ports gain on the same links: the ring in which a rank sends one
// block at a time, and the one in which it sends as many as there are links.
struct PortRings {
    std::string single, several;
};
PortRings port_rings(int rails);
// Columns of alltoallv. `ours`: choices of THALWEG_ALLTOALLV for MPI_Alltoallv_init besides the automatic
// one.
inline constexpr std::string_view native_plan = "native init";
inline constexpr std::string_view window_per_call = "window per call";
inline constexpr std::string_view window_kept = "window kept";
inline constexpr std::string_view window_kept_lock = "window kept, lock";
inline constexpr std::string_view automatic_plan = "thalweg init";
std::vector<ColumnPlan> exchange_columns(const std::vector<std::string>& ours);
// Columns of a halo exchange. "parted": first the messages inside the host, and when they are done the
// others.
inline constexpr std::string_view halo_parted = "thalweg init parted";
inline constexpr std::string_view sends_parted = "isend parted";
inline constexpr std::string_view halo_nonblocking = "thalweg nonblocking";
inline constexpr std::string_view native_halo_nonblocking = "native nonblocking";
inline constexpr std::string_view halo_paired = "thalweg init spread";
inline constexpr std::string_view setting_begins = " [";  // then the settings that a launch of its own has
// `settings`: "THALWEG_TRANSPORT=shm", several with spaces: Thalweg's columns once more in a launch of their
// own with each of them, beside the native one. Those with an environment come last. `ours`: algorithms whose
// plans are measured besides.
std::vector<ColumnPlan> halo_columns(const std::vector<std::string>& settings,
                                     const std::vector<std::string>& ours = {});
// Columns that compare the choice of protocols with every fixed pair of them, and columns whose computation
// hides: halo_pairs.h, halo_overlap.h. `crosses`: there is more than one host.
std::vector<ColumnPlan> halo_pair_columns(bool crosses);
std::vector<ColumnPlan> halo_overlap_columns(const std::vector<std::string>& settings);
// What this MPI's asynchronous progress is less than that; empty where it is that.
std::string_view asynchronous_remark(std::string_view mpi);

// twin_of the native column `name`; empty when there is none.
std::string same_as_ours(std::string_view mpi, std::string_view collective, std::string_view name);

}  // namespace thalweg::bench
