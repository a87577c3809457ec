// What the links of a lab carry: rate and latency of one link, capacity of the machine under all of them.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>

#include "lab.h"

namespace thalweg::lab {

namespace {

constexpr int probe_port = 5199;
constexpr int iperf_port = 5201;
constexpr int capacity_hosts = 4;
constexpr int capacity_rounds = 3;
constexpr int capacity_round_s = 3;
constexpr int calibration_s = 2;
constexpr std::uint64_t unlimited_bits_per_s = 20'000'000'000;  // far above what two cores shape

std::string date_now() {
    char text[32];
    const std::time_t now = std::time(nullptr);
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
    return text;
}

sockaddr_in socket_address(const std::string& address, int port) {
    sockaddr_in target{};
    target.sin_family = AF_INET;
    target.sin_port = htons(static_cast<std::uint16_t>(port));
    inet_pton(AF_INET, address.c_str(), &target.sin_addr);
    return target;
}

int accept_one(const std::string& address) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in self = socket_address(address, probe_port);
    if (bind(listener, reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0 ||
        listen(listener, 1) != 0)
        fail_errno("cannot listen on a host");
    pollfd wait{listener, POLLIN, 0};
    if (poll(&wait, 1, 5000) <= 0) fail("no connection between two hosts within 5 s");
    const int peer = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer < 0) fail_errno("cannot accept");
    close(listener);
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return peer;
}

int connect_to(const std::string& address) {
    const sockaddr_in target = socket_address(address, probe_port);
    for (const double give_up = now_s() + 5; now_s() < give_up; usleep(1000)) {
        const int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int on = 1;
        setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (connect(peer, reinterpret_cast<const sockaddr*>(&target), sizeof target) == 0) return peer;
        close(peer);
    }
    fail("one host cannot reach another at " + address);
}

void send_all(int peer, const std::vector<char>& data, std::uint64_t bytes) {
    while (bytes > 0) {
        const ssize_t sent =
            send(peer, data.data(), std::min<std::uint64_t>(bytes, data.size()), MSG_NOSIGNAL);
        if (sent <= 0) fail_errno("a probe's connection broke");
        bytes -= static_cast<std::uint64_t>(sent);
    }
}

void receive_all(int peer, std::uint64_t bytes) {
    std::vector<char> buffer(65536);
    while (bytes > 0) {
        const ssize_t got = recv(peer, buffer.data(), std::min<std::uint64_t>(bytes, buffer.size()), 0);
        if (got <= 0) fail("a probe's connection broke");
        bytes -= static_cast<std::uint64_t>(got);
    }
}

// A task between host 0 (runs `client`, reports one number) and host 1 (runs `server`).
double probe(Cluster& cluster, const std::function<void(int)>& server,
             const std::function<double(int)>& client) {
    int result[2];
    if (pipe2(result, O_CLOEXEC) != 0) fail_errno("cannot make a pipe");
    const std::string address = address_of(0, 1);
    const pid_t far = fork_task([&] {
        enter_network(cluster.hosts[1]);
        const int peer = accept_one(address);
        server(peer);
        return 0;
    });
    const pid_t near = fork_task([&] {
        enter_network(cluster.hosts[0]);
        const int peer = connect_to(address);
        const double value = client(peer);
        return write(result[1], &value, sizeof value) == sizeof value ? 0 : 1;
    });
    close(result[1]);
    double value = 0;
    const bool good = read(result[0], &value, sizeof value) == sizeof value;
    close(result[0]);
    const int ends = wait_for(near) | wait_for(far);
    if (!good || ends != 0) fail("a probe between two hosts failed");
    return value;
}

double measure_latency(Cluster& cluster) {
    constexpr int trips = 2000;
    constexpr double longest_s = 0.6;
    return probe(
        cluster,
        [](int peer) {
            char byte;
            while (recv(peer, &byte, 1, 0) == 1)
                if (send(peer, &byte, 1, MSG_NOSIGNAL) != 1) break;
        },
        [](int peer) {
            std::vector<double> seconds;
            char byte = 0;
            const double give_up = now_s() + longest_s;
            for (int trip = 0; trip < trips && now_s() < give_up; ++trip) {
                const double start = now_s();
                if (send(peer, &byte, 1, MSG_NOSIGNAL) != 1 || recv(peer, &byte, 1, 0) != 1)
                    fail("a ping-pong's connection broke");
                seconds.push_back(now_s() - start);
            }
            const auto middle = seconds.begin() + seconds.size() / 2;
            std::nth_element(seconds.begin(), middle, seconds.end());
            return *middle / 2;
        });
}

bool is_listening(pid_t host, int port) {
    char wanted[16];
    std::snprintf(wanted, sizeof wanted, ":%04X ", port);
    for (const char* file : {"/net/tcp", "/net/tcp6"}) {
        std::istringstream table(read_file("/proc/" + std::to_string(host) + file));
        for (std::string line; std::getline(table, line);)
            if (line.find(wanted) != std::string::npos && line.find(" 0A ") != std::string::npos) return true;
    }
    return false;
}

struct Stream {
    int from;
    int to;
};

double softirq_s() {
    std::istringstream line(read_file("/proc/stat"));
    std::string name;
    double ticks[7] = {};  // user nice system idle iowait irq softirq
    line >> name;
    for (double& value : ticks) line >> value;
    return (ticks[5] + ticks[6]) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

struct Flow {
    double bytes_per_s = 0;     // payload that the receivers saw, summed
    double cpu_s_per_byte = 0;  // the streams' processes and the kernel's interrupts, whole machine
};

double collect(pid_t pid, bool& good) {
    int status = 0;
    rusage used{};
    while (wait4(pid, &status, 0, &used) < 0)
        if (errno != EINTR) fail_errno("cannot wait");
    good = status == 0;
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec +
           1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

// Plain TCP streams side by side.
Flow run_streams(Cluster& cluster, const std::vector<Stream>& streams, int seconds) {
    const std::string iperf = find_program("iperf3");
    if (iperf.empty()) fail("the lab measures with iperf3: install iperf3");
    const std::string port = std::to_string(iperf_port);
    const double interrupts_before_s = softirq_s();
    std::vector<pid_t> processes;
    for (const Stream& stream : streams)
        processes.push_back(spawn(
            {iperf, "-s", "-1", "-p", port}, [&] { enter_network(cluster.hosts[stream.to]); }, -1, -1, -1));
    const double give_up = now_s() + 10;
    for (const Stream& stream : streams)
        while (!is_listening(cluster.hosts[stream.to], iperf_port)) {
            if (now_s() > give_up) fail("iperf3 does not start on a host");
            usleep(2000);
        }
    std::vector<int> reports;
    for (const Stream& stream : streams) {
        reports.push_back(memory_file());
        // Clients first in the order of waiting: a server ends when its client has.
        processes.insert(
            processes.begin() + reports.size() - 1,
            spawn(
                {iperf, "-c", address_of(0, stream.to), "-p", port, "-t", std::to_string(seconds), "-J"},
                [&] { enter_network(cluster.hosts[stream.from]); }, -1, reports.back(), -1));
    }
    Flow flow;
    double cpu_s = 0, bytes = 0;
    std::string trouble;
    for (std::size_t i = 0; i < processes.size(); ++i) {
        if (!trouble.empty()) kill(processes[i], SIGKILL);
        bool good = false;
        cpu_s += collect(processes[i], good);
        if (i >= reports.size()) continue;
        const auto report = nlohmann::json::parse(read_from_start(reports[i]), nullptr, false);
        close(reports[i]);
        if (good && report.is_object() && !report.contains("error")) {
            const auto& received = report["end"]["sum_received"];
            flow.bytes_per_s += received.value("bits_per_second", 0.0) / 8;
            bytes += received.value("bytes", 0.0);
        } else {
            trouble = report.is_object() ? report.value("error", "iperf3 failed") : "iperf3 failed";
        }
    }
    if (!trouble.empty() || bytes <= 0) fail("measuring with iperf3 failed: " + trouble);
    flow.cpu_s_per_byte = (cpu_s + softirq_s() - interrupts_before_s) / bytes;
    return flow;
}

struct CpuTime {
    double busy_s = 0;
    double total_s = 0;
};

CpuTime cpu_time() {
    std::istringstream line(read_file("/proc/stat"));
    std::string name;
    double ticks[8] = {};  // user nice system idle iowait irq softirq steal
    line >> name;
    for (double& value : ticks) line >> value;
    const double hertz = static_cast<double>(sysconf(_SC_CLK_TCK));
    CpuTime time;
    for (double value : ticks) time.total_s += value / hertz;
    time.busy_s = std::max(0.0, time.total_s - (ticks[3] + ticks[4]) / hertz);
    return time;
}

}  // namespace

double shaped_transfer_s(Cluster& cluster, std::uint64_t bytes) {
    return probe(
        cluster,
        [&](int peer) {
            receive_all(peer, bytes);
            send_all(peer, std::vector<char>(1), 1);
        },
        [&](int peer) {
            const double start = now_s();
            send_all(peer, std::vector<char>(65536), bytes);
            receive_all(peer, 1);
            return now_s() - start;
        });
}

bool is_near_nominal(const Network& network, const Calibration& calibration) {
    constexpr double payload_share = 1448.0 / 1514.0;  // of a full frame, less Ethernet, IP and TCP headers
    const double expected = network.rate_bits_per_s / 8.0 * payload_share;
    return std::abs(calibration.rate_bytes_per_s / expected - 1) < 0.03;
}

Calibration measure_calibration(Cluster& cluster) {
    Calibration result;
    result.measured_at = date_now();
    if (cluster.network.hosts < 2) return result;
    result.latency_s = measure_latency(cluster);
    // Whoever else uses the machine can only make a stream slower, so the best of a few is the link's own
    // rate.
    for (int attempt = 0; attempt < 3 && !is_near_nominal(cluster.network, result); ++attempt) {
        const Flow flow = run_streams(cluster, {{0, 1}}, calibration_s);
        if (flow.bytes_per_s < result.rate_bytes_per_s) continue;
        result.rate_bytes_per_s = flow.bytes_per_s;
        result.cpu_s_per_byte = flow.cpu_s_per_byte;
    }
    return result;
}

Capacity measure_capacity(std::uint64_t burst_bytes) {
    Network network;
    network.hosts = capacity_hosts;
    network.rate_bits_per_s = unlimited_bits_per_s;
    network.burst_bytes = burst_bytes;
    int result[2];
    if (pipe2(result, O_CLOEXEC) != 0) fail_errno("cannot make a pipe");
    const int status = with_cluster(network, [&](Cluster& cluster) {
        Capacity capacity;
        const CpuTime before = cpu_time();
        usleep(300'000);
        const CpuTime quiet = cpu_time();
        capacity.foreign_load =
            (quiet.busy_s - before.busy_s) / std::max(quiet.total_s - before.total_s, 1e-9);
        std::vector<Stream> ring;
        for (int host = 0; host < capacity_hosts; ++host) ring.push_back({host, (host + 1) % capacity_hosts});
        std::vector<double> cpu_s_per_byte;
        for (int round = 0; round < capacity_rounds; ++round) {
            const Flow flow = run_streams(cluster, ring, capacity_round_s);
            capacity.samples.push_back(flow.bytes_per_s);
            cpu_s_per_byte.push_back(flow.cpu_s_per_byte);
        }
        const auto median = [](std::vector<double> values) {
            std::sort(values.begin(), values.end());
            return values[values.size() / 2];
        };
        capacity.bytes_per_s = median(capacity.samples);
        capacity.cpu_s_per_byte = median(cpu_s_per_byte);
        capacity.measured_at = date_now();
        const std::string text = to_json(capacity).dump();
        return write(result[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : failure;
    });
    close(result[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(result[0], buffer, sizeof buffer)) > 0;) text.append(buffer, got);
    close(result[0]);
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (status > 128) throw status;  // interrupted: the caller ends with that status
    if (status != 0 || !json.is_object()) fail("the capacity of this machine could not be measured");
    Capacity capacity;
    capacity.bytes_per_s = json["bytes_per_s"];
    capacity.cpu_s_per_byte = json["cpu_s_per_byte"];
    capacity.foreign_load = json["foreign_load"];
    capacity.samples = json["samples"].get<std::vector<double>>();
    capacity.measured_at = json["measured_at"];
    return capacity;
}

}  // namespace thalweg::lab
