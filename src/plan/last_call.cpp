#include "plan/last_call.h"

namespace thalweg {

thread_local constinit LastCall last_call [[gnu::tls_model("initial-exec")]]{};

void note_accelerated(std::string_view algorithm, std::string_view chosen_because, std::uint64_t bytes) {
    LastCall& last = last_call;
    last.any = last.accelerated = true;
    last.bytes = bytes;
    const auto copy = [](char(&target)[128], std::string_view text) {
        target[text.copy(target, sizeof target - 1)] = '\0';
    };
    copy(last.algorithm, algorithm);
    copy(last.chosen_because, chosen_because);
}

}  // namespace thalweg
