// Max-min fair shares by progressive filling: the link with the least for each of its transfers gives it to
// them, is taken away with them, and so on. Transfers between the same two hosts over the same rail have the
// same links and therefore the same share; they are one bundle. What a new transfer, or the end of one,
// changes is looked for along the links that bundles have in common.
//
// Time, per change: O(E log L) for the L links and E bundles' links that it reaches.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/clock.h"
#include "sim/flows.h"
#include "sim/places.h"

namespace thalweg::sim {
namespace {

namespace s4u = simgrid::s4u;

constexpr double never = std::numeric_limits<double>::infinity();

class SharedFlows final : public Flows {
  public:
    SharedFlows(const Platform& platform, int hosts, double grain)
        : platform_(platform), hosts_(static_cast<std::uint64_t>(hosts)), grain_(grain) {}

    Id begin(int from, int to, unsigned rail, double bytes, std::function<void()> done) override {
        const Id id = flows_.keep({bundle_of(from, to, rail), bytes, std::move(done)});
        join(id);
        return id;
    }
    void suspend(Id flow) override {
        Bundle& bundle = bundles_[flows_[flow].bundle];
        const auto found = std::find_if(bundle.flows.begin(), bundle.flows.end(),
                                        [flow](const Member& member) { return member.id == flow; });
        if (found == bundle.flows.end()) return;
        advance(bundle);
        flows_[flow].bytes = std::max(found->end - bundle.served, 0.0);
        bundle.flows.erase(found);
        std::make_heap(bundle.flows.begin(), bundle.flows.end(), Later());
        left(flows_[flow].bundle);
    }
    void resume(Id flow) override { join(flow); }

  private:
    using Index = std::uint32_t;

    struct Flow {
        Index bundle = 0;
        double bytes = 0;  // that it had to move when it joined its bundle
        std::function<void()> done;
    };

    // Of a bundle: over when each of its transfers has been served `end` bytes.
    struct Member {
        double end = 0;
        Id id = 0;
    };
    struct Later {
        bool operator()(const Member& a, const Member& b) const {
            return std::tie(a.end, a.id) > std::tie(b.end, b.id);
        }
    };

    struct Place {
        Index link = 0, at = 0;  // at: in the link's list, while something of the bundle is under way
    };

    struct Bundle {
        std::vector<Place> places;
        double bound = never;       // bytes per second of one transfer
        std::vector<Member> flows;  // a heap, the first to end on top
        double rate = 0;            // of each, since `since`
        double served = 0;          // bytes of each transfer that has always been there, at `since`
        double since = 0;
        Index at = 0;              // in active_, while something of it is under way
        std::uint64_t looked = 0;  // the number of the change that it was last part of
        bool open = false;         // while shares are made: it has none yet

        double ends() const { return rate > 0 ? since + (flows.front().end - served) / rate : never; }
    };

    struct Link {
        double capacity = 0;
        std::vector<std::pair<Index, Index>>
            bundles;  // that are under way over it, and which of their places
        std::uint64_t looked = 0;
        double left = 0;         // while shares are made: of its capacity
        std::uint64_t open = 0;  // transfers that have no share yet
    };

    struct Offer {
        double share = 0;
        Index from = 0;  // a link; behind those, the bound of a bundle
    };
    struct Greater {
        bool operator()(const Offer& a, const Offer& b) const {
            return std::tie(a.share, a.from) > std::tie(b.share, b.from);
        }
    };

    Index bundle_of(int from, int to, unsigned rail) {
        const std::uint64_t key =
            (rail * hosts_ + static_cast<std::uint64_t>(from)) * hosts_ + static_cast<std::uint64_t>(to);
        const auto [found, fresh] = bundle_at_.try_emplace(key, static_cast<Index>(bundles_.size()));
        if (fresh) {
            Bundle& bundle = bundles_.emplace_back();
            std::vector<s4u::Link*> route;
            double latency = 0;
            platform_.end(from, rail)->route_to(platform_.end(to, rail), route, &latency);
            for (const s4u::Link* link : route) {
                const double rate = link->get_bandwidth();
                if (link->get_sharing_policy() == s4u::Link::SharingPolicy::FATPIPE)
                    bundle.bound = std::min(bundle.bound, rate);
                else
                    bundle.places.push_back({link_at(link, rate), 0});
            }
        }
        return found->second;
    }
    Index link_at(const s4u::Link* link, double rate) {
        const auto [found, fresh] = link_at_.try_emplace(link, static_cast<Index>(links_.size()));
        if (fresh) links_.emplace_back().capacity = rate;
        return found->second;
    }

    void join(Id id) {
        const Index b = flows_[id].bundle;
        Bundle& bundle = bundles_[b];
        advance(bundle);
        if (bundle.flows.empty()) {
            bundle.served = 0;
            bundle.rate = 0;
            bundle.at = static_cast<Index>(active_.size());
            active_.push_back(b);
            for (Index i = 0; i < bundle.places.size(); ++i) {
                Place& place = bundle.places[i];
                place.at = static_cast<Index>(links_[place.link].bundles.size());
                links_[place.link].bundles.emplace_back(b, i);
            }
        }
        bundle.flows.push_back({bundle.served + flows_[id].bytes, id});
        std::push_heap(bundle.flows.begin(), bundle.flows.end(), Later());
        changed(b);
    }

    // Something of bundle b ended or was suspended.
    void left(Index b) {
        changed(b);
        Bundle& bundle = bundles_[b];
        if (!bundle.flows.empty()) return;
        active_[bundle.at] = active_.back();
        bundles_[active_.back()].at = bundle.at;
        active_.pop_back();
        for (const Place& place : bundle.places) {
            auto& list = links_[place.link].bundles;
            list[place.at] = list.back();
            bundles_[list.back().first].places[list.back().second].at = place.at;
            list.pop_back();
        }
    }

    void advance(Bundle& bundle) const {
        bundle.served += bundle.rate * (now() - bundle.since);
        bundle.since = now();
    }

    // Shares are made anew when everything else of this instant has been done.
    void changed(Index b) {
        if (changed_.empty()) at(now(), [this] { settle(); });
        changed_.push_back(b);
    }
    void settle() {
        if (next_date() == now()) return at(now(), [this] { settle(); });
        share();
        changed_.clear();
        const std::uint64_t current = ++settled_;
        double soonest = never;
        for (const Index b : active_) soonest = std::min(soonest, bundles_[b].ends());
        if (soonest == never) return;
        at(std::max(soonest, now()), [this, current] {
            if (current == settled_) end();
        });
    }

    void end() {
        std::vector<std::pair<double, Id>> ended;
        std::vector<Index> fewer;
        const double until = now() + grain_;
        for (const Index b : active_) {
            Bundle& bundle = bundles_[b];
            if (bundle.ends() > until) continue;
            fewer.push_back(b);
            do {
                ended.emplace_back(bundle.ends(), bundle.flows.front().id);
                std::pop_heap(bundle.flows.begin(), bundle.flows.end(), Later());
                bundle.flows.pop_back();
            } while (!bundle.flows.empty() && bundle.ends() <= until);
        }
        for (const Index b : fewer) left(b);
        std::sort(ended.begin(), ended.end());
        for (const auto& [date, id] : ended) {
            const Flow flow = flows_.take(id);
            flow.done();
        }
    }

    void share() {
        ++look_;
        reached_.clear();
        offers_.clear();
        for (const Index b : changed_) {
            if (!bundles_[b].flows.empty()) reach_bundle(b);
            for (const Place& place : bundles_[b].places) reach_link(place.link);
        }
        for (std::size_t i = 0; i < reached_.size(); ++i) {  // grows meanwhile
            Link& link = links_[reached_[i]];
            link.left = link.capacity;
            link.open = 0;
            for (const auto& [b, place] : link.bundles) {
                reach_bundle(b);
                link.open += bundles_[b].flows.size();
            }
            if (link.open > 0) offers_.push_back({link.left / static_cast<double>(link.open), reached_[i]});
        }
        std::make_heap(offers_.begin(), offers_.end(), Greater());
        while (!offers_.empty()) {
            std::pop_heap(offers_.begin(), offers_.end(), Greater());
            const Offer offer = offers_.back();
            offers_.pop_back();
            if (offer.from >= links_.size()) {
                give(bundles_[offer.from - links_.size()], offer.share);
                continue;
            }
            Link& link = links_[offer.from];
            if (link.open == 0) continue;
            // What others have taken since was less for each: what is left is more.
            const double now_left = link.left / static_cast<double>(link.open);
            if (now_left > offer.share) {
                offers_.push_back({now_left, offer.from});
                std::push_heap(offers_.begin(), offers_.end(), Greater());
                continue;
            }
            for (const auto& [b, place] : link.bundles) give(bundles_[b], now_left);
        }
    }
    void reach_link(Index l) {
        if (std::exchange(links_[l].looked, look_) != look_) reached_.push_back(l);
    }
    void reach_bundle(Index b) {
        Bundle& bundle = bundles_[b];
        if (std::exchange(bundle.looked, look_) == look_) return;
        advance(bundle);
        bundle.open = true;
        if (bundle.bound < never) offers_.push_back({bundle.bound, static_cast<Index>(links_.size() + b)});
        for (const Place& place : bundle.places) reach_link(place.link);
    }
    void give(Bundle& bundle, double rate) {
        if (!std::exchange(bundle.open, false)) return;
        bundle.rate = rate;
        const std::size_t flows = bundle.flows.size();
        for (const Place& place : bundle.places) {
            Link& link = links_[place.link];
            link.left = std::max(link.left - rate * static_cast<double>(flows), 0.0);
            link.open -= flows;
        }
    }

    const Platform& platform_;
    std::uint64_t hosts_;
    double grain_;
    std::unordered_map<std::uint64_t, Index> bundle_at_;  // by rail and both ends
    std::unordered_map<const s4u::Link*, Index> link_at_;
    std::vector<Bundle> bundles_;
    std::vector<Link> links_;
    Places<Flow> flows_;
    std::vector<Index> active_;   // bundles of which something is under way
    std::vector<Index> changed_;  // bundles, since shares were made
    std::uint64_t settled_ = 0;   // how often they were: what ended before is over
    std::uint64_t look_ = 0;
    std::vector<Index> reached_;  // links, while shares are made
    std::vector<Offer> offers_;   // a heap, the least on top
};

}  // namespace

std::unique_ptr<Flows> shared_flows(const Platform& platform, int hosts, double grain) {
    return std::make_unique<SharedFlows>(platform, hosts, grain);
}

}  // namespace thalweg::sim
