#include "sim/machine.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <system_error>

#include "base/text.h"

namespace thalweg::sim {
namespace {

using Json = nlohmann::json;

constexpr std::pair<std::string_view, std::string_view> machines[] = {
#include "sim/machines.inc"
};

constexpr unsigned most_of_a_level = 4096;  // switches or hosts that one level of a fabric joins
constexpr unsigned most_hosts = 1u << 20, most_cores = 4096, most_rails = 64;

// Reads the fields of one object; the first fault is kept as a sentence.
class Reader {
  public:
    Reader(const Json& object, std::string& why) : object_(object), why_(why) {}

    // A number with its source: {"is": 12.5, "from": "who says so"}.
    double number(const char* field, double scale = 1) {
        const auto found = seen(field);
        if (found == object_.end() || !found->is_object() || !found->contains("is") ||
            !(*found)["is"].is_number() || !found->contains("from") || !(*found)["from"].is_string()) {
            fault(std::string("\"") + field + R"(" must be {"is": a number, "from": its source})");
            return 0;
        }
        constexpr std::size_t least = 8;  // letters that can say anything of a source
        if ((*found)["from"].get<std::string>().size() < least)
            fault(std::string(R"("from" of ")") + field + "\" is too short to be a source: expected " +
                  std::to_string(least) + " letters or more");
        constexpr std::size_t fields = 2;
        if (found->size() != fields)
            fault(std::string("\"") + field + R"(" has more than its number, "is", and its source, "from")");
        const double value = (*found)["is"].get<double>();
        if (!(value >= 0)) fault(std::string("\"") + field + "\" must not be negative");
        // Bytes, or bytes per second, and seconds: nothing of a machine is that large, and the cost model's
        // whole numbers hold it. A rate is one of them, and no less than --rate may be.
        constexpr double most = 1e15, longest = 1, slowest = 125;
        if (value * scale > (scale < 1 ? longest : most))
            fault(std::string("\"") + field + "\" is too large to be true");
        if (scale > 1 && value > 0 && value * scale < slowest)
            fault(std::string("\"") + field + "\" is too small to be true");
        return why_.empty() ? value * scale : 0;
    }
    // A whole number from `least` on.
    unsigned count(const char* field, unsigned least, unsigned most) {
        const double value = number(field);
        if (why_.empty() && (value < least || value > most || value != std::floor(value)))
            fault(std::string("\"") + field + "\" must be a whole number from " + std::to_string(least) +
                  " to " + std::to_string(most));
        return why_.empty() ? static_cast<unsigned>(value) : 0;
    }
    double positive(const char* field, double scale = 1) {
        const double value = number(field, scale);
        if (why_.empty() && value <= 0) fault(std::string("\"") + field + "\" must be above 0");
        return value;
    }
    bool has(const char* field) const { return object_.contains(field); }
    bool has_some(std::string_view beginning) const {
        for (const auto& [key, value] : object_.items())
            if (key.starts_with(beginning)) return true;
        return false;
    }
    std::string text(const char* field) {
        const auto found = seen(field);
        if (found != object_.end() && found->is_string()) return found->get<std::string>();
        fault(std::string("\"") + field + "\" must be a text");
        return {};
    }
    std::vector<unsigned> list(const char* field, std::size_t length) {
        const auto found = seen(field);
        std::vector<unsigned> result;
        if (found != object_.end() && found->is_array())
            for (const Json& value : *found)
                if (value.is_number_unsigned() && value.get<std::uint64_t>() > 0 &&
                    value.get<std::uint64_t>() <= most_of_a_level)
                    result.push_back(value.get<unsigned>());
        if (result.size() != length || found->size() != length)
            fault(std::string("\"") + field + "\" must be a list of " + std::to_string(length) +
                  " whole numbers from 1 to " + std::to_string(most_of_a_level));
        return result;
    }
    void nothing_else() {
        for (const auto& [key, value] : object_.items())
            if (std::find(seen_.begin(), seen_.end(), key) == seen_.end())
                fault("unknown field \"" + key + "\"");
    }
    void fault(const std::string& sentence) {
        if (why_.empty()) why_ = sentence;
    }

  private:
    Json::const_iterator seen(const char* field) {
        seen_.emplace_back(field);
        return object_.find(field);
    }

    const Json& object_;
    std::string& why_;
    std::vector<std::string> seen_;
};

// Of fields of one name the last would count. `twice`: the first of them, and whose it is; else empty.
Json parse_once(std::string_view json, std::string& twice) {
    std::vector<std::set<std::string>> open;
    std::string outer;
    const auto look = [&](int, Json::parse_event_t event, Json& read) {
        if (event == Json::parse_event_t::object_start) open.emplace_back();
        if (event == Json::parse_event_t::object_end) open.pop_back();
        if (event != Json::parse_event_t::key) return true;
        const std::string name = read.get<std::string>();
        if (open.size() == 1) outer = name;
        if (!open.back().insert(name).second && twice.empty())
            twice = "\"" + name + "\"" + (open.size() == 1 ? "" : " of \"" + outer + "\"");
        return true;
    };
    return Json::parse(json, look, true, true);
}

void read_fabric(Reader& reader, SimMachine& machine) {
    const std::string kind = reader.text("fabric");
    if (kind == "star") {
        machine.fabric = Fabric::star;
    } else if (kind == "fat_tree") {
        machine.fabric = Fabric::fat_tree;
        machine.sizes = reader.list("fat_tree", 2);
    } else if (kind == "dragonfly") {
        machine.fabric = Fabric::dragonfly;
        machine.sizes = reader.list("dragonfly", 4);
        machine.links = reader.list("dragonfly_links", 3);
    } else {
        reader.fault("\"fabric\" must be star, fat_tree or dragonfly");
    }
    reader.text("fabric_from");
}

}  // namespace

const char* name_of(Fabric fabric) {
    constexpr const char* names[] = {"star", "fat_tree", "dragonfly"};
    return names[static_cast<std::size_t>(fabric)];
}

SimMachine SimMachine::under(std::string_view mpi) const {
    SimMachine machine = *this;
    if (mpi == "mpich" || mpi == "impi") machine.inter_eager = inter_eager_mpich;
    machine.receipts = mpi == "mpich";
    machine.synchronous_asks = mpi != "impi";
    return machine;
}

SimMachine SimMachine::over_library() const {
    SimMachine machine = *this;
    machine.naps = shared_cores > 0;
    return machine;
}

SimMachine SimMachine::over_libucp() const {
    SimMachine machine = *this;
    machine.puts = network_moves_bytes || (libucp && kernel_sends());
    if (!libucp || !kernel_sends()) return machine;
    machine.start_seconds = libucp->start_seconds;
    machine.post_seconds = libucp->post_seconds;
    machine.post_recv_seconds = libucp->post_recv_seconds;
    machine.post_inside_seconds = libucp->post_inside_seconds;
    machine.complete_seconds = libucp->complete_seconds;
    machine.complete_inside_seconds = libucp->complete_inside_seconds;
    machine.sleep_seconds = libucp->sleep_seconds;
    machine.put_seconds = libucp->put_seconds;
    machine.take_put_seconds = libucp->take_put_seconds;
    machine.inter_eager = UINT64_MAX;
    machine.receipts = false;
    machine.synchronous_asks = false;
    return machine;
}

Status parse_machine(std::string_view json, SimMachine& machine, std::string& why) {
    Json object;
    std::string twice;
    why.clear();
    try {
        object = parse_once(json, twice);
    } catch (const Json::exception& error) {  // "[json.exception.parse_error.101] parse error at line 3, ..."
        const std::string_view text = error.what();
        why = "no JSON: " + std::string(text.substr(std::min(text.find("] "), text.size() - 2) + 2));
        for (char& letter : why)  // it quotes what it read
            if (letter < ' ' || letter > '~') letter = '?';
        return Status::invalid_argument;
    }
    if (!object.is_object()) {
        why = "a machine is a JSON object";
        return Status::invalid_argument;
    }
    if (!twice.empty()) {
        why = twice + " is there twice";
        return Status::invalid_argument;
    }
    constexpr double micro = 1e-6, giga = 1e9;
    SimMachine read;
    Reader reader(object, why);
    read.name = reader.text("name");
    read.text = reader.text("text");
    read.hosts = static_cast<int>(reader.count("hosts", 1, most_hosts));
    read.cores_per_host = static_cast<int>(reader.count("cores_per_host", 1, most_cores));
    read_fabric(reader, read);
    read.rails = reader.count("rails", 1, most_rails);
    read.link_rate = reader.positive("link_GBps", giga);
    read.flow_rate = reader.number("flow_GBps", giga);
    read.message_gap = reader.number("message_gap_us", micro);
    read.flows_per_link = reader.count("flows_per_link", 0, most_hosts);
    read.burst_bytes = reader.number("burst_bytes");
    read.inter_latency = reader.positive("inter_latency_us", micro);
    read.kernel_bytes = reader.number("kernel_bytes");
    read.kernel_rate = reader.number("kernel_GBps", giga);
    if (reader.has("socket_bytes")) read.socket_bytes = reader.number("socket_bytes");
    if (reader.has_some("frame_")) {
        read.frame_bytes = reader.positive("frame_bytes");
        read.frame_headers = reader.number("frame_header_bytes");
    }
    read.inter_eager = static_cast<std::uint64_t>(reader.number("inter_eager_bytes"));
    read.inter_eager_mpich = reader.has("inter_eager_mpich_bytes")
                                 ? static_cast<std::uint64_t>(reader.number("inter_eager_mpich_bytes"))
                                 : read.inter_eager;
    read.network_moves_bytes = reader.count("network_moves_bytes", 0, 1) != 0;
    read.intra_latency = reader.positive("intra_latency_us", micro);
    read.intra_eager = static_cast<std::uint64_t>(reader.number("intra_eager_bytes"));
    if (reader.has("shared_cores")) read.shared_cores = reader.count("shared_cores", 1, most_cores);
    if (reader.has("look_us")) read.look_seconds = reader.number("look_us", micro);
    if (reader.has("begin_us")) read.begin_seconds = reader.number("begin_us", micro);
    if (reader.has("poll_us")) read.poll_seconds = reader.number("poll_us", micro);
    if (reader.has("switch_us")) read.switch_seconds = reader.number("switch_us", micro);
    if (reader.has("start_us")) read.start_seconds = reader.number("start_us", micro);
    read.post_seconds = reader.number("post_us", micro);
    if (reader.has("post_recv_us")) read.post_recv_seconds = reader.number("post_recv_us", micro);
    if (reader.has("post_inside_us")) read.post_inside_seconds = reader.number("post_inside_us", micro);
    read.complete_seconds = reader.number("complete_us", micro);
    if (reader.has("complete_inside_us"))
        read.complete_inside_seconds = reader.number("complete_inside_us", micro);
    read.copy_rate = reader.positive("copy_GBps", giga);
    if (reader.has("socket_GBps")) read.socket_rate = reader.positive("socket_GBps", giga);
    if (reader.has("small_copy_GBps")) read.small_copy_rate = reader.positive("small_copy_GBps", giga);
    read.host_copy_rate = reader.positive("host_copy_GBps", giga);
    read.reduce_rate = reader.positive("reduce_GBps", giga);
    read.register_seconds = reader.number("register_us", micro);
    read.register_rate = reader.number("register_GBps", giga);
    read.agent_wake_seconds = reader.number("agent_wake_us", micro);
    if (reader.has_some("libucp_")) {
        SimMachine::Libucp& libucp = read.libucp.emplace(SimMachine::Libucp());
        libucp.start_seconds = reader.number("libucp_start_us", micro);
        libucp.post_seconds = reader.number("libucp_post_us", micro);
        libucp.post_recv_seconds = reader.number("libucp_post_recv_us", micro);
        libucp.complete_seconds = reader.number("libucp_complete_us", micro);
        libucp.sleep_seconds = reader.number("libucp_sleep_us", micro);
        if (reader.has("libucp_post_inside_us"))
            libucp.post_inside_seconds = reader.number("libucp_post_inside_us", micro);
        if (reader.has("libucp_complete_inside_us"))
            libucp.complete_inside_seconds = reader.number("libucp_complete_inside_us", micro);
        if (reader.has("libucp_put_us")) libucp.put_seconds = reader.number("libucp_put_us", micro);
        if (reader.has("libucp_take_put_us"))
            libucp.take_put_seconds = reader.number("libucp_take_put_us", micro);
    }
    reader.nothing_else();
    if (read.kernel_bytes > 0 && read.kernel_rate <= 0)
        reader.fault("\"kernel_GBps\" must be above 0 where \"kernel_bytes\" is");
    // SimGrid makes all places of a group.
    if (why.empty() && read.fabric == Fabric::dragonfly &&
        std::uint64_t{read.sizes[1]} * read.sizes[2] * read.sizes[3] > most_hosts)
        reader.fault("\"dragonfly\" has groups of more than " + std::to_string(most_hosts) + " places");
    if (why.empty() && read.fabric == Fabric::dragonfly &&
        static_cast<std::uint64_t>(read.hosts) >
            std::uint64_t{read.sizes[0]} * read.sizes[1] * read.sizes[2] * read.sizes[3])
        reader.fault("\"dragonfly\" has fewer places than \"hosts\" says");
    if (why.empty() && read.host_copy_rate < read.copy_rate)
        reader.fault("\"host_copy_GBps\" must not be less than \"copy_GBps\", which is one core's");
    // SimGrid's routers have one link to another group each.
    if (why.empty() && read.fabric == Fabric::dragonfly && read.sizes[0] > read.sizes[1] * read.sizes[2])
        reader.fault("\"dragonfly\" has more groups than a group has routers");
    if (!why.empty()) return Status::invalid_argument;
    machine = std::move(read);
    return Status::ok;
}

std::span<const std::pair<std::string_view, std::string_view>> built_in_machines() { return machines; }

Status find_machine(const std::string& name, SimMachine& machine, std::string& why) {
    std::vector<std::string_view> names;
    for (const auto& [known, json] : machines) {
        if (known == name) return parse_machine(json, machine, why);
        names.push_back(known);
    }
    if (name.find('/') != std::string::npos || name.ends_with(".json")) {
        std::error_code none;  // where nobody may look, nothing can be read either
        const bool folder = std::filesystem::is_directory(name, none);
        std::ifstream file(name);
        std::stringstream content;
        content << file.rdbuf();
        if (file && !folder && !failed(parse_machine(content.str(), machine, why))) return Status::ok;
        why = !file || folder ? "cannot read " + name + (folder ? ", which is a folder" : "")
                              : name + ": " + why;
        return Status::invalid_argument;
    }
    const std::string_view nearest = nearest_name(name, names);
    why = "there is no machine " + name;
    if (!nearest.empty()) {
        why += "; maybe " + std::string(nearest) + "?";
    } else {
        why += "; known: ";
        for (std::size_t i = 0; i < names.size(); ++i) why += (i ? ", " : "") + std::string(names[i]);
    }
    return Status::invalid_argument;
}

Machine SimMachine::model() const {
    const auto picoseconds = [](double seconds) {
        return static_cast<Picoseconds>(std::llround(seconds * 1e12));
    };
    Machine machine;
    // What a message costs besides its bytes: the wire, and both ends' work.
    const double posts = post_seconds + post_recv_seconds.value_or(post_seconds);
    machine.inter.latency = picoseconds(inter_latency + posts + complete_seconds);
    machine.inter.bytes_per_second =
        static_cast<std::uint64_t>(flow_rate > 0 ? std::min(flow_rate, link_rate) : link_rate);
    machine.inter.ports = rails;
    machine.intra.latency = picoseconds(intra_latency + posts + complete_seconds);
    machine.intra.bytes_per_second = static_cast<std::uint64_t>(copy_rate);
    machine.host_bytes_per_second = static_cast<std::uint64_t>(host_copy_rate);
    machine.reduced_bytes_per_second = static_cast<std::uint64_t>(reduce_rate);
    return machine;
}

Machine SimMachine::wire() const {
    Machine machine = model();
    machine.inter.bytes_per_second = static_cast<std::uint64_t>(link_rate);
    return machine;
}

}  // namespace thalweg::sim
