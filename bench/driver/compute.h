// What a program does between starting a collective and waiting for it.
//
// Arithmetic and memory are work in fixed amounts, which takes longer where somebody takes the core or the
// memory bus: that is how dilation shows. Sleep is time outside MPI in which a rank needs no core, for shapes
// with more ranks than this machine has cores.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

namespace thalweg::bench {

enum class ComputeKind : unsigned char { arithmetic, memory, sleep };
// False when there is no such kind.
bool parse_compute(std::string_view text, ComputeKind& kind);

class Compute {
  public:
    // Memory: takes 96 MiB, larger than the caches, touched here.
    explicit Compute(ComputeKind kind);

    ComputeKind kind() const { return kind_; }
    // How much work takes so many seconds on an idle machine, as the last calibrate() found. Sleep: seconds.
    double amount_for(double seconds) const { return seconds * amount_per_second_; }
    // About 30 ms of work, the fastest of several: what disturbs it only makes it slower. Local.
    void calibrate();
    // Of amount_for(1), which all ranks of a job should share.
    double amount_per_second() const { return amount_per_second_; }
    void set_amount_per_second(double amount) { amount_per_second_ = amount; }

    // Seconds that the work took, without those in `probe`, which is called between pieces of about
    // probe_seconds each where it is not empty.
    double run(double amount, const std::function<void()>& probe);
    static constexpr double probe_seconds = 2e-4;

  private:
    void work(double units);

    ComputeKind kind_;
    double amount_per_second_ = 1;
    std::vector<double> left_, right_, sum_;
    std::size_t at_ = 0;
    volatile double sink_ = 0;  // keeps the compiler from leaving the work out
};

}  // namespace thalweg::bench
