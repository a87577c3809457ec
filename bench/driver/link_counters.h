// The kernel's own count of what crossed this host's links: proof of work that no library can fake.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::bench {

struct LinkCounters {
    std::uint64_t tx_bytes = 0, rx_bytes = 0, tx_packets = 0, rx_packets = 0;

    LinkCounters operator-(const LinkCounters& before) const {
        return {tx_bytes - before.tx_bytes, rx_bytes - before.rx_bytes, tx_packets - before.tx_packets,
                rx_packets - before.rx_packets};
    }
    LinkCounters& operator+=(const LinkCounters& more) {
        tx_bytes += more.tx_bytes;
        rx_bytes += more.rx_bytes;
        tx_packets += more.tx_packets;
        rx_packets += more.rx_packets;
        return *this;
    }
};

// The rails of this lab host (rail0, rail1, …); empty outside a lab, where no link is counted.
class LinkReader {
  public:
    LinkReader();
    bool present() const { return !folders_.empty(); }
    LinkCounters read() const;  // added up over the rails

  private:
    std::vector<std::string> folders_;
};

}  // namespace thalweg::bench
