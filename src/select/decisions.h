// The decisions of one selector, each made once: a program whose sizes vary from call to call meets a few
// hundred classes of them, and a call that meets a known one costs a look-up.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "select/select.h"

namespace thalweg {

// For one thread at a time.
class Decisions {
  public:
    explicit Decisions(std::shared_ptr<const Selector> selector);

    // As Selector::decide(). Valid until the next call. Throws std::bad_alloc.
    const Decision& of(std::uint64_t bytes);

    const Selector& selector() const { return *selector_; }

    // Selector::native_below() says so.
    bool leaves_all_native() const { return selector_->native_below() == ~std::uint64_t{0}; }

    // How many are kept.
    std::size_t kept() const { return by_class_.size(); }

  private:
    std::shared_ptr<const Selector> selector_;
    std::unordered_map<std::uint64_t, Decision> by_class_;
};

}  // namespace thalweg
