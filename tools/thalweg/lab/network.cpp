// What ip and tc are told. Pure functions: text in, text out.
//
//      node0            node1     …      rail r of host i is 10.77.r.(i+1)/24
//      rail0            rail0            tbf here shapes host -> bridge
//        |                |
//       h0r0             h1r0            tbf here shapes bridge -> host
//        +---- sw0 -------+              one bridge per rail; the launcher sits here, 10.77.r.254
#include <cstdio>
#include <sstream>

#include "lab.h"

namespace thalweg::lab {

namespace {

std::string hardware_address(int rail, int host) {
    char text[32];
    std::snprintf(text, sizeof text, "02:54:4c:00:%02x:%02x", rail, host + 1);
    return text;
}

std::string port_name(int rail, int host) { return "h" + std::to_string(host) + "r" + std::to_string(rail); }

// The queue is long enough that TCP's own windows end first: a lost packet would cost 200 ms, and real
// fabrics do not lose any.
std::string bucket(const Network& network) {
    return " root tbf rate " + std::to_string(network.rate_bits_per_s) + "bit burst " +
           std::to_string(network.burst_bytes) + "b limit 67108864\n";
}

}  // namespace

std::string host_name(int host) { return "node" + std::to_string(host); }
std::string rail_name(int rail) { return "rail" + std::to_string(rail); }

std::string address_of(int rail, int host) {
    return "10.77." + std::to_string(rail) + "." + std::to_string(host + 1);
}

std::string head_address(int rail) { return "10.77." + std::to_string(rail) + ".254"; }

std::string hosts_file(const Network& network) {
    std::ostringstream text;
    text << "127.0.0.1 localhost\n" << head_address(0) << " head\n";
    for (int host = 0; host < network.hosts; ++host) {
        text << address_of(0, host) << ' ' << host_name(host) << '\n';
        for (int rail = 1; rail < network.rails; ++rail)
            text << address_of(rail, host) << ' ' << host_name(host) << '-' << rail_name(rail) << '\n';
    }
    return text.str();
}

std::string switch_links(const Network& network, const std::vector<pid_t>& hosts) {
    std::ostringstream text;
    text << "link set lo up\n";
    for (int rail = 0; rail < network.rails; ++rail) {
        const std::string bridge = "sw" + std::to_string(rail);
        // Addresses learnt never expire: an idle host must not make the bridge flood every link.
        text << "link add " << bridge << " address " << hardware_address(rail, 253) << " group " << link_group
             << " type bridge forward_delay 0 stp_state 0 mcast_snooping 0 ageing_time 100000000\n";
        text << "addr add " << head_address(rail) << "/24 dev " << bridge << "\n";
        for (int host = 0; host < network.hosts; ++host) {
            text << "link add " << port_name(rail, host) << " group " << link_group << " type veth peer name "
                 << rail_name(rail) << " address " << hardware_address(rail, host) << " netns " << hosts[host]
                 << "\n";
            text << "link set " << port_name(rail, host) << " master " << bridge << " up\n";
            // Known neighbours keep address resolution out of the links' counters.
            text << "neigh replace " << address_of(rail, host) << " lladdr " << hardware_address(rail, host)
                 << " dev " << bridge << " nud permanent\n";
        }
        text << "link set " << bridge << " up\n";
    }
    return text.str();
}

std::string switch_shaping(const Network& network) {
    std::string text;
    for (int rail = 0; rail < network.rails; ++rail)
        for (int host = 0; host < network.hosts; ++host)
            text += "qdisc add dev " + port_name(rail, host) + bucket(network);
    return text;
}

std::string host_links(const Network& network, int self) {
    std::ostringstream text;
    text << "link set lo up\n";
    for (int rail = 0; rail < network.rails; ++rail) {
        const std::string device = rail_name(rail);
        text << "addr add " << address_of(rail, self) << "/24 dev " << device << "\n";
        text << "link set " << device << " up\n";
        // By the route: a namespace may not name a congestion control that this machine keeps from its users.
        if (!network.congestion.empty())
            text << "route replace 10.77." << rail << ".0/24 dev " << device
                 << " proto kernel scope link src " << address_of(rail, self) << " congctl "
                 << network.congestion << "\n";
        for (int host = 0; host < network.hosts; ++host)
            if (host != self)
                text << "neigh replace " << address_of(rail, host) << " lladdr "
                     << hardware_address(rail, host) << " dev " << device << " nud permanent\n";
        text << "neigh replace " << head_address(rail) << " lladdr " << hardware_address(rail, 253) << " dev "
             << device << " nud permanent\n";
    }
    return text.str();
}

std::string host_shaping(const Network& network) {
    std::string text;
    for (int rail = 0; rail < network.rails; ++rail)
        text += "qdisc add dev " + rail_name(rail) + bucket(network);
    return text;
}

}  // namespace thalweg::lab
