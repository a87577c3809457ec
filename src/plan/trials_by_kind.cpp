#include <algorithm>
#include <memory>
#include <optional>

#include "plan/trials.h"

namespace thalweg {

namespace {

Trial& made(std::unique_ptr<Trial>& trial, Trial::Of of, bool on_one_host,
            std::optional<TriedCalls> alike = std::nullopt) {
    if (trial == nullptr) trial = std::make_unique<Trial>(of, on_one_host, alike);
    return *trial;
}

TriedCalls alike(CallKind kind, std::size_t size_class) {
    return {static_cast<int>(kind), static_cast<int>(size_class), 0};
}

}  // namespace

std::size_t Trials::class_of(std::uint64_t bytes) {
    return std::min(static_cast<std::size_t>(size_class(bytes)), classes - 1);
}

Trial& Trials::of(CallKind kind, std::uint64_t bytes, bool on_one_host, bool by_size) {
    using enum Trial::Of;
    if (kind == CallKind::alltoallv) return made(alltoallv_, sized, on_one_host);
    if (kind == CallKind::alltoallw) return made(alltoallw_, sized, on_one_host);
    if (kind >= CallKind::neighbor_allgather && kind <= CallKind::neighbor_alltoallw)
        return made(neighbours_[static_cast<std::size_t>(kind) -
                                static_cast<std::size_t>(CallKind::neighbor_allgather)],
                    by_size ? sized : calls, on_one_host);
    return made(alike_[class_of(bytes)], calls, on_one_host, alike(kind, class_of(bytes)));
}

Trial& Trials::of_broadcasts(std::uint64_t bytes, bool on_one_host) {
    return made(broadcasts_[class_of(bytes)], on_one_host ? Trial::Of::rooted : Trial::Of::calls, on_one_host,
                alike(CallKind::bcast, class_of(bytes)));
}

Trial& Trials::of_collectives(CallKind kind, std::uint64_t bytes) {
    static_assert(static_cast<int>(CallKind::allreduce) - static_cast<int>(CallKind::allgather) == 2);
    std::unique_ptr<ByClass>& its =
        collectives_[static_cast<std::size_t>(kind) - static_cast<std::size_t>(CallKind::allgather)];
    if (its == nullptr) its = std::make_unique<ByClass>();
    return made((*its)[class_of(bytes)], Trial::Of::calls, false, alike(kind, class_of(bytes)));
}

}  // namespace thalweg
