// Where an error of a request is raised: on the communicator that the request was made on (MPI-4, 9.3), whose
// handle the program may have freed by then.
#pragma once

#include <mpi.h>

#include <memory>

#include "plan/statistics.h"

namespace thalweg {

class RaisedOn {
  public:
    // On the world.
    RaisedOn() = default;
    // In the call that makes the request, on `comm`, whose record says when it is freed. `lasting`: for after
    // that, too, the handler is kept that `comm` has now, which takes MPI calls here and in the destructor.
    // Without it the world's handler hears of an error then.
    RaisedOn(MPI_Comm comm, std::shared_ptr<const CommunicatorRecord> record, bool lasting);
    RaisedOn(RaisedOn&& other) noexcept;
    RaisedOn& operator=(RaisedOn&& other) noexcept;
    ~RaisedOn();

    // The communicator to call the handler of (call_error_handler). Where its own one is gone that is another
    // one with the handler, made by this call of this process alone: for where there is an error.
    MPI_Comm where() const;
    // Of the communicator that the request was made on; null: there is none.
    const std::shared_ptr<const CommunicatorRecord>& made_on() const { return record_; }

  private:
    MPI_Comm comm_{};
    std::shared_ptr<const CommunicatorRecord> record_;
    MPI_Errhandler handler_{};
    bool has_handler_ = false;
};

}  // namespace thalweg
