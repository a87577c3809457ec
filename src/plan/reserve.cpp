#include "plan/reserve.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

namespace thalweg {
namespace {

// In front of every piece, free or taken; as large as the alignment that malloc guarantees.
struct alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) Piece {
    std::size_t bytes;  // this header included
    Piece* next;        // the next free one, by address
};

// Always there: enough for a rank to tell the others that it has nothing else.
constexpr std::size_t own_bytes = 64u << 10;
alignas(Piece) std::byte own[own_bytes];

constinit std::mutex mutex;
constinit bool own_is_listed = false;
constinit Piece* free_pieces = nullptr;
constinit std::atomic<std::uintptr_t> first_byte{0};  // of what was set aside; 0: not open
constinit std::atomic<std::size_t> taken{0};
constinit std::atomic<std::size_t> held_for_long{0};  // of these, by nothing that can be given up

bool within(const void* memory, std::uintptr_t first, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(memory) - first < bytes;
}
bool holds(const void* memory) {
    const std::uintptr_t first = first_byte.load(std::memory_order_acquire);
    return (first != 0 && within(memory, first, reserve_bytes)) ||
           within(memory, reinterpret_cast<std::uintptr_t>(own), own_bytes);
}

void join_with_next(Piece* piece) {
    Piece* const next = piece->next;
    if (reinterpret_cast<std::byte*>(piece) + piece->bytes != reinterpret_cast<std::byte*>(next)) return;
    piece->bytes += next->bytes;
    piece->next = next->next;
}

// Pre: mutex is held. Not inlined: the compiler sees pieces end where `own` does, and warns of what lies
// behind.
[[gnu::noinline]] void list_piece(void* memory, std::size_t bytes) {
    auto* const piece = static_cast<Piece*>(memory);
    Piece* before = nullptr;
    Piece** link = &free_pieces;
    while (*link != nullptr && *link < piece) {
        before = *link;
        link = &before->next;
    }
    *piece = {bytes, *link};
    *link = piece;
    if (piece->next != nullptr) join_with_next(piece);
    if (before != nullptr) join_with_next(before);
}

// First fit. Null: no piece is large enough.
void* take(std::size_t wanted) {
    if (wanted > reserve_bytes) return nullptr;
    const std::size_t bytes = sizeof(Piece) + (wanted + sizeof(Piece) - 1) / sizeof(Piece) * sizeof(Piece);
    std::lock_guard lock(mutex);
    if (!own_is_listed) list_piece(own, own_bytes);
    own_is_listed = true;
    for (Piece** link = &free_pieces; *link != nullptr; link = &(*link)->next) {
        Piece* const piece = *link;
        if (piece->bytes < bytes) continue;
        if (piece->bytes == bytes) {
            *link = piece->next;
        } else {
            auto* const rest = reinterpret_cast<Piece*>(reinterpret_cast<std::byte*>(piece) + bytes);
            *rest = {piece->bytes - bytes, piece->next};
            *link = rest;
            piece->bytes = bytes;
        }
        taken.fetch_add(bytes, std::memory_order_relaxed);
        return piece + 1;
    }
    return nullptr;
}

void put_back(void* memory) {
    Piece* const piece = static_cast<Piece*>(memory) - 1;
    std::lock_guard lock(mutex);
    taken.fetch_sub(piece->bytes, std::memory_order_relaxed);
    list_piece(piece, piece->bytes);
}

}  // namespace

bool open_reserve() {
    std::lock_guard lock(mutex);
    if (first_byte.load(std::memory_order_relaxed) != 0) return true;
    void* const memory = mmap(nullptr, reserve_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    list_piece(memory, reserve_bytes);
    first_byte.store(reinterpret_cast<std::uintptr_t>(memory), std::memory_order_release);
    return true;
}

std::size_t reserve_in_use() { return taken.load(std::memory_order_relaxed); }

bool reserve_has_room() { return reserve_in_use() <= reserve_bytes / 2; }

bool reserve_is_kept() {
    const std::size_t now = reserve_in_use(), for_long = held_for_long.load(std::memory_order_relaxed);
    if (now < for_long) held_for_long.store(now, std::memory_order_relaxed);
    return now > for_long;
}

void reserve_was_relieved() { held_for_long.store(reserve_in_use(), std::memory_order_relaxed); }

}  // namespace thalweg

// For everything inside this object, the C++ library included, and for nothing outside it: neither is
// exported.
void* operator new(std::size_t bytes) {
    if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
    if (void* const memory = thalweg::take(bytes)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    if (thalweg::holds(memory))
        thalweg::put_back(memory);
    else
        std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
