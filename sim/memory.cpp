#include "sim/memory.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/clock.h"

namespace thalweg::sim {

void Memory::move(int id, std::uint64_t bytes, double bound, std::function<void()> done) {
    Host& host = hosts_[static_cast<std::size_t>(id)];
    advance(host);
    const auto behind = std::upper_bound(host.copies.begin(), host.copies.end(), bound,
                                         [](double value, const Copy& copy) { return value < copy.bound; });
    host.copies.insert(behind, {static_cast<double>(bytes), bound, 0, std::move(done)});
    share(host);
}

void Memory::advance(Host& host) const {
    for (Copy& copy : host.copies) copy.left -= copy.rate * (now() - host.since);
    host.since = now();
}

// Nobody gets more than its bound; what those leave, the others have in equal parts.
void Memory::share(Host& host) {
    const std::uint64_t current = ++host.shares;
    double left = rate_, soonest = std::numeric_limits<double>::infinity();
    std::size_t others = host.copies.size();
    for (Copy& copy : host.copies) {
        copy.rate = std::min(copy.bound, left / static_cast<double>(others--));
        left -= copy.rate;
        soonest = std::min(soonest, copy.left / copy.rate);
    }
    if (host.copies.empty()) return;
    at(now() + std::max(soonest, 0.0), [this, &host, current] {
        if (host.shares == current) end(host);
    });
}

void Memory::end(Host& host) {
    advance(host);
    std::vector<std::function<void()>> ended;
    std::erase_if(host.copies, [&](Copy& copy) {
        constexpr double rounding = 0.5;  // bytes: whole ones are copied
        // After days the clock does not move for the rest of a copy, of which it has counted too little.
        if (copy.left > rounding && now() + copy.left / copy.rate > now()) return false;
        ended.push_back(std::move(copy.done));
        return true;
    });
    share(host);
    for (const auto& done : ended) done();
}

}  // namespace thalweg::sim
