#include "sim/platform.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

namespace thalweg::sim {
namespace {

namespace s4u = simgrid::s4u;

// SimGrid's engine may be made once, and lives until the process ends.
s4u::Engine* make_engine() {
    static char program[] = "thalweg-sim", quiet[] = "--log=root.thresh:critical";
    static char* arguments[] = {program, quiet, nullptr};
    static int count = 2;
    static s4u::Engine* engine = [] {
        auto* made = new s4u::Engine(&count, arguments);
        // A flow gets its max-min share of the links on its way and nothing is added for protocols: those are
        // the replay's.
        s4u::Engine::set_config("network/model:CM02");
        s4u::Engine::set_config("network/TCP-gamma:0");
        s4u::Engine::set_config("network/crosstraffic:0");
        s4u::Engine::set_config("network/weight-S:0");
        s4u::Engine::set_config("network/loopback-lat:0");
        s4u::Engine::set_config("maxmin/precision:1e-6");
        return made;
    }();
    return engine;
}

constexpr double host_speed = 1;  // SimGrid wants one; nothing computes there

unsigned ceil_div(unsigned a, unsigned b) { return (a + b - 1) / b; }

}  // namespace

Platform::Platform(const SimMachine& machine, int hosts, double grain, bool by_turns)
    : engine_(make_engine()), by_turns_(by_turns) {
    s4u::Engine::set_config(fmt::format("surf/precision:{:g}", grain));
    root_ = s4u::create_full_zone("machine");
    for (unsigned rail = 0; rail < machine.rails; ++rail) add_rail(machine, rail, hosts);
    root_->seal();
}

void Platform::add_rail(const SimMachine& machine, unsigned rail, int hosts) {
    const std::string prefix = "rail" + std::to_string(rail) + "-";
    // What no single message exceeds: a link that is not shared bounds each one alone.
    const bool bounded = machine.flow_rate > 0 && machine.flow_rate < machine.link_rate;
    const auto bound = [&](s4u::NetZone* zone, const std::string& name) {
        return zone->create_link(name + "-flow", machine.flow_rate)
            ->set_latency(0)
            ->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)
            ->seal();
    };
    std::vector<s4u::Host*>& ends = ends_.emplace_back();
    const auto count = static_cast<unsigned>(hosts);
    if (machine.fabric == Fabric::star) {
        auto* zone = s4u::create_star_zone(prefix + "star");
        zone->set_parent(root_);
        for (unsigned i = 0; i < count; ++i) {
            const std::string name = prefix + std::to_string(i);
            auto* host = zone->create_host(name, host_speed)->seal();
            auto* up = zone->create_link(name + "-up", machine.link_rate)->set_latency(0);
            if (by_turns_) up->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
            up->seal();
            auto* down = zone->create_link(name + "-down", machine.link_rate)->set_latency(0)->seal();
            std::vector<s4u::LinkInRoute> out{s4u::LinkInRoute(up)};
            if (bounded) out.emplace_back(bound(zone, name));
            zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, out, false);
            zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, {s4u::LinkInRoute(down)}, false);
            ends.push_back(host);
        }
        zone->seal();
        return;
    }
    s4u::ClusterCallbacks parts(
        [&](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
            auto* host = zone->create_host(prefix + std::to_string(id), host_speed)->seal();
            ends.push_back(host);
            return std::make_pair(host->get_netpoint(),
                                  static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
        },
        {}, {});
    if (bounded)
        parts.limiter = [&](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
            return bound(zone, prefix + std::to_string(id));
        };
    const auto duplex = s4u::Link::SharingPolicy::SPLITDUPLEX;
    if (machine.fabric == Fabric::fat_tree) {
        const unsigned leaf = machine.sizes[0], up = machine.sizes[1];
        const unsigned leaves = std::max(ceil_div(count, leaf), 1u);
        s4u::create_fatTree_zone(prefix + "tree", root_,
                                 s4u::FatTreeParams(2, {leaf, leaves}, {1, up}, {1, 1}), parts,
                                 machine.link_rate, 0, duplex)
            ->seal();
        return;
    }
    const auto& size = machine.sizes;
    const unsigned per_group = size[1] * size[2] * size[3];
    const unsigned groups = std::min(size[0], std::max(ceil_div(count, per_group), 1u));
    s4u::create_dragonfly_zone(prefix + "dragonfly", root_,
                               s4u::DragonflyParams({groups, machine.links[0]}, {size[1], machine.links[1]},
                                                    {size[2], machine.links[2]}, size[3]),
                               parts, machine.link_rate, 0, duplex)
        ->seal();
}

}  // namespace thalweg::sim
