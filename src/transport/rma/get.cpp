// Epochs in which the receiver fetches. The sender says that its data is there; the receiver says that it has
// them, and only then the sender's buffer is its own again. Nobody waits inside MPI_Start or MPI_Test.
#include <algorithm>

#include "transport/rma/ways.h"

namespace thalweg {
GetEpoch::GetEpoch(const Host& mpi, EpochPlan plan) : Epoch(mpi, std::move(plan)), ready_(mpi), taken_(mpi) {}

int GetEpoch::make() {
    const std::vector<int> sources = peers_of(plan_.receives), targets = peers_of(plan_.sends);
    first_piece_.push_back(0);
    for (const Transfer& receive : plan_.receives)
        first_piece_.push_back(first_piece_.back() + (receive.bytes + largest_piece - 1) / largest_piece);
    gets_.assign(first_piece_.back(), mpi_.request_null);
    finished_.resize(gets_.size());
    pieces_left_.resize(sources.size());
    int error = ready_.make(plan_.comm, plan_.tag, targets, plan_.tag, sources);
    if (error == MPI_SUCCESS) error = taken_.make(plan_.comm, plan_.tag + 1, sources, plan_.tag + 1, targets);
    return error;
}

// Nobody ever asks for an exclusive lock on this window.
int GetEpoch::open() { return mpi_.Win_lock_all(MPI_MODE_NOCHECK, plan_.window); }
int GetEpoch::close() { return mpi_.Win_unlock_all(plan_.window); }

int GetEpoch::start() {
    for (std::size_t i = 0; i < pieces_left_.size(); ++i)
        pieces_left_[i] = first_piece_[i + 1] - first_piece_[i];
    sources_left_ = pieces_left_.size();
    int error = ready_.listen();
    if (error == MPI_SUCCESS) error = taken_.listen();
    // What the program stored in its send buffer is what a get shall see.
    if (error == MPI_SUCCESS) error = mpi_.Win_sync(plan_.window);
    if (error == MPI_SUCCESS) error = ready_.send_all();
    return error;
}

int GetEpoch::fetch(std::span<const int> which) {
    for (const int source : which) {
        const auto i = static_cast<std::size_t>(source);
        const Transfer& receive = plan_.receives[i];
        for (std::size_t piece = first_piece_[i]; piece < first_piece_[i + 1]; ++piece) {
            const std::uint64_t at = (piece - first_piece_[i]) * largest_piece;
            const int count = static_cast<int>(std::min(receive.bytes - at, largest_piece));
            const int error = mpi_.Rget(plan_.out + receive.offset + at, count, mpi_.byte, receive.peer,
                                        receive.there + static_cast<MPI_Aint>(at), count, mpi_.byte,
                                        plan_.window, &gets_[piece]);
            if (error != MPI_SUCCESS) return error;
        }
    }
    return MPI_SUCCESS;
}

// One step: hears who is ready, fetches from them, tells those whose data are here. blocks: waits until
// something of this happens, where something is missing.
int GetEpoch::advance(bool blocks) {
    std::span<const int> heard;
    // Gets that are under way must go on while a sender is waited for: so waits only where there are none.
    const bool none_under_way =
        std::all_of(gets_.begin(), gets_.end(), [this](MPI_Request get) { return get == mpi_.request_null; });
    int error = ready_.hear(blocks && none_under_way, heard);
    if (error == MPI_SUCCESS) error = fetch(heard);
    if (error != MPI_SUCCESS || sources_left_ == 0) return error;
    int count = 0;
    const auto call = blocks && ready_.heard_all() ? mpi_.Waitsome : mpi_.Testsome;
    error = call(static_cast<int>(gets_.size()), gets_.data(), &count, finished_.data(), MPI_STATUSES_IGNORE);
    if (error != MPI_SUCCESS || count == MPI_UNDEFINED) return error;
    for (int n = 0; error == MPI_SUCCESS && n < count; ++n) {
        const auto piece = static_cast<std::size_t>(finished_[static_cast<std::size_t>(n)]);
        const auto after = std::upper_bound(first_piece_.begin(), first_piece_.end(), piece);
        const auto source = static_cast<std::size_t>(after - first_piece_.begin()) - 1;
        if (--pieces_left_[source] != 0) continue;
        --sources_left_;
        error = taken_.send(static_cast<int>(source));
    }
    return error;
}

// Whether a peer that has not said so yet is fetching from here nobody knows.
bool GetEpoch::moves() const {
    return !taken_.heard_all() || std::any_of(gets_.begin(), gets_.end(),
                                              [this](MPI_Request get) { return get != mpi_.request_null; });
}

int GetEpoch::test(bool& done) {
    done = false;
    int error = advance(false);
    std::span<const int> heard;
    if (error == MPI_SUCCESS) error = taken_.hear(false, heard);
    if (error != MPI_SUCCESS || sources_left_ != 0 || !taken_.heard_all()) return error;
    bool sent = false;
    error = ready_.flush(false, done);
    if (error == MPI_SUCCESS) error = taken_.flush(false, sent);
    done = done && sent;
    return error;
}

int GetEpoch::wait() {
    while (sources_left_ != 0)
        if (const int error = advance(true); error != MPI_SUCCESS) return error;
    std::span<const int> heard;
    while (!taken_.heard_all())
        if (const int error = taken_.hear(true, heard); error != MPI_SUCCESS) return error;
    bool done = false;
    int error = ready_.flush(true, done);
    if (error == MPI_SUCCESS) error = taken_.flush(true, done);
    return error;
}

}  // namespace thalweg
