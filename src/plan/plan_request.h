// The native request of a persistent operation: a receive from oneself, under a tag that nobody else has.
#pragma once

#include <mpi.h>

#include <memory>

namespace thalweg {

class Ongoing;

class PlanRequest {
  public:
    // Null where MPI refuses, with its error code. Throws std::bad_alloc.
    static std::shared_ptr<PlanRequest> make(int& error);
    // Throws std::bad_alloc; for make().
    PlanRequest();
    // Frees it and gives the tag back, unless it was handed over. Makes MPI calls.
    ~PlanRequest();
    PlanRequest(const PlanRequest&) = delete;
    PlanRequest& operator=(const PlanRequest&) = delete;

    MPI_Request request() const { return request_; }
    int tag() const { return tag_; }
    // Both are somebody else's from now on.
    void hand_over() { handed_over_ = true; }

  private:
    int tag_;
    MPI_Request request_{};
    bool made_ = false, handed_over_ = false;
};

// Makes the one that make_persistent() will want for `ongoing`: before the ranks agree on the plan, because
// afterwards the others have it. False: it is not to be had on this rank.
bool claim_request(Ongoing& ongoing) noexcept;

}  // namespace thalweg
