// MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw served by plans that are kept from call to call, where that
// pays.
//
// No argument of an alltoallv is equal on all ranks, and any rank may change its own at any call. So what
// decides is the number of the call on its communicator, which all ranks count alike, and times that they
// agree on: some calls run natively and some as a schedule, both are timed, and the faster way has the rest.
// How a pair's message travels follows from its bytes, which both ends know: nobody's consent is needed.
#pragma once

#include <cstdint>
#include <memory>

#include "plan/nonblocking.h"
#include "plan/plan_account.h"

namespace thalweg {

// The calls of one kind and class of size on one communicator.
class Trial {
  public:
    // What the next call does. Counts it.
    enum class Turn : std::uint8_t { native, native_timed, ours, ours_timed, agree };
    Turn next();
    void add_ours(double seconds) { ours_[ours_count_++ % samples] = seconds; }
    // Collective, where next() said agree: the medians of the slowest ranks decide.
    void agree(MPI_Comm comm);
    // For good.
    void decide(bool ours) { decided_ = true, takes_ours_ = ours; }

    // For a timed native call.
    void begin();
    void end();
    // What those took.
    const std::shared_ptr<NativeTimes>& native() const { return native_times_; }

  private:
    static constexpr std::uint32_t samples = 4;
    // The first call of either way does what later ones need not.
    static constexpr std::uint32_t per_way = samples + 1;

    std::uint32_t calls_ = 0, ours_count_ = 0;
    bool decided_ = false, takes_ours_ = false;
    std::shared_ptr<NativeTimes> native_times_ = std::make_shared<NativeTimes>();
    double ours_[samples] = {};
    std::uint64_t began_ns_ = 0;
};

// True: done, and `error` is what the call returns. False: the native library has the call; where `trial` is
// set, between trial->begin() and trial->end(). Every rank takes the same way. May be collective, as the call
// is.
bool exchange_now(const CollectiveCall& call, int& error, Trial*& trial);
// Whether that could be true for any call: two loads and a look at the settings. Equal on all ranks.
bool may_exchange();

// The account of a persistent operation, whose _init began at began_ns and has chosen `algorithm` for pairs
// of `bytes`. Throws std::bad_alloc.
std::shared_ptr<PlanAccount> open_account(NonblockingState& state, Communicator& communicator,
                                          const CollectiveCall& call, const std::string& algorithm,
                                          std::uint64_t bytes, std::uint64_t began_ns);

}  // namespace thalweg
