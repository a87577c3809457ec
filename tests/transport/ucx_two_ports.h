// Two ports of the ucx transport in one process, over TCP. Needs libucp's headers.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "transport/ucx/library.h"
#include "transport/ucx/ucx.h"

namespace thalweg {

// Ends two ports as ranks end theirs, at the same time. What closes flushes its endpoints, and over TCP
// libucp asks the other end for word that it has read all that was sent since the last flush: the proof that
// the last bytes are there, which a socket that is closed with something unread takes back. Only polls give
// that word, and a port whose peer does not poll waits for its whole limit.
inline void close_together(std::unique_ptr<UcxPort>& one, std::unique_ptr<UcxPort>& other) {
    std::thread closes([&other] { other.reset(); });
    one.reset();
    closes.join();
}

class OpenUcxPorts : public testing::Test {
  protected:
    void SetUp() override {
        UcxOptions options;
        options.processes = 2;
        options.transports = "self,tcp";
        for (; options.process < 2; ++options.process) {
            auto& port = ports[options.process];
            ASSERT_EQ(UcxPort::open(options, port, why), Status::ok) << why;
            addresses_.insert(addresses_.end(), port->address().begin(), port->address().end());
            offsets_.push_back(addresses_.size());
        }
    }
    // Pre: no channel is left.
    void TearDown() override { close_together(ports[0], ports[1]); }
    // The port knows both processes.
    void introduce(UcxPort& port) { ASSERT_EQ(port.learn({addresses_, offsets_}, why), Status::ok) << why; }
    // Of both processes, at the end of this one; `counter` tells groups apart.
    void open_channel(int process, std::unique_ptr<Transport>& made, std::uint32_t counter = 0) {
        UcxGroup group;
        group.size = 2;
        group.rank = process;
        group.name.counter = counter;
        ASSERT_EQ(ports[process]->make_channel(group, made), Status::ok);
    }

    std::string why;

  private:
    std::vector<std::byte> addresses_;
    std::vector<std::uint64_t> offsets_{0};

  protected:
    std::unique_ptr<UcxPort> ports[2];  // read the addresses as long as they live
};

}  // namespace thalweg
