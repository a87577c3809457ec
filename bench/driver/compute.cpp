#include "driver/compute.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "driver/session.h"

namespace thalweg::bench {
namespace {

constexpr std::size_t doubles_per_array = (32u << 20) / sizeof(double);  // three arrays
constexpr std::size_t doubles_per_unit = 512;                            // a memory unit: 12 KiB of traffic
constexpr int rounds_per_unit = 512;  // an arithmetic unit: 8 chains of these
constexpr double calibration_seconds = 5e-3;
constexpr int calibrations = 6;

}  // namespace

bool parse_compute(std::string_view text, ComputeKind& kind) {
    constexpr std::array<std::string_view, 3> names{"arithmetic", "memory", "sleep"};
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end()) return false;
    kind = static_cast<ComputeKind>(found - names.begin());
    return true;
}

Compute::Compute(ComputeKind kind) : kind_(kind) {
    if (kind != ComputeKind::memory) return;
    left_.assign(doubles_per_array, 1.0);
    right_.assign(doubles_per_array, 2.0);
    sum_.assign(doubles_per_array, 0.0);
}

void Compute::work(double units) {
    const auto count = static_cast<long>(std::llround(std::max(1.0, units)));
    if (kind_ == ComputeKind::arithmetic) {
        double chain[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        for (long unit = 0; unit < count; ++unit)
            for (int round = 0; round < rounds_per_unit; ++round)
                for (double& x : chain) x = x * 0.999999 + 1e-6;
        double sum = 0;
        for (const double x : chain) sum += x;
        sink_ = sum;
        return;
    }
    for (long unit = 0; unit < count; ++unit) {
        for (std::size_t i = at_; i < at_ + doubles_per_unit; ++i) sum_[i] = left_[i] + 0.5 * right_[i];
        at_ = at_ + 2 * doubles_per_unit <= doubles_per_array ? at_ + doubles_per_unit : 0;
    }
    sink_ = sum_[at_];
}

void Compute::calibrate() {
    if (kind_ == ComputeKind::sleep) return;
    double units = 64, fastest = 0;
    for (int i = 0; i < calibrations;) {
        const double begin = now();
        work(units);
        const double took = now() - begin;
        if (took < calibration_seconds / 2) {
            units *= 2;
            continue;
        }
        fastest = std::max(fastest, units / took);
        ++i;
    }
    amount_per_second_ = fastest;
}

double Compute::run(double amount, const std::function<void()>& probe) {
    const double begin = now();
    if (!probe) {
        if (kind_ == ComputeKind::sleep) {
            Session::sleep_until(begin + amount);
        } else {
            work(amount);
        }
        return now() - begin;
    }
    double probing = 0;
    const double piece = amount_for(probe_seconds);
    for (double left = amount; left > 0; left -= piece) {
        const double now_do = std::min(left, piece);
        if (kind_ == ComputeKind::sleep) {
            // The time that earlier pieces overslept counts.
            Session::sleep_until(begin + probing + (amount - left) + now_do);
        } else {
            work(now_do);
        }
        const double before = now();
        probe();
        probing += now() - before;
    }
    return now() - begin - probing;
}

}  // namespace thalweg::bench
