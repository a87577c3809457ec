// What happened to the calling thread's last call that Thalweg looked at, for thalweg_get_last_call.
#pragma once

#include <cstdint>
#include <string_view>

#include "plan/statistics.h"

namespace thalweg {

struct LastCall {
    bool any = false;
    bool accelerated = false;
    Reason reason = Reason::small;  // when not accelerated
    std::uint64_t number = 0;       // of those that were looked at
    std::uint64_t bytes = 0;
    char algorithm[128] = "";  // when accelerated
    char chosen_because[128] = "";
    const char* transport = "";  // likewise, static storage: what carried it, and how a thread waits for it
    const char* waits = "";
};

// Initial-exec: a preloaded object's thread-local storage is in place from the start, and reading it is no
// call.
extern thread_local constinit LastCall last_call [[gnu::tls_model("initial-exec")]];

// A declined call: a few stores.
inline void note_declined(Reason reason, std::uint64_t bytes) {
    last_call.any = true;
    ++last_call.number;
    last_call.accelerated = false;
    last_call.reason = reason;
    last_call.bytes = bytes;
}

// A call that ran `algorithm` over `transport`; longer texts are cut.
void note_accelerated(std::string_view algorithm, std::string_view chosen_because, std::uint64_t bytes,
                      const Capabilities& transport, WaitPolicy policy);

}  // namespace thalweg
