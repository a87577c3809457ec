#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "lab/lab.h"

using namespace thalweg::lab;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (const auto& line : lines_of(text)) found += line.find(part) != std::string::npos;
    return found;
}

}  // namespace

TEST(Network, RailsAreSeparateSubnetsAndAddressesAreUnique) {
    std::set<std::string> seen;
    for (int rail = 0; rail < max_rails; ++rail) {
        EXPECT_TRUE(seen.insert(head_address(rail)).second);
        for (int host = 0; host < max_hosts; ++host) {
            EXPECT_TRUE(seen.insert(address_of(rail, host)).second) << address_of(rail, host);
            EXPECT_EQ(address_of(rail, host).rfind("10.77." + std::to_string(rail) + ".", 0), 0u);
        }
    }
}

TEST(Network, EveryLinkIsShapedAtBothEnds) {
    Network network;
    network.hosts = 3;
    network.rails = 2;
    network.rate_bits_per_s = 50'000'000;
    network.burst_bytes = 8192;
    const std::string bucket = "tbf rate 50000000bit burst 8192b";
    EXPECT_EQ(count(switch_shaping(network), bucket), 6) << "one port of a bridge per host and rail";
    EXPECT_EQ(count(host_shaping(network), bucket), 2) << "one device of a host per rail";
}

TEST(Network, ARouteOfEveryRailNamesTheCongestionControl) {
    Network network;
    network.rails = 2;
    EXPECT_EQ(count(host_links(network, 1), "dev rail0 proto kernel scope link src 10.77.0.2 congctl cubic"),
              1);
    EXPECT_EQ(count(host_links(network, 1), "congctl cubic"), 2);
    network.congestion.clear();
    EXPECT_EQ(count(host_links(network, 1), "congctl"), 0) << "the machine's own";
}

TEST(Network, EveryHostEndGoesIntoItsOwnNamespace) {
    Network network;
    network.hosts = 3;
    const std::string text = switch_links(network, {111, 222, 333});
    for (const char* part :
         {"h0r0 group 77 type veth peer name rail0", "netns 111", "netns 222", "netns 333"})
        EXPECT_EQ(count(text, part), 1) << part;
    EXPECT_EQ(count(text, "type bridge"), 1);
}

TEST(Network, NamesResolveToTheFirstRail) {
    Network network;
    network.hosts = 2;
    network.rails = 2;
    const auto lines = lines_of(hosts_file(network));
    EXPECT_NE(std::find(lines.begin(), lines.end(), "10.77.0.2 node1"), lines.end());
    EXPECT_NE(std::find(lines.begin(), lines.end(), "10.77.1.2 node1-rail1"), lines.end());
}
