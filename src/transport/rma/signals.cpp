#include "transport/rma/signals.h"

namespace thalweg {

Signals::~Signals() {
    for (MPI_Request& request : sends_) mpi_.Request_free(&request);
    for (MPI_Request& request : receives_) mpi_.Request_free(&request);
}

int Signals::make(MPI_Comm comm, int send_tag, std::span<const int> to, int receive_tag,
                  std::span<const int> from) {
    sends_.reserve(to.size());
    receives_.reserve(from.size());
    heard_.resize(from.size());
    for (const int peer : to) {
        MPI_Request request;
        const int error = mpi_.Send_init(nullptr, 0, mpi_.byte, peer, send_tag, comm, &request);
        if (error != MPI_SUCCESS) return error;
        sends_.push_back(request);
    }
    for (const int peer : from) {
        MPI_Request request;
        const int error = mpi_.Recv_init(nullptr, 0, mpi_.byte, peer, receive_tag, comm, &request);
        if (error != MPI_SUCCESS) return error;
        receives_.push_back(request);
    }
    return MPI_SUCCESS;
}

int Signals::listen() {
    missing_ = receives_.size();
    if (receives_.empty()) return MPI_SUCCESS;
    return mpi_.Startall(static_cast<int>(receives_.size()), receives_.data());
}

int Signals::send(int i) { return mpi_.Start(&sends_[static_cast<std::size_t>(i)]); }

int Signals::send_all() {
    if (sends_.empty()) return MPI_SUCCESS;
    return mpi_.Startall(static_cast<int>(sends_.size()), sends_.data());
}

int Signals::hear(bool blocks, std::span<const int>& heard) {
    heard = {};
    if (missing_ == 0) return MPI_SUCCESS;
    int count = 0;
    const auto call = blocks ? mpi_.Waitsome : mpi_.Testsome;
    const int error = call(static_cast<int>(receives_.size()), receives_.data(), &count, heard_.data(),
                           MPI_STATUSES_IGNORE);
    if (error != MPI_SUCCESS) return error;
    if (count == MPI_UNDEFINED) count = 0;
    missing_ -= static_cast<std::size_t>(count);
    heard = {heard_.data(), static_cast<std::size_t>(count)};
    return MPI_SUCCESS;
}

int Signals::flush(bool blocks, bool& done) {
    done = true;
    if (sends_.empty()) return MPI_SUCCESS;
    const int count = static_cast<int>(sends_.size());
    if (blocks) return mpi_.Waitall(count, sends_.data(), MPI_STATUSES_IGNORE);
    int flag = 0;
    const int error = mpi_.Testall(count, sends_.data(), &flag, MPI_STATUSES_IGNORE);
    done = flag != 0;
    return error;
}

}  // namespace thalweg
