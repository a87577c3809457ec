// A message that its receiver combines with what it has, on its agent's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "engine/agent_group.h"
#include "schedule/builder.h"

namespace thalweg::test {

// Rank 1 sends eight bytes to rank 0 of a group of two.
class CombinedMessage {
  public:
    explicit CombinedMessage(AgentGroup& group)
        : group_(group),
          receiving_(group.channel(0).make(combining())),
          sending_(group.channel(1).make(sending())) {}

    // `combine` is called with `context`, which outlives it.
    Status start(decltype(Bindings{}.reducer.combine) combine, void* context) {
        Bindings bindings{nullptr, &out_, {}};
        bindings.reducer.combine = combine;
        bindings.reducer.context = context;
        bindings.reducer.element_bytes = 8;
        const Status status = group_.channel(0).start(received, bindings, 0);
        return status != Status::ok ? status : group_.channel(1).start(sent, {&in_, nullptr, {}}, 0);
    }

  private:
    static std::shared_ptr<const Schedule> sending() {
        Builder builder(1, 2);
        builder.send(0, {Buffer::in, 0, 8});
        return std::make_shared<const Schedule>(std::move(builder).finish());
    }
    static std::shared_ptr<const Schedule> combining() {
        Builder builder(0, 2);
        const Slice arrived = builder.scratch(8);
        builder.recv(1, arrived);
        builder.reduce({Buffer::out, 0, 8}, arrived, Side::right);
        return std::make_shared<const Schedule>(std::move(builder).finish());
    }

    AgentGroup& group_;
    decltype(std::declval<AgentGroup&>().channel(0).make(nullptr)) receiving_, sending_;
    std::uint64_t in_ = 7, out_ = 0;

  public:
    Operation received{*receiving_}, sent{*sending_};
};

}  // namespace thalweg::test
