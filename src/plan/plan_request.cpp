#include "plan/plan_request.h"

#include <new>

#include "plan/attendance.h"
#include "plan/ongoing.h"
#include "plan/tickets.h"
#include "transport/mpi/host.h"

namespace thalweg {

PlanRequest::PlanRequest() : tag_(take_tag()) {}

PlanRequest::~PlanRequest() {
    if (handed_over_) return;
    if (made_) host()->Request_free(&request_);
    give_tag_back(tag_);
}

std::shared_ptr<PlanRequest> PlanRequest::make(int& error) {
    const Host& mpi = *host();
    auto made = std::make_shared<PlanRequest>();
    error = mpi.Recv_init(nullptr, 0, mpi.byte, 0, made->tag_, Attendance::self(), &made->request_);
    if (error != MPI_SUCCESS) return nullptr;
    made->made_ = true;
    return made;
}

bool claim_request(Ongoing& ongoing) noexcept try {
    int error = MPI_SUCCESS;
    ongoing.options().request = PlanRequest::make(error);
    return error == MPI_SUCCESS;
} catch (const std::bad_alloc&) {
    return false;
}

}  // namespace thalweg
