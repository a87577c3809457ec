#include "base/clock.h"
#include "engine/waiters/relax.h"
#include "engine/waiters/sleepers.h"

namespace thalweg {
namespace {

// A look at the clock costs as much as several pauses.
constexpr int pauses_per_clock = 8;

class PauseSleeper final : public Sleeper {
  public:
    bool sleep(Doorbell& bell, std::uint32_t seen, std::uint64_t until_ns) override {
        while (bell.rings() == seen && (until_ns == never_ns || now_ns() < until_ns)) {
            for (int i = 0; i < pauses_per_clock && bell.rings() == seen; ++i) relax();
        }
        return false;
    }
};

}  // namespace

std::unique_ptr<Sleeper> make_pause_sleeper() { return std::make_unique<PauseSleeper>(); }

}  // namespace thalweg
