// A group's ranks as ranks of a communicator that holds it: a rule where they lie at equal distances, as
// rows, columns and the world itself do, and a table of 4 bytes per rank where they do not. Copies share it.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace thalweg {

class RankMap {
  public:
    // The identity, until something is appended.
    RankMap() = default;
    // Adds the place of the next rank. Pre: there are no copies. Throws std::bad_alloc.
    void append(int place) {
        if (table_ == nullptr && (size_ < 2 || place == first_ + stride_ * size_)) {
            if (size_ == 0) first_ = place;
            if (size_ == 1) stride_ = place - first_;
        } else {
            if (table_ == nullptr) {
                auto table = std::make_shared<std::vector<int>>(static_cast<std::size_t>(size_));
                for (int rank = 0; rank < size_; ++rank)
                    (*table)[static_cast<std::size_t>(rank)] = (*this)[rank];
                table_ = std::move(table);
            }
            table_->push_back(place);
        }
        ++size_;
    }
    // Each rank has its own number there.
    bool is_identity() const { return table_ == nullptr && first_ == 0 && (size_ < 2 || stride_ == 1); }
    int operator[](int rank) const {
        return table_ == nullptr ? first_ + stride_ * rank : (*table_)[static_cast<std::size_t>(rank)];
    }

  private:
    int first_ = 0, stride_ = 1;
    int size_ = 0;  // ranks appended
    std::shared_ptr<std::vector<int>> table_;
};

}  // namespace thalweg
