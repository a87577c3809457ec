// Things by number: the place of one that has gone is given to the next.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace thalweg::sim {

template <typename Thing>
class Places {
  public:
    using Number = std::uint32_t;

    // References to things end with the next keep().
    Number keep(Thing thing) {
        if (free_.empty()) {
            things_.push_back(std::move(thing));
            return static_cast<Number>(things_.size() - 1);
        }
        const Number number = free_.back();
        free_.pop_back();
        things_[number] = std::move(thing);
        return number;
    }
    Thing take(Number number) {
        free_.push_back(number);
        return std::exchange(things_[number], Thing());
    }
    Thing& operator[](Number number) { return things_[number]; }

  private:
    std::vector<Thing> things_;
    std::vector<Number> free_;
};

}  // namespace thalweg::sim
