// Epochs of post, start, complete, wait over the real peers. Each target says when it has posted, so that
// MPI_Win_start never has to wait for one that has not. It is called once all have: MPICH 5.0.2 and Intel MPI
// 2021.18 count the posts without asking whose they are, and wait for ever in a start for some of the targets
// while others have posted too.
#include "transport/rma/ways.h"

namespace thalweg {
PostStartEpoch::PostStartEpoch(const Host& mpi, EpochPlan plan)
    : Epoch(mpi, std::move(plan)), signals_(mpi) {}

PostStartEpoch::~PostStartEpoch() {
    for (std::optional<MPI_Group>* const made : {&sources_, &targets_})
        if (*made) mpi_.Group_free(&**made);
}

int PostStartEpoch::make() {
    const std::vector<int> sources = peers_of(plan_.receives), targets = peers_of(plan_.sends);
    MPI_Group all;
    int error = mpi_.Comm_group(plan_.comm, &all);
    if (error != MPI_SUCCESS) return error;
    const auto include = [&](const std::vector<int>& peers, std::optional<MPI_Group>& group) {
        if (error != MPI_SUCCESS || peers.empty()) return;
        MPI_Group made;
        error = mpi_.Group_incl(all, static_cast<int>(peers.size()), peers.data(), &made);
        if (error == MPI_SUCCESS) group = made;
    };
    include(sources, sources_);
    include(targets, targets_);
    mpi_.Group_free(&all);
    if (error != MPI_SUCCESS) return error;
    return signals_.make(plan_.comm, plan_.tag, sources, plan_.tag, targets);
}

int PostStartEpoch::start() {
    int error = signals_.listen();
    if (!plan_.receives.empty()) {
        if (error == MPI_SUCCESS) error = mpi_.Win_post(*sources_, 0, plan_.window);
        exposed_ = error == MPI_SUCCESS;
    }
    if (error == MPI_SUCCESS) error = signals_.send_all();
    return error;
}

int PostStartEpoch::advance(bool blocks) {
    std::span<const int> ready;
    int error = signals_.hear(blocks, ready);
    if (error != MPI_SUCCESS || ready.empty() || !signals_.heard_all()) return error;
    error = mpi_.Win_start(*targets_, 0, plan_.window);
    for (const Transfer& send : plan_.sends)
        if (error == MPI_SUCCESS) error = put(send);
    if (error == MPI_SUCCESS) error = mpi_.Win_complete(plan_.window);
    return error;
}

int PostStartEpoch::test(bool& done) {
    done = false;
    int error = advance(false);
    if (error != MPI_SUCCESS) return error;
    if (exposed_) {
        int flag = 0;
        error = mpi_.Win_test(plan_.window, &flag);
        if (error != MPI_SUCCESS) return error;
        exposed_ = flag == 0;
    }
    if (exposed_ || !signals_.heard_all()) return MPI_SUCCESS;
    return signals_.flush(false, done);
}

int PostStartEpoch::wait() {
    while (!signals_.heard_all())
        if (const int error = advance(true); error != MPI_SUCCESS) return error;
    if (exposed_) {
        if (const int error = mpi_.Win_wait(plan_.window); error != MPI_SUCCESS) return error;
        exposed_ = false;
    }
    bool done = false;
    return signals_.flush(true, done);
}

}  // namespace thalweg
