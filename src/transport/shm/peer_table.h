// The peers of a port by their process: asked at every post, so one look finds them, mostly. They stay as
// long as the port. With the port's lock held.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace thalweg::shm {

struct Peer;

class PeerTable {
  public:
    // Null: it has none of this process.
    Peer* find(std::uint32_t process) const {
        const Entry* entry = &entries_[place_of(process, entries_.size())];
        while (entry->peer != nullptr && entry->process != process) entry = after(entry);
        return entry->peer;
    }
    // Room for one more. Throws std::bad_alloc; then nothing has changed.
    void reserve() {
        if (2 * (count_ + 1) <= entries_.size()) return;
        std::vector<Entry> more(2 * entries_.size());
        more.swap(entries_);
        for (const Entry& entry : more)
            if (entry.peer != nullptr) put(entry);
    }
    // Pre: reserve() has made room; it has none of this process.
    void add(std::uint32_t process, Peer& peer) {
        put({process, &peer});
        ++count_;
    }

  private:
    struct Entry {
        std::uint32_t process = 0;
        Peer* peer = nullptr;  // null: free
    };
    // By the golden ratio: processes of a host are often at equal distances.
    static std::size_t place_of(std::uint32_t process, std::size_t places) {
        return process * std::uint64_t{0x9e3779b97f4a7c15} >> (64 - std::countr_zero(places));
    }
    const Entry* after(const Entry* entry) const {
        return entry == &entries_.back() ? entries_.data() : entry + 1;
    }
    void put(const Entry& entry) {
        const Entry* at = &entries_[place_of(entry.process, entries_.size())];
        while (at->peer != nullptr) at = after(at);
        entries_[static_cast<std::size_t>(at - entries_.data())] = entry;
    }

    std::vector<Entry> entries_ = std::vector<Entry>(16);  // a power of two, half of them free
    std::size_t count_ = 0;
};

}  // namespace thalweg::shm
