#include "engine/waiters/sleepers.h"

namespace thalweg {
namespace {

class FutexSleeper final : public Sleeper {
  public:
    bool sleep(Doorbell& bell, std::uint32_t seen, std::uint64_t until_ns) override {
        bell.sleep_on_word(seen, until_ns);
        return false;
    }
};

}  // namespace

std::unique_ptr<Sleeper> make_futex_sleeper() { return std::make_unique<FutexSleeper>(); }

}  // namespace thalweg
