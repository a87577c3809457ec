#include "plan/raised_on.h"

#include <mutex>
#include <utility>

#include "plan/attendance.h"
#include "plan/private_comm.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// MPI calls a handler by way of a communicator that has it. This one is not freed here: the handler may have
// done that, or never return.
MPI_Comm stand_in_with(MPI_Errhandler handler) {
    static constinit std::mutex one_at_a_time;
    const Host& mpi = *host();
    if (Attendance::self() == mpi.comm_null) return mpi.comm_world;
    MPI_Comm own;
    {
        const std::lock_guard lock(one_at_a_time);
        if (!make_private(Attendance::self(), own)) return mpi.comm_world;
    }
    return mpi.Comm_set_errhandler(own, handler) == MPI_SUCCESS ? own : mpi.comm_world;
}

}  // namespace

RaisedOn::RaisedOn(MPI_Comm comm, std::shared_ptr<const CommunicatorRecord> record, bool lasting)
    : comm_(comm), record_(std::move(record)) {
    has_handler_ = lasting && host()->Comm_get_errhandler(comm, &handler_) == MPI_SUCCESS;
}

RaisedOn::RaisedOn(RaisedOn&& other) noexcept { *this = std::move(other); }

RaisedOn& RaisedOn::operator=(RaisedOn&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(record_, other.record_);
    std::swap(handler_, other.handler_);
    std::swap(has_handler_, other.has_handler_);
    return *this;
}

RaisedOn::~RaisedOn() {
    if (has_handler_) host()->Errhandler_free(&handler_);
}

MPI_Comm RaisedOn::where() const {
    if (record_ != nullptr && !record_->freed.load(std::memory_order_acquire)) return comm_;
    return has_handler_ ? stand_in_with(handler_) : host()->comm_world;
}

}  // namespace thalweg
