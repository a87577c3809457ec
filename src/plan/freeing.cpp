#include "plan/freeing.h"

#include <array>
#include <cstdint>

namespace thalweg {

namespace {

struct Freeing {
    MPI_Comm comm;
    std::uintptr_t frame;
};

// A callback may free another communicator. Deeper ones are not noted, and cost a channel at worst.
constexpr int deepest = 8;
thread_local constinit std::array<Freeing, deepest> noted [[gnu::tls_model("initial-exec")]]{};
thread_local constinit int depth [[gnu::tls_model("initial-exec")]] = 0;

// What is as deep in the stack as `frame`, or deeper, has returned or been unwound.
void forget_what_ended(std::uintptr_t frame) {
    while (depth > 0 && noted[static_cast<std::size_t>(depth - 1)].frame <= frame) --depth;
}

}  // namespace

void begin_freeing(MPI_Comm comm, void* frame) {
    const auto place = reinterpret_cast<std::uintptr_t>(frame);
    forget_what_ended(place);
    if (depth < deepest) noted[static_cast<std::size_t>(depth++)] = {comm, place};
}

void end_freeing(void* frame) { forget_what_ended(reinterpret_cast<std::uintptr_t>(frame)); }

bool being_freed(MPI_Comm comm) {
    for (int i = 0; i < depth; ++i)
        if (noted[static_cast<std::size_t>(i)].comm == comm) return true;
    return false;
}

}  // namespace thalweg
