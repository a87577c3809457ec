// Memory that stands for elements elsewhere: a message from or to it is one from or to bytes of the packed
// form of these, so that strided faces travel without being packed where a transport can do better.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "layout/layout.h"

namespace thalweg {

// `memory` is the transport's to pack into, or to leave alone.
struct StandIn {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    std::shared_ptr<const Layout> layout;
    std::byte* elements = nullptr;  // what the layout's offsets count from
    bool lasting = false;           // for so many messages that it is worth finding out what memory that is

    // Where the packed form is one run of memory; else null.
    std::byte* run() const {
        return layout->is_one_run(layout->size() == 0 ? 0 : bytes / layout->size())
                   ? elements + layout->true_lb()
                   : nullptr;
    }
};

// Part of one: `bytes` bytes of the message that begins `begin` bytes behind its first.
struct StandInPart {
    const StandIn* whole = nullptr;  // null: the memory is what it is
    std::uint64_t begin = 0;

    explicit operator bool() const { return whole != nullptr; }
    void load(std::byte* to, std::uint64_t offset, std::uint64_t bytes) const {
        whole->layout->pack(to, whole->elements, begin + offset, begin + offset + bytes);
    }
    void store(std::uint64_t offset, const std::byte* from, std::uint64_t bytes) const {
        whole->layout->unpack(whole->elements, from, begin + offset, begin + offset + bytes);
    }
};

// Those of one channel. Their addresses never change.
class StandIns {
  public:
    // Throws std::bad_alloc. Pre: it does not overlap another.
    void add(StandIn added) { all_.emplace(added.memory, std::move(added)); }
    void remove(const std::byte* memory) { all_.erase(memory); }
    // What `bytes` bytes at `data` are part of. Nothing where they are what they are, or stand for one run of
    // memory, which is what `data` is then.
    StandInPart resolve(void*& data, std::size_t bytes) const {
        // What has no bytes may begin where another one's memory does.
        if (bytes == 0 || all_.empty()) return {};
        auto* const first = static_cast<std::byte*>(data);
        auto found = all_.upper_bound(first);
        if (found == all_.begin()) return {};
        const StandIn& whole = (--found)->second;
        const auto begin = static_cast<std::size_t>(first - whole.memory);
        if (begin > whole.bytes || bytes > whole.bytes - begin) return {};
        if (std::byte* const run = whole.run()) {
            data = run + begin;
            return {};
        }
        return {&whole, begin};
    }

  private:
    std::map<const std::byte*, StandIn> all_;
};

}  // namespace thalweg
