// What a program may ask of the world while it runs, and what follows from it for the gates.
#include <algorithm>
#include <functional>
#include <utility>

#include "algorithms/option_check.h"
#include "base/log.h"
#include "plan/blocking_exchange.h"
#include "plan/bypass.h"
#include "plan/last_call.h"
#include "plan/ports.h"
#include "plan/predefined_sizes.h"
#include "plan/unasked.h"
#include "plan/world.h"
#include "thalweg/thalweg.h"
#include "transport/mpi/host.h"

namespace thalweg {

// Makes steering_ from steered_. Pre: steering_mutex_ is held, or nobody else knows this object yet.
Status World::steer() {
    Steering next;
    next.generation = generation_.load(std::memory_order_relaxed) + 1;
    next.bcast_min_bytes = steered_.bcast_min_bytes;
    const std::string_view texts[collective_count] = {steered_.bcast.view(), steered_.allgather.view(),
                                                      steered_.allreduce.view(), steered_.barrier.view(),
                                                      steered_.alltoallv.view()};
    for (int i = 0; i < collective_count; ++i) {
        const auto collective = static_cast<Collective>(i);
        Steering::Wish& wish = next.wishes[static_cast<std::size_t>(i)];
        wish.native = texts[i] == "native";
        if (wish.native || texts[i] == "auto") continue;
        if (is_over_windows(collective, texts[i])) {
            wish.windows = *std::find(std::begin(over_windows), std::end(over_windows), texts[i]);
            continue;
        }
        std::string why;
        Choice choice;
        if (const Status status = parse_choice(collective, texts[i], choice, why); failed(status)) {
            THALWEG_LOG_AT(error, "the algorithm asked for (%.*s): %s",
                           static_cast<int>(name_of(collective).size()), name_of(collective).data(),
                           why.c_str());
            return status;
        }
        wish.forced = std::move(choice);
    }
    next.bcast_native = next.wishes[0].native;
    next.bcast_forced = next.wishes[0].forced;
    for (std::size_t i = 0; i < next.wishes.size(); ++i) {
        const Steering::Wish& wish = next.wishes[i];
        wanted_[i].store(wish.native   ? Wanted::native
                         : wish.forced ? Wanted::algorithm
                                       : Wanted::automatic,
                         std::memory_order_relaxed);
    }
    bcast_min_bytes_.store(next.bcast_min_bytes, std::memory_order_relaxed);
    const std::string_view windows = next.wishes[static_cast<std::size_t>(Collective::alltoallv)].windows;
    const auto way = std::find(std::begin(over_windows), std::end(over_windows), windows);
    windows_wanted_.store(windows.empty() ? -1 : static_cast<int>(way - std::begin(over_windows)),
                          std::memory_order_relaxed);
    steering_ = std::move(next);
    generation_.store(steering_.generation, std::memory_order_release);
    return Status::ok;
}

// Opens or closes the gates as steered_ says. On one host, where nothing was asked for and no table says
// otherwise, every call of every communicator is the native library's: nobody need look at them. Nor, between
// hosts, at those that are shorter than any that is taken, unless somebody wants them in the
// report. Pre: as steer().
void World::set_gates() {
    Bypass::Limits unseen_below{};
    const bool reports = !settings_.report.view().empty();
    for (const Collective collective : {Collective::bcast, Collective::allgather, Collective::allreduce}) {
        const auto i = static_cast<std::size_t>(collective);
        std::uint64_t below =
            single_host_ && wanted(collective) == Wanted::automatic ? one_host_below_[i] : 0;
        std::uint64_t lowest = wanted(collective) == Wanted::algorithm ? 0 : lowest_[i];
        if (collective == Collective::bcast) {
            lowest = steering_.bcast_min_bytes;
            if (below != 0) below = std::max(below, lowest);
        }
        handed_on_[i] |= below != 0;
        if (below == 0 && !single_host_ && !reports) below = lowest;
        if (below != Bypass::all) below = std::min(below, Bypass::most);
        const std::uint64_t told = below == Bypass::all ? gate_closed : below | gate_unseen;
        gates[i].store(below != 0 ? told : lowest, std::memory_order_release);
        unseen_below[i] = below;
    }
    if (handing_on_ && unseen_below == unseen_below_) return;
    if (handing_on_) Bypass::hold(Bypass::collectives);
    const auto is_unseen = [](std::uint64_t below) { return below != 0; };
    handing_on_ = std::any_of(unseen_below.begin(), unseen_below.end(), is_unseen);
    // The next call that was looked at until now leaves no mark, and is not to be taken for one before.
    if (!std::equal(unseen_below.begin(), unseen_below.end(), unseen_below_.begin(), std::less_equal<>{}))
        last_call.any = false;
    unseen_below_ = unseen_below;
    if (handing_on_) {
        const auto is_limited = [](std::uint64_t below) { return below != 0 && below != Bypass::all; };
        const bool limited = std::any_of(unseen_below.begin(), unseen_below.end(), is_limited);
        Bypass::set_limits(unseen_below, single_host_ ? "one host" : "short", sizes_in_handles.mask,
                           sizes_in_handles.predefined, limited ? predefined_sizes() : nullptr);
        Bypass::let_go(Bypass::collectives);
    }
}

void World::set_exchange_gate() {
    std::lock_guard lock(steering_mutex_);
    Unasked::ask_again();
    const bool none = !may_exchange();
    if (none == handing_on_exchanges_) return;
    handing_on_exchanges_ = none;
    handed_on_[static_cast<std::size_t>(Collective::alltoallv)] |= none;
    if (none)
        Bypass::let_go(Bypass::exchanges);
    else
        Bypass::hold(Bypass::exchanges);
}

Steering World::steering() const {
    std::lock_guard lock(steering_mutex_);
    return steering_;
}

std::string World::option_text(std::size_t index) const {
    std::lock_guard lock(steering_mutex_);
    return steered_.value_text(index);
}

Status World::set_option(const char* name, const char* value) {
    std::string why;
    std::unique_lock lock(steering_mutex_);
    const Option* const option = find_option(name);
    if (option == nullptr) return Status::not_found;
    if (option->when != When::anytime) return Status::unsupported;
    const auto index = static_cast<std::size_t>(option - options().data());
    const std::string started = settings_.value_text(index);
    const Settings before = steered_;
    Status status = steered_.set(name, value == nullptr ? std::string_view(started) : std::string_view(value),
                                 Origin::program, why, check_option);
    // What was in effect before stays planned.
    const bool changed = !failed(status) && steered_.value_text(index) != before.value_text(index);
    if (changed && option->scope == Scope::agreed) status = steer();
    if (failed(status)) {
        if (!why.empty()) THALWEG_LOG_AT(warn, "thalweg_set_option: %s", why.c_str());
        steered_ = before;
        return status;
    }
    set_log_level(steered_.log);
    const bool left = left_.load(std::memory_order_acquire);
    if (!left) set_gates();
    lock.unlock();
    if (!left) set_exchange_gate();
    if (changed && index == index_of::inside) Ports::obey(*this);
    return status;
}

}  // namespace thalweg
