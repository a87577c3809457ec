// Those of a kind that are alive, of which each leaves in O(1), whichever goes first: a program may have tens
// of thousands of communicators. With a lock of the user's held.
#pragma once

namespace thalweg {

template <typename Thing>
class Living {
  public:
    // Of one of them, which owns it.
    class Place {
      public:
        explicit Place(Thing& thing) : thing_(thing) {}
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;

      private:
        friend class Living;
        Thing& thing_;
        Place* next_ = nullptr;
        Place** link_ = nullptr;  // what points to this
    };

    constexpr Living() = default;
    Living(const Living&) = delete;
    Living& operator=(const Living&) = delete;

    void enter(Place& place) {
        place.next_ = first_;
        place.link_ = &first_;
        if (first_ != nullptr) first_->link_ = &place.next_;
        first_ = &place;
    }
    // Pre: it has entered.
    static void leave(Place& place) {
        *place.link_ = place.next_;
        if (place.next_ != nullptr) place.next_->link_ = place.link_;
    }
    // The youngest first.
    template <typename Action>
    void for_each(Action action) {
        for (Place* place = first_; place != nullptr; place = place->next_) action(place->thing_);
    }

  private:
    Place* first_ = nullptr;
};

}  // namespace thalweg
