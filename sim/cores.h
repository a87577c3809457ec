// The cores of the ranks: each is on one task at a time, for so long or until its bytes have gone through its
// host's memory. Where all hosts' ranks share a few cores, as an emulated cluster's do, a rank keeps one
// until it has nothing to do or copies, and the others come in their order: what it posts is posted before
// the next rank begins, and a scheduler's slice is far longer. Private to the replay.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "engine/waiters/between_polls.h"
#include "sim/clock.h"
#include "sim/machine.h"
#include "sim/memory.h"
#include "sim/rank.h"
#include "topology/topology.h"

namespace thalweg::sim {

class Cores {
  public:
    // `freed(rank)`: its core has ended a task, and whatever that led to has been noted. The references must
    // outlive this.
    Cores(const SimMachine& machine, const Topology& topology, std::vector<Rank>& ranks,
          std::function<void(std::size_t)> freed)
        : topology_(topology),
          shared_(machine.ranks_share_cores(ranks.size())),
          all_(machine.shared_cores),
          free_(machine.shared_cores),
          poll_seconds_(machine.poll_seconds),
          switch_seconds_(machine.switch_seconds),
          sleep_seconds_(machine.sleep_seconds),
          look_seconds_(machine.naps ? machine.look_seconds : 0),
          held_(ranks.size(), 0),
          asleep_(ranks.size(), 0),
          idle_until_(ranks.size(), 0),
          ranks_(ranks),
          freed_(std::move(freed)),
          memory_(topology.nodes(), machine.host_copy_rate) {
        if (!shared_ || !machine.naps) return;
        naps_among(ranks.size(), machine.shared_cores);
        nap_seconds_ = 1e-9 * static_cast<double>(nap_ns());
    }

    // The ranks in the order in which they begin. Which is first matters where they share cores, and is drawn
    // from `history`; 0: in theirs.
    std::vector<std::size_t> beginning(std::uint64_t history) const {
        std::vector<std::size_t> order(ranks_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        if (!shared_ || history == 0) return order;
        std::mt19937_64 random(history);
        for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
        return order;
    }

    // The core of rank r is busy for so long, and then does `then` at once.
    template <class Then>
    void occupy(std::size_t r, double seconds, Then then) {
        if (seconds <= 0) return then();
        ranks_[r].busy = true;
        const auto run = [this, r, then](double needed) {
            if (ranks_[r].began < 0) ranks_[r].began = now();
            at(now() + needed / left_by_naps(r), [this, r, then] { release(r, then); });
        };
        if (!shared_ || held_[r] != 0) return run(seconds);
        const bool slept = std::exchange(asleep_[r], 0) != 0;
        const double woken = slept ? sleep_seconds_ : 0, late = slept ? lateness(r) : 0;
        const auto taken = [this, run, seconds, woken] { run(seconds + switch_seconds_ + woken); };
        const auto take = [this, r, taken] {
            if (free_ == 0) return waiting_.emplace_back(r, taken), void();
            --free_;
            held_[r] = 1;
            taken();
        };
        if (late <= 0) return take();
        at(now() + late, take);
    }

    // Rank r has computed, and looks by itself from now on: whatever it did not look at meanwhile, it did not
    // sleep.
    void awake(std::size_t r) {
        if (!shared_ || ranks_[r].busy) return;
        asleep_[r] = 0;
        if (poll_seconds_ > 0) look(r);
    }

    // It is busy with so many bytes, at most `rate` of them per second.
    template <class Then>
    void copy(std::size_t r, std::uint64_t bytes, double rate, Then then) {
        if (bytes <= small_copy_bytes) return occupy(r, static_cast<double>(bytes) / rate, then);
        ranks_[r].busy = true;
        leave(r);
        memory_.move(topology_.node_of(static_cast<int>(r)), bytes, rate,
                     [this, r, then] { release(r, then); });
    }

  private:
    static constexpr double naps_for = 1e-9 * naps_for_ns;

    double waited(std::size_t r) const { return now() - (idle_until_[r] - poll_seconds_); }
    // How long a rank sleeps that has waited so long, and has napped as long as it does.
    static double sleep_after(double waited) {
        constexpr double share = 1.0 / waited_per_sleep, longest = 1e-9 * longest_sleep_ns;
        const double shortest = 1e-9 * static_cast<double>(shortest_sleep_ns(nap_ns()));
        return std::clamp(waited * share, shortest, longest);
    }
    // Until a rank that sleeps looks: it naps first, and then sleeps the longer the more it has waited.
    double lateness(std::size_t r) const {
        if (nap_seconds_ <= 0) return 0;
        const double until = waited(r), nap = nap_seconds_ + look_seconds_;
        double looks = poll_seconds_ + nap * std::ceil((std::min(until, naps_for) - poll_seconds_) / nap);
        while (looks < until) looks += look_seconds_ + sleep_after(looks);
        return std::max(looks - until, 0.0);
    }

    // The part of a core that rank r has: those that sleep look between their naps, on cores that nobody has
    // and, as far as these do not suffice, on the others in equal parts. A look takes the longer the less of
    // a core it has.
    double left_by_naps(std::size_t r) const {
        if (nap_seconds_ <= 0) return 1;
        const auto looks = [this, r](double part) {  // cores
            double taken = 0;
            for (std::size_t other = 0; other < ranks_.size(); ++other) {
                if (other == r || asleep_[other] == 0) continue;
                if (ranks_[other].unfinished == 0 || ranks_[other].computing) continue;
                const double slept = waited(other) < naps_for ? nap_seconds_ : sleep_after(waited(other));
                taken += look_seconds_ / (look_seconds_ / part + slept);
            }
            return taken;
        };
        const double held = all_ - free_;
        double low = 0, high = 1;
        if (looks(high) <= free_) return 1;
        constexpr int halvings = 20;
        for (int i = 0; i < halvings; ++i) {
            const double part = (low + high) / 2;
            (part + (looks(part) - free_) / held < 1 ? low : high) = part;
        }
        return high;
    }

    template <class Then>
    void release(std::size_t r, Then then) {
        ranks_[r].busy = false;
        ranks_[r].looping = true;  // what `then` adds to this rank is done by the call below
        then();
        ranks_[r].looping = false;
        freed_(r);
        if (!ranks_[r].busy) poll(r);
    }

    // It looks for a while whether something has come before it gives up its core, and sleeps then; so does
    // who has copied, without a core.
    void poll(std::size_t r) {
        if (!shared_ || poll_seconds_ <= 0) return leave(r);
        look(r);
    }
    void look(std::size_t r) {
        const double until = idle_until_[r] = now() + poll_seconds_;
        at(until, [this, r, until] {
            if (ranks_[r].busy || idle_until_[r] != until) return;
            asleep_[r] = 1;
            leave(r);
        });
    }

    // Its core is the next one's.
    void leave(std::size_t r) {
        if (held_[r] == 0) return;
        held_[r] = 0;
        if (waiting_.empty()) {
            ++free_;
            return;
        }
        const auto [next, run] = std::move(waiting_.front());
        waiting_.pop_front();
        held_[next] = 1;
        run();
    }

    const Topology& topology_;
    bool shared_;          // all hosts' ranks have a few cores together
    unsigned all_, free_;  // of those
    double poll_seconds_, switch_seconds_, sleep_seconds_, look_seconds_, nap_seconds_ = 0;
    std::vector<std::uint8_t> held_;    // per rank: it has one of them
    std::vector<std::uint8_t> asleep_;  // per rank: it gave its core up because it had nothing to do
    std::vector<double> idle_until_;    // per rank: where that ends if nothing comes
    std::deque<std::pair<std::size_t, std::function<void()>>> waiting_;
    std::vector<Rank>& ranks_;
    std::function<void(std::size_t)> freed_;
    Memory memory_;
};

}  // namespace thalweg::sim
