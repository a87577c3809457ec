// How any thread wakes the one that sleeps: a word that counts rings, on a cache line of its own so that an
// instruction can watch it, and a descriptor for sleeps that only a descriptor can end.
#pragma once

#include <atomic>
#include <cstdint>

namespace thalweg {

class Doorbell {
  public:
    Doorbell() = default;
    ~Doorbell();
    Doorbell(const Doorbell&) = delete;
    Doorbell& operator=(const Doorbell&) = delete;

    // By any thread. One atomic addition where the sleeper is awake or watches the word, else one system
    // call.
    void ring();

    // The sleeper's side: one thread. Read the count, look for work, then sleep on that count; a ring in
    // between makes the sleep return at once.
    std::uint32_t rings() const { return word_.load(std::memory_order_seq_cst); }
    const std::atomic<std::uint32_t>& word() const { return word_; }
    // Sleeps until the count is not `seen` or until_ns (CLOCK_MONOTONIC) has come; may return early.
    void sleep_on_word(std::uint32_t seen, std::uint64_t until_ns);

    // For a sleep on descriptors: the bell's own (made at the first call, closed on exec; -1 where the system
    // has none left), which is readable when it rang between announce() and answered(). announce() says
    // false, and no answered() is due, where the count is not `seen` any more.
    int descriptor();
    bool announce(std::uint32_t seen);
    void answered();

  private:
    enum Sleep : std::uint32_t { awake, on_word, on_descriptor };
    bool lie_down(Sleep how, std::uint32_t seen);

    alignas(64) std::atomic<std::uint32_t> word_{0};
    alignas(64) std::atomic<std::uint32_t> sleep_{awake};
    int descriptor_ = -1;
};

inline constexpr std::uint64_t never_ns = UINT64_MAX;

}  // namespace thalweg
