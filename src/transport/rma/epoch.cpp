#include "transport/rma/epoch.h"

#include <algorithm>
#include <cstdio>

#include "transport/rma/ways.h"

namespace thalweg {

int Epoch::put(const Transfer& transfer) const {
    for (std::uint64_t at = 0; at < transfer.bytes; at += largest_piece) {
        const int count = static_cast<int>(std::min(transfer.bytes - at, largest_piece));
        const int error =
            mpi_.Put(plan_.in + transfer.offset + at, count, mpi_.byte, transfer.peer,
                     transfer.there + static_cast<MPI_Aint>(at), count, mpi_.byte, plan_.window);
        if (error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
}

std::vector<int> peers_of(const std::vector<Transfer>& transfers) {
    std::vector<int> peers;
    for (const Transfer& transfer : transfers) peers.push_back(transfer.peer);
    return peers;
}

bool misplaces_windows(const Host& mpi) {
    int major = 0, minor = 0;
    return std::sscanf(mpi.library_version, "MPICH Version: %d.%d", &major, &minor) == 2 &&
           (major < 4 || (major == 4 && minor == 0));
}

bool has_windows(const Host& mpi) {
    return !misplaces_windows(mpi) && mpi.Barrier && mpi.Put && mpi.Rget && mpi.Send_init && mpi.Start &&
           mpi.Startall && mpi.Testall && mpi.Waitall && mpi.Waitsome && mpi.Win_complete && mpi.Win_create &&
           mpi.Win_fence && mpi.Win_free && mpi.Win_lock && mpi.Win_lock_all && mpi.Win_post &&
           mpi.Win_set_errhandler && mpi.Win_start && mpi.Win_sync && mpi.Win_test && mpi.Win_unlock &&
           mpi.Win_unlock_all && mpi.Win_wait;
}

std::unique_ptr<Epoch> make_epoch(const Host& mpi, EpochWay way, EpochPlan plan, int& error) {
    error = MPI_SUCCESS;
    switch (way) {
        case EpochWay::fence:
            return std::make_unique<FenceEpoch>(mpi, std::move(plan));
        case EpochWay::lock:
            return std::make_unique<LockEpoch>(mpi, std::move(plan));
        case EpochWay::pscw: {
            auto epoch = std::make_unique<PostStartEpoch>(mpi, std::move(plan));
            error = epoch->make();
            if (error != MPI_SUCCESS) return nullptr;
            return epoch;
        }
        case EpochWay::get: {
            auto epoch = std::make_unique<GetEpoch>(mpi, std::move(plan));
            error = epoch->make();
            if (error != MPI_SUCCESS) return nullptr;
            return epoch;
        }
    }
    return nullptr;
}

}  // namespace thalweg
