// Two ports of the ucx transport in one process, over TCP. Needs libucp's headers.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/ucx/library.h"
#include "transport/ucx/ucx.h"

namespace thalweg {

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
