#include "plan/report_network.h"

#include <cinttypes>

#include "plan/report_text.h"

namespace thalweg {

void append_network_json(std::string& text, const World& world) {
    const Network network = world.network();
    if (network.declined())
        text += ",\n \"network\": {\"not_measured\": " + quoted(text_of(network.trouble())) + "}";
    else if (network.known())
        append(text, ",\n \"network\": {\"latency_ns\": %" PRIu64 ", \"bytes_per_second\": %" PRIu64 "}",
               network.latency_ns, network.bytes_per_second);
}

void append_network_table(std::string& text, const World& world) {
    const Network network = world.network();
    if (network.declined())
        append(text, "  network between hosts: not measured: %s; a guess stands for it\n",
               text_of(network.trouble()));
    else if (network.known())
        append(text, "  network between hosts: %.3g us, %.4g MB/s\n",
               static_cast<double>(network.latency_ns) / 1e3,
               static_cast<double>(network.bytes_per_second) / 1e6);
}

}  // namespace thalweg
