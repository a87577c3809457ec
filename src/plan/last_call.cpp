#include "plan/last_call.h"

namespace thalweg {

thread_local constinit LastCall last_call [[gnu::tls_model("initial-exec")]]{};

// Of a wait by this policy: a transport without a descriptor is polled between naps.
static const char* way_of_waiting(WaitPolicy policy, const Capabilities& transport) {
    return policy == WaitPolicy::sleep && !transport.wakeup_descriptor ? "naps" : name_of(policy);
}

void note_accelerated(std::string_view algorithm, std::string_view chosen_because, std::uint64_t bytes,
                      const Capabilities& transport, WaitPolicy policy) {
    LastCall& last = last_call;
    last.any = last.accelerated = true;
    ++last.number;
    last.bytes = bytes;
    last.transport = transport.name;
    last.waits = way_of_waiting(policy, transport);
    const auto copy = [](char(&target)[128], std::string_view text) {
        target[text.copy(target, sizeof target - 1)] = '\0';
    };
    copy(last.algorithm, algorithm);
    copy(last.chosen_because, chosen_because);
}

}  // namespace thalweg
