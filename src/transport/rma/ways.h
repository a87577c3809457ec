// The ways of epoch.h as classes: only their files and make_epoch() see these.
#pragma once

#include <optional>

#include "transport/rma/epoch.h"
#include "transport/rma/signals.h"

namespace thalweg {

class FenceEpoch final : public Epoch {
  public:
    FenceEpoch(const Host& mpi, EpochPlan plan) : Epoch(mpi, std::move(plan)) {}
    int start() override;
    int test(bool& done) override;
    int wait() override;
};

class LockEpoch final : public Epoch {
  public:
    LockEpoch(const Host& mpi, EpochPlan plan) : Epoch(mpi, std::move(plan)) {}
    int open() override;
    int close() override;
    int start() override;
    int test(bool& done) override;
    int wait() override;

  private:
    int guard();
    int rank_ = 0;
};

class PostStartEpoch final : public Epoch {
  public:
    PostStartEpoch(const Host& mpi, EpochPlan plan);
    ~PostStartEpoch() override;
    int make();
    int start() override;
    int test(bool& done) override;
    int wait() override;
    bool moves() const override { return exposed_; }

  private:
    int advance(bool blocks);

    Signals signals_;
    std::optional<MPI_Group> sources_, targets_;  // of lists that are not empty
    bool exposed_ = false;
};

class GetEpoch final : public Epoch {
  public:
    GetEpoch(const Host& mpi, EpochPlan plan);
    int make();
    int open() override;
    int close() override;
    int start() override;
    int test(bool& done) override;
    int wait() override;
    bool moves() const override;

  private:
    int fetch(std::span<const int> which);
    int advance(bool blocks);

    Signals ready_, taken_;
    std::vector<MPI_Request> gets_;         // by piece
    std::vector<std::size_t> first_piece_;  // by source; one more at the end
    std::vector<std::size_t> pieces_left_;  // by source
    std::vector<int> finished_;
    std::size_t sources_left_ = 0;
};

std::vector<int> peers_of(const std::vector<Transfer>& transfers);

// An int counts the bytes of one call.
inline constexpr std::uint64_t largest_piece = std::uint64_t{1} << 30;

}  // namespace thalweg
