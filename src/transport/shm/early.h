// Memory for messages that come before their receives, in blocks whose sizes are powers of two. Those that
// plans expect are there beforehand, so that nothing is taken from the heap while plans run.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <new>

#include "transport/shm/wire.h"

namespace thalweg::shm {

// Blocks of up to payload_bytes.
class EarlyRoom {
  public:
    EarlyRoom() = default;
    EarlyRoom(const EarlyRoom&) = delete;
    EarlyRoom& operator=(const EarlyRoom&) = delete;
    // Pre: every block has been given back.
    ~EarlyRoom() {
        for (Size& size : sizes_)
            while (size.free != nullptr) drop(size);
    }

    // From now on `count` more of these are there; without memory they are taken when they are needed.
    void expect(std::size_t bytes, std::size_t count) {
        Size& size = size_of(bytes);
        size.expected += count;
        try {
            while (size.all < size.expected) add(size, block_bytes(bytes));
        } catch (const std::bad_alloc&) {
        }
    }
    void forgo(std::size_t bytes, std::size_t count) {
        Size& size = size_of(bytes);
        size.expected -= count;
        while (size.free != nullptr && is_too_much(size, bytes)) drop(size);
    }
    // Throws std::bad_alloc where there is none left.
    std::byte* take(std::size_t bytes) {
        Size& size = size_of(bytes);
        if (size.free == nullptr) add(size, block_bytes(bytes));
        Free* const block = size.free;
        size.free = block->next;
        return reinterpret_cast<std::byte*>(block);
    }
    // `bytes`: as it was taken.
    void give_back(std::byte* block, std::size_t bytes) {
        Size& size = size_of(bytes);
        size.free = new (block) Free{size.free};
        if (is_too_much(size, bytes)) drop(size);
    }

  private:
    static constexpr std::size_t least_bytes = 64;
    // Of each size, kept beyond what is expected: as much as the shortest ring holds.
    static constexpr std::size_t spare_bytes = ring_bytes;

    struct Free {
        Free* next;
    };
    struct Size {
        Free* free = nullptr;
        std::size_t all = 0, expected = 0;  // blocks
    };

    static std::size_t block_bytes(std::size_t bytes) { return std::bit_ceil(std::max(bytes, least_bytes)); }
    Size& size_of(std::size_t bytes) { return sizes_[std::bit_width(block_bytes(bytes) / least_bytes) - 1]; }
    static bool is_too_much(const Size& size, std::size_t bytes) {
        return size.all > size.expected + spare_bytes / block_bytes(bytes);
    }
    static void add(Size& size, std::size_t bytes) {
        size.free = new (::operator new(bytes)) Free{size.free};
        ++size.all;
    }
    static void drop(Size& size) {
        Free* const block = size.free;
        size.free = block->next;
        --size.all;
        ::operator delete(block);
    }

    std::array<Size, std::bit_width(payload_bytes / least_bytes)> sizes_{};
};

}  // namespace thalweg::shm
