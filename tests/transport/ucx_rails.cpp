// Which devices of a host are rails, by what the kernel would tell of them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "transport/ucx/devices.h"
#include "transport/ucx/ucx.h"

namespace thalweg {
namespace {

using Names = std::vector<std::string>;

// Folders as those of /sys/class.
class ucx_rails : public testing::Test {
  protected:
    ~ucx_rails() override {
        std::error_code error;
        std::filesystem::remove_all(classes, error);
    }
    // An interface of so many Mbit/s.
    void has(const std::string& name, const std::string& speed) const {
        std::filesystem::create_directories(classes / "net" / name);
        std::ofstream(classes / "net" / name / "speed") << speed << '\n';
    }
    Names rails(const Names& interfaces) const { return ucx::rails_among(interfaces, classes); }

    const std::filesystem::path classes =
        std::filesystem::path(testing::TempDir()) / ("thalweg-devices-" + std::to_string(getpid()));
};

TEST_F(ucx_rails, are_as_fast_as_the_fastest) {
    has("eth2", "25000");
    has("eth0", "25000");
    has("eth1", "1000");
    has("br0", "25000");
    std::filesystem::create_directories(classes / "net" / "br0" / "bridge");
    EXPECT_EQ(rails({"eth2", "br0", "eth1", "eth0"}), (Names{"eth0", "eth2"}));
    EXPECT_EQ(rails({"eth1"}), (Names{"eth1"}));
    EXPECT_EQ(rails({}), Names());
}

TEST_F(ucx_rails, are_devices_whatever_the_labels_of_their_addresses) {
    EXPECT_EQ(rails({"eth0", "eth0:1", "eth1:a"}), (Names{"eth0", "eth1"}))
        << "which do not tell their speed";
    has("eth0", "10000");
    EXPECT_EQ(rails({"eth0", "eth0:1"}), (Names{"eth0"}));
}

TEST_F(ucx_rails, have_links_of_their_own) {
    for (const char* const name : {"eth0", "eth0.7", "eth0.8", "eth1"}) has(name, "10000");
    for (const char* const name : {"eth0.7", "eth0.8"})
        std::filesystem::create_directories(classes / "net" / name / "lower_eth0");
    EXPECT_EQ(rails({"eth0", "eth0.7", "eth0.8", "eth1"}), (Names{"eth0", "eth1"}));
    EXPECT_EQ(rails({"eth0.7", "eth1"}), (Names{"eth0.7", "eth1"})) << "with no address below";
    EXPECT_EQ(rails({"eth0.8", "eth0.7", "eth1"}), (Names{"eth0.7", "eth1"})) << "one trunk, two networks";
}

TEST_F(ucx_rails, share_a_link_through_any_layers) {
    for (const char* const name : {"eth0", "eth0.7", "eth0.7.1", "eth1", "bond0", "bond0.7", "eth2", "eth3"})
        has(name, "10000");
    for (const char* const upon : {"eth0.7/lower_eth0", "eth0.7.1/lower_eth0.7", "bond0/lower_eth2",
                                   "bond0/lower_eth3", "bond0.7/lower_bond0"})
        std::filesystem::create_directories(classes / "net" / upon);
    EXPECT_EQ(rails({"eth0", "eth0.7", "eth0.7.1", "eth1"}), (Names{"eth0", "eth1"}));
    EXPECT_EQ(rails({"eth0", "eth0.7.1", "eth1"}), (Names{"eth0", "eth1"})) << "no address between";
    EXPECT_EQ(rails({"bond0.7", "bond0", "eth1"}), (Names{"bond0", "eth1"}));
}

// Sockets over two interfaces of such adapters would take the place of the adapters.
TEST_F(ucx_rails, adapters_that_libucp_finds_itself_are_left_to_it) {
    has("ib0", "100000");
    has("ib1", "100000");
    std::filesystem::create_directories(classes / "infiniband");
    EXPECT_FALSE(ucx::has_infiniband(classes)) << "the kernel's part of it, without an adapter";
    EXPECT_EQ(rails({"ib0", "ib1"}), (Names{"ib0", "ib1"}));
    std::filesystem::create_directories(classes / "infiniband" / "mlx5_0");
    EXPECT_TRUE(ucx::has_infiniband(classes));
    EXPECT_EQ(rails({"ib0", "ib1"}), Names());
}

// Those of containers have the same address on every host.
TEST_F(ucx_rails, what_libucp_may_use_where_there_are_bridges) {
    has("docker0", "10000");
    std::filesystem::create_directories(classes / "net" / "docker0" / "bridge");
    EXPECT_EQ(ucx::without_bridges({"eth1", "docker0", "eth0", "eth0:1"}, classes), "eth0,eth1");
    EXPECT_EQ(ucx::without_bridges({"eth1", "eth0"}, classes), "") << "it finds them by itself";
    EXPECT_EQ(ucx::without_bridges({"docker0"}, classes), "") << "nothing else is left";
    EXPECT_EQ(ucx::without_bridges({}, classes), "");
}

// A device beside those that the user names may be up on every host and lead to none of them: messages
// between hosts wait until their peers have greeted on all rails.
TEST_F(ucx_rails, are_none_where_the_user_names_devices) {
    for (const char* const variable : {"THALWEG_UCX_NET_DEVICES", "UCX_NET_DEVICES"})
        if (std::getenv(variable) != nullptr) GTEST_SKIP() << variable << " is set";
    const Names found = ucx_devices();
    if (found.empty()) GTEST_SKIP() << "this host has no rails";
    for (const char* const variable : {"THALWEG_UCX_NET_DEVICES", "UCX_NET_DEVICES"}) {
        setenv(variable, found[0].c_str(), 1);
        EXPECT_EQ(ucx_devices(), Names()) << variable;
        unsetenv(variable);
    }
    EXPECT_EQ(ucx_devices(), found);
}

}  // namespace
}  // namespace thalweg
