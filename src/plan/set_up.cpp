#include "plan/set_up.h"

#include "base/log.h"
#include "plan/communicator.h"

namespace thalweg {

int give_up_on(MPI_Comm comm, const AgreementFailed& failure) {
    THALWEG_LOG_AT(error, "MPI failed on this rank alone while ranks agreed how to go on; they cannot");
    if (Communicator* const communicator = Communicator::existing(comm))
        communicator->broken = communicator->out_of_step = true;
    host()->Comm_call_errhandler(comm, failure.error);
    return failure.error;
}

}  // namespace thalweg
