// A group's ranks as ranks of a communicator that holds it: a rule where they lie at equal distances, as
// rows, columns and the world itself do, and a table of 4 bytes per rank where they do not.
#pragma once

#include <vector>

namespace thalweg {

class RankMap {
  public:
    // The identity, until something is appended.
    RankMap() = default;
    // Adds the place of the next rank; Throws std::bad_alloc.
    void append(int place) {
        if (table_.empty() && (size_ < 2 || place == first_ + stride_ * size_)) {
            if (size_ == 0) first_ = place;
            if (size_ == 1) stride_ = place - first_;
        } else {
            if (table_.empty()) {
                std::vector<int> table(static_cast<std::size_t>(size_));
                for (int rank = 0; rank < size_; ++rank)
                    table[static_cast<std::size_t>(rank)] = (*this)[rank];
                table_.swap(table);
            }
            table_.push_back(place);
        }
        ++size_;
    }
    // Each rank has its own number there.
    bool is_identity() const { return table_.empty() && first_ == 0 && (size_ < 2 || stride_ == 1); }
    int operator[](int rank) const {
        return table_.empty() ? first_ + stride_ * rank : table_[static_cast<std::size_t>(rank)];
    }

  private:
    int first_ = 0, stride_ = 1;
    int size_ = 0;  // ranks appended
    std::vector<int> table_;
};

}  // namespace thalweg
