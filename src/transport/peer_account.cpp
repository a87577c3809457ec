#include "transport/peer_account.h"

#include <new>
#include <utility>

namespace thalweg {

const char* name_of(Way way) {
    constexpr std::array<const char*, ways> names = {
        "direct",         "cma_get",        "cma_put", "coop",           "eager",      "receivers_choice",
        "rendezvous_get", "rendezvous_put", "put",     "libucps_choice", "mpis_choice"};
    return names[static_cast<std::size_t>(way)];
}

std::uint64_t PeerFigures::messages() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < ways; ++i) sum += sent[i].messages + received[i].messages;
    return sum;
}

std::uint64_t PeerFigures::bytes() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < ways; ++i) sum += sent[i].bytes + received[i].bytes;
    return sum;
}

void PeerFigures::add(const PeerFigures& other) {
    for (std::size_t i = 0; i < ways; ++i)
        for (const auto side : {&PeerFigures::sent, &PeerFigures::received}) {
            (this->*side)[i].messages += (other.*side)[i].messages;
            (this->*side)[i].bytes += (other.*side)[i].bytes;
        }
    for (const auto sum : {&PeerFigures::packed, &PeerFigures::over_rails, &PeerFigures::switches,
                           &PeerFigures::copying_ns, &PeerFigures::under_way_ns})
        this->*sum += other.*sum;
}

void PeerAccount::takes(int size_class, WayTaken taken) {
    Latest& latest = latest_[static_cast<std::size_t>(size_class)];
    const char* const why = latest.because.load(std::memory_order_relaxed);
    const bool same_way = latest.way.load(std::memory_order_relaxed) == taken.way;
    if (same_way && why == taken.because) return;
    if (!same_way && why != nullptr) switches_.fetch_add(1, std::memory_order_relaxed);
    latest.way.store(taken.way, std::memory_order_relaxed);
    latest.because.store(taken.because, std::memory_order_relaxed);
}

PeerFigures PeerAccount::figures() const {
    const auto read = [](const Cells& cells, std::array<PeerFigures::Count, ways>& counts) {
        for (std::size_t i = 0; i < ways; ++i)
            counts[i] = {cells[i].messages.load(std::memory_order_relaxed),
                         cells[i].bytes.load(std::memory_order_relaxed)};
    };
    PeerFigures figures;
    read(sent_, figures.sent);
    read(received_, figures.received);
    figures.packed = packed_.load(std::memory_order_relaxed);
    figures.over_rails = over_rails_.load(std::memory_order_relaxed);
    figures.switches = switches_.load(std::memory_order_relaxed);
    figures.copying_ns = copying_ns_.load(std::memory_order_relaxed);
    figures.under_way_ns = under_way_ns_.load(std::memory_order_relaxed);
    for (const Latest& latest : latest_)
        if (const char* const because = latest.because.load(std::memory_order_relaxed))
            figures.in_use = {latest.way.load(std::memory_order_relaxed), because};
    return figures;
}

void PeerAccount::add(const PeerFigures& figures) {
    for (std::size_t i = 0; i < ways; ++i) {
        const auto add_to = [i](Cells& cells, const std::array<PeerFigures::Count, ways>& counts) {
            cells[i].messages.fetch_add(counts[i].messages, std::memory_order_relaxed);
            cells[i].bytes.fetch_add(counts[i].bytes, std::memory_order_relaxed);
        };
        add_to(sent_, figures.sent);
        add_to(received_, figures.received);
    }
    packed_.fetch_add(figures.packed, std::memory_order_relaxed);
    over_rails_.fetch_add(figures.over_rails, std::memory_order_relaxed);
    switches_.fetch_add(figures.switches, std::memory_order_relaxed);
    copying_ns_.fetch_add(figures.copying_ns, std::memory_order_relaxed);
    under_way_ns_.fetch_add(figures.under_way_ns, std::memory_order_relaxed);
}

PeerAccounts::PeerAccounts(std::vector<bool> is_near)
    : is_near_(std::move(is_near)), by_rank_(is_near_.size()) {}

PeerAccount& PeerAccounts::of(int peer) noexcept {
    std::atomic<Number>& known = by_rank_[static_cast<std::size_t>(peer)];
    // Pairs with the store below: the account is made when its number is seen.
    if (const std::size_t number = known.load(std::memory_order_acquire)) return numbered(number);
    const std::lock_guard lock(mutex_);
    std::size_t number = known.load(std::memory_order_relaxed);
    if (number != 0) return numbered(number);
    if (apart_ < most_apart && (own_[apart_] = std::unique_ptr<Own>(new (std::nothrow) Own(peer)))) {
        number = ++apart_;
    } else {
        number = most_apart + 1 + place_of(peer);
        ++shared_[place_of(peer)].peers;
    }
    known.store(static_cast<Number>(number), std::memory_order_release);
    return numbered(number);
}

std::vector<PeerAccounts::Row> PeerAccounts::rows() const {
    const std::lock_guard lock(mutex_);
    std::vector<Row> rows;
    const auto add = [&rows](int peer, bool inside, std::uint64_t peers, const PeerAccount& account) {
        PeerFigures figures = account.figures();
        if (figures.messages() != 0) rows.push_back({peer, inside, peers, figures});
    };
    for (std::size_t i = 0; i < apart_; ++i)
        add(own_[i]->peer, place_of(own_[i]->peer) != 0, 1, own_[i]->account);
    for (const bool inside : {false, true}) add(-1, inside, shared_[inside].peers, shared_[inside].account);
    return rows;
}

void PeerAccounts::fold(const PeerAccounts& other, std::uint64_t time_ns) {
    const std::vector<Row> rows = other.rows();
    const std::lock_guard lock(mutex_);
    folded_wire_ns_.fetch_add(other.wire_ns(time_ns), std::memory_order_relaxed);
    if (other.wire_is_measured()) measures_wire();
    for (const Row& row : rows) {
        shared_[row.inside].account.add(row.figures);
        shared_[row.inside].peers += row.peers;
    }
}

}  // namespace thalweg
