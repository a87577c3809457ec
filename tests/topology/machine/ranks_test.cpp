// Topologies of jobs on machines that hwloc describes: made up, recorded, ragged, and with a part of their
// cores; against the topologies that a table of hosts and a text give.
#include "topology/machine/ranks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

using namespace thalweg;

namespace {

// A job as its ranks describe it: each with its host and the threads it may use.
class Job {
  public:
    // A rank on `host`, which is `machine`.
    void add(std::uint64_t host, const LocalMachine& machine, const std::vector<int>& threads) {
        LocalMachine own = machine;
        for (HardwareThread& it : own.threads)
            it.usable = std::find(threads.begin(), threads.end(), it.os_index) != threads.end();
        hosts_.push_back(host);
        machines_.push_back(std::move(own));
    }
    // One rank for each core of the machine that may be used.
    void fill(std::uint64_t host, const LocalMachine& machine) {
        for (int core = 0; core < machine.cores; ++core) {
            std::vector<int> threads;
            for (const HardwareThread& it : machine.threads)
                if (it.core == core && it.usable) threads.push_back(it.os_index);
            if (!threads.empty()) add(host, machine, threads);
        }
    }
    Status describe(Topology& topology, std::vector<RankPlace>& places, std::string& why) const {
        std::vector<RankMachine> ranks;
        for (std::size_t i = 0; i < hosts_.size(); ++i) ranks.push_back({hosts_[i], &machines_[i]});
        return topology_of(ranks, topology, places, why);
    }
    // As the text says, and no other.
    void expect(const std::string& text, const std::vector<RankPlace>& places) const {
        Topology topology, written;
        std::vector<RankPlace> found;
        std::string why;
        ASSERT_EQ(describe(topology, found, why), Status::ok) << why;
        ASSERT_EQ(Topology::from_text(text, written, why), Status::ok) << why;
        EXPECT_EQ(topology.to_text(), text);
        EXPECT_EQ(topology.digest(), written.digest());
        EXPECT_EQ(topology.digest(), Topology::from_table(hosts_).digest());
        ASSERT_EQ(found.size(), hosts_.size());
        if (!places.empty()) {
            EXPECT_EQ(found, places);
        }
    }

  private:
    std::vector<std::uint64_t> hosts_;
    std::vector<LocalMachine> machines_;
};

LocalMachine synthetic(const std::string& description, std::span<const int> usable = {}) {
    LocalMachine machine;
    std::string why;
    EXPECT_EQ(describe_synthetic(description, usable, machine, why), Status::ok) << why;
    return machine;
}

// A file of hwloc's second form, as lstopo writes it: packages with a NUMA domain and cores of two threads
// each. `allowed`: the threads that the cgroup of the recording left.
class Recorded {
  public:
    Recorded(const std::vector<int>& cores_of_package, unsigned allowed) {
        unsigned all = 0;
        std::string body;
        int package = 0, core = 0, thread = 0, number = 2;
        const auto sets = [&](unsigned cpus, int first_node, int nodes) {
            char text[256];
            const unsigned node_bits = ((1u << nodes) - 1) << first_node;
            std::snprintf(text, sizeof text,
                          " cpuset=\"0x%08x\" complete_cpuset=\"0x%08x\" nodeset=\"0x%08x\" "
                          "complete_nodeset=\"0x%08x\" gp_index=\"%d\"",
                          cpus, cpus, node_bits, node_bits, number++);
            return std::string(text);
        };
        const auto object = [](const std::string& type, int os_index) {
            return "<object type=\"" + type + "\" os_index=\"" + std::to_string(os_index) + "\"";
        };
        for (int cores : cores_of_package) {
            const unsigned mine = ((1u << 2 * cores) - 1) << thread;
            all |= mine;
            body += object("Package", package) + sets(mine, package, 1) + ">\n";
            body += object("NUMANode", package) + sets(mine, package, 1) + " local_memory=\"1073741824\"/>\n";
            for (int i = 0; i < cores; ++i, ++core) {
                body += object("Core", core) + sets(3u << thread, package, 1) + ">\n";
                for (int sibling = 0; sibling < 2; ++sibling, ++thread)
                    body += object("PU", thread) + sets(1u << thread, package, 1) + "/>\n";
                body += "</object>\n";
            }
            body += "</object>\n";
            ++package;
        }
        char sets_allowed[128];
        std::snprintf(sets_allowed, sizeof sets_allowed,
                      " allowed_cpuset=\"0x%08x\" allowed_nodeset=\"0x%08x\"", allowed & all,
                      (1u << package) - 1);
        name_ = testing::TempDir() + "thalweg-machine-" + std::to_string(getpid()) + ".xml";
        std::ofstream(name_) << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
                             << object("Machine", 0) << sets(all, 0, package) << sets_allowed << ">\n"
                             << body << "</object>\n</topology>\n";
    }
    ~Recorded() { std::remove(name_.c_str()); }
    Recorded(const Recorded&) = delete;
    Recorded& operator=(const Recorded&) = delete;

    const std::string& name() const { return name_; }
    LocalMachine read() const {
        LocalMachine machine;
        std::string why;
        EXPECT_EQ(describe_xml(name_, {}, machine, why), Status::ok) << why;
        return machine;
    }

  private:
    std::string name_;
};

TEST(ranks, one_for_each_core_of_hosts_that_are_alike) {
    const LocalMachine machine = synthetic("pack:2 numa:1 core:2 pu:2");
    Job job;
    for (std::uint64_t host : {7u, 3u}) job.fill(host, machine);
    const std::vector<RankPlace> host = {{0, 0, 0, -1}, {0, 0, 1, -1}, {1, 1, 2, -1}, {1, 1, 3, -1}};
    std::vector<RankPlace> both = host;
    both.insert(both.end(), host.begin(), host.end());
    job.expect("node:2 core:4", both);
}

// Two ranks to a core, one to a domain, one that roams over a socket, one over all.
TEST(ranks, places_are_the_smallest_parts_that_hold_a_mask) {
    const LocalMachine machine = synthetic("pack:2 numa:2 core:2 pu:2");
    Job job;
    job.add(1, machine, {8});
    job.add(1, machine, {9});
    job.add(1, machine, {0, 1, 2, 3});
    job.add(1, machine, {0, 7});
    job.add(1, machine, {3, 12});
    job.expect("node:1 core:5",
               {{1, 2, 4, 8}, {1, 2, 4, 9}, {0, 0, -1, -1}, {0, -1, -1, -1}, {-1, -1, -1, -1}});
}

TEST(ranks, hosts_that_differ_and_ranks_in_any_order) {
    const LocalMachine small = synthetic("pack:1 core:1 pu:1"), middle = synthetic("pack:1 core:2 pu:2"),
                       large = synthetic("pack:2 core:2 pu:1");
    Job blocks;
    blocks.fill(30, small);
    blocks.fill(10, middle);
    blocks.fill(20, large);
    blocks.expect("node:3 core:1,2,4", {});
    Job mixed;
    for (const auto& [host, machine, thread] :
         {std::tuple{5u, &middle, 0}, {9u, &large, 3}, {5u, &middle, 3}, {4u, &small, 0}, {9u, &large, 0}})
        mixed.add(host, *machine, {thread});
    mixed.expect("ranks:0,1,0,2,1", {{0, 0, 0, 0}, {1, 0, 3, 3}, {0, 0, 1, 3}, {0, 0, 0, 0}, {0, 0, 0, 0}});
}

// The same machine, of which the job has other cores on each host: as a batch system gives them out.
TEST(ranks, hosts_of_which_a_job_has_a_part) {
    Job job;
    job.fill(1, synthetic("pack:2 numa:1 core:2 pu:2", std::array{2, 3, 4}));
    job.fill(2, synthetic("pack:2 numa:1 core:2 pu:2", std::array{7}));
    job.expect("node:2 core:2,1", {{0, 0, 1, -1}, {1, 1, 2, 4}, {1, 1, 3, 7}});
}

TEST(ranks, a_recorded_machine_whose_packages_differ) {
    const LocalMachine machine = Recorded({1, 3}, ~0u).read();
    EXPECT_EQ(machine.packages, 2);
    EXPECT_EQ(machine.numa_domains, 2);
    EXPECT_EQ(machine.cores, 4);
    EXPECT_EQ(machine.memory_bytes, 2u << 30);
    EXPECT_EQ(machine.usable_threads(), 8);
    Job job;
    job.fill(1, machine);
    job.fill(2, synthetic("pack:1 core:1 pu:2"));
    job.expect("node:2 core:4,1",
               {{0, 0, 0, -1}, {1, 1, 1, -1}, {1, 1, 2, -1}, {1, 1, 3, -1}, {0, 0, 0, -1}});
}

// Threads 0, 1 and 5 had been taken away: still there as siblings, and no rank's.
TEST(ranks, a_recorded_machine_of_which_a_cgroup_left_a_part) {
    const Recorded recorded({1, 3}, 0xdcu);
    const LocalMachine machine = recorded.read();
    EXPECT_EQ(machine.cores, 4);
    EXPECT_EQ(machine.siblings(4), std::vector<int>{5});
    EXPECT_EQ(machine.usable_sibling(4), -1);
    Job job;
    job.fill(1, machine);
    job.expect("node:1 core:3", {{1, 1, 1, -1}, {1, 1, 2, 4}, {1, 1, 3, -1}});
    LocalMachine part;
    std::string why;
    ASSERT_EQ(describe_xml(recorded.name(), std::array{0, 2, 4}, part, why), Status::ok) << why;
    EXPECT_EQ(part.usable_threads(), 2) << "0 is not to be had";
}

// What a user of hwloc sets to make a program see another machine.
TEST(ranks, this_machine_may_be_another_by_hwlocs_variables) {
    const Recorded recorded({1, 3}, ~0u);
    LocalMachine by_file, by_text;
    std::string why;
    setenv("HWLOC_XMLFILE", recorded.name().c_str(), 1);
    EXPECT_EQ(describe_machine(by_file, why), Status::ok) << why;
    unsetenv("HWLOC_XMLFILE");
    setenv("HWLOC_SYNTHETIC", "pack:3 core:2 pu:2", 1);
    EXPECT_EQ(describe_machine(by_text, why), Status::ok) << why;
    unsetenv("HWLOC_SYNTHETIC");
    EXPECT_EQ(by_file.threads, recorded.read().threads);
    EXPECT_EQ(by_text.threads, synthetic("pack:3 core:2 pu:2").threads);
}

TEST(ranks, what_cannot_be_is_one_sentence) {
    const LocalMachine machine = synthetic("pack:1 core:2 pu:1");
    Topology topology = Topology::single_node(3);
    const std::uint64_t before = topology.digest();
    std::vector<RankPlace> places(3);
    std::string why;
    Job without;
    without.add(1, machine, {0});
    without.add(1, machine, {});
    EXPECT_EQ(without.describe(topology, places, why), Status::invalid_argument);
    EXPECT_EQ(why, "rank 1 may use no hardware thread of its machine");
    Job apart;
    apart.add(2, machine, {0});
    apart.add(1, machine, {0});
    apart.add(2, synthetic("pack:2 core:1 pu:1"), {1});
    EXPECT_EQ(apart.describe(topology, places, why), Status::invalid_argument);
    EXPECT_EQ(why, "ranks 0 and 2 are on one host and describe different machines");
    EXPECT_EQ(topology.digest(), before);
    EXPECT_EQ(places.size(), 3u);
    LocalMachine kept = machine;
    EXPECT_EQ(describe_xml("/nowhere.xml", {}, kept, why), Status::invalid_argument);
    EXPECT_NE(why.find("\"/nowhere.xml\""), std::string::npos) << why;
    EXPECT_EQ(kept.cores, 2);
}

}  // namespace
