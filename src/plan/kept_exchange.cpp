#include "plan/kept_exchange.h"

#include <algorithm>
#include <utility>

namespace thalweg {
namespace {

bool told_apart(const std::vector<Letter>& letters) {
    return std::all_of(letters.begin(), letters.end(), [](const Letter& letter) {
        return letter.where.count == 0 || letter.type_identity != 0;
    });
}

}  // namespace

// Behind MPI_BOTTOM, which is no address, each message may be somewhere else.
bool ExchangeView::repeatable() const {
    return call.has_letters() && !call.persistent && !shape.in_place && call.send != nullptr &&
           call.receive != nullptr && told_apart(shape.letters.outgoing) &&
           told_apart(shape.letters.incoming);
}

bool ExchangeView::operator==(const ExchangeKey& key) const {
    return key.kind == call.kind && key.send == call.send && key.receive == call.receive &&
           key.generation == generation && key.slot_bytes == slot_bytes && key.in_pairs == in_pairs &&
           key.letters == shape.letters && key.choice == choice;
}

std::unique_ptr<Ongoing> take_kept(const std::shared_ptr<Lane>& lane, const ExchangeView& view) {
    std::unique_ptr<Ongoing> kept =
        lane->take_kept([&](Ongoing& each) { return view == *each.options().kept_as; });
    // Else it is destroyed, and gives back what it has.
    if (kept != nullptr && !kept->resume(lane)) kept.reset();
    return kept;
}

}  // namespace thalweg
