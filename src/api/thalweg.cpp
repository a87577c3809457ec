#include "thalweg/thalweg.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include "base/status.h"
#include "plan/bypass.h"
#include "plan/last_call.h"
#include "plan/plan_account.h"
#include "plan/world.h"

using namespace thalweg;

#define THALWEG_TEXT_OF(x) #x
#define THALWEG_TEXT(x) THALWEG_TEXT_OF(x)

static_assert(THALWEG_OK == static_cast<int>(Status::ok) &&
              THALWEG_IN_PROGRESS == static_cast<int>(Status::in_progress) &&
              THALWEG_DECLINED == static_cast<int>(Status::declined) &&
              THALWEG_NOT_FOUND == static_cast<int>(Status::not_found) &&
              THALWEG_ERR_ARGUMENT == static_cast<int>(Status::invalid_argument) &&
              THALWEG_ERR_MEMORY == static_cast<int>(Status::out_of_memory) &&
              THALWEG_ERR_UNSUPPORTED == static_cast<int>(Status::unsupported));

namespace {

// What a structure had when the function that fills it was first made: nobody knows less.
#define THALWEG_UP_TO(type, field) (offsetof(type, field) + sizeof(type::field))
constexpr std::size_t least_last_call = THALWEG_UP_TO(thalweg_last_call, reason);
constexpr std::size_t least_plan_stats = THALWEG_UP_TO(thalweg_plan_stats, break_even_high);

// To a caller whose structure has `size` bytes: what of ours fits, zeroes behind it.
template <typename Structure>
void hand_over(const Structure& filled, Structure* to, std::size_t size) {
    const std::size_t both = std::min(size, sizeof filled);
    std::memcpy(to, &filled, both);
    std::memset(reinterpret_cast<char*>(to) + both, 0, size - both);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

const char* thalweg_version(void) {
    return THALWEG_TEXT(THALWEG_VERSION_MAJOR) "." THALWEG_TEXT(THALWEG_VERSION_MINOR) "." THALWEG_TEXT(
        THALWEG_VERSION_PATCH);
}

const char* thalweg_strerror(int code) { return describe(static_cast<Status>(code)); }

int thalweg_set_option(const char* name, const char* value) {
    if (name == nullptr) return THALWEG_ERR_ARGUMENT;
    World* const world = World::get();
    if (world == nullptr) return THALWEG_ERR_UNSUPPORTED;
    try {
        return static_cast<int>(world->set_option(name, value));
    } catch (const std::bad_alloc&) {
        return THALWEG_ERR_MEMORY;
    }
}

int thalweg_get_last_call(thalweg_last_call* call, size_t size) {
    if (call == nullptr || size < least_last_call) return THALWEG_ERR_ARGUMENT;
    const LastCall& last = last_call;
    if (!last.any && !Bypass::open_for_some(Collective::bcast)) return THALWEG_NOT_FOUND;
    thalweg_last_call filled;
    std::memset(&filled, 0, sizeof filled);
    if (!last.any) {
        std::snprintf(filled.reason, sizeof filled.reason, "%s", Bypass::reason(Collective::bcast).c_str());
        hand_over(filled, call, size);
        return THALWEG_DECLINED;
    }
    filled.accelerated = last.accelerated;
    filled.number = last.number;
    filled.bytes = last.bytes;
    if (last.accelerated) {
        std::memcpy(filled.algorithm, last.algorithm, sizeof filled.algorithm);
        std::memcpy(filled.reason, last.chosen_because, sizeof filled.reason);
        std::snprintf(filled.transport, sizeof filled.transport, "%s", last.transport);
        std::snprintf(filled.waits, sizeof filled.waits, "%s", last.waits);
    } else {
        std::snprintf(filled.reason, sizeof filled.reason, "%s", text_of(last.reason));
    }
    hand_over(filled, call, size);
    return THALWEG_OK;
}

int thalweg_get_plan_stats(size_t plan, thalweg_plan_stats* stats, size_t size) try {
    if (stats == nullptr || size < least_plan_stats) return THALWEG_ERR_ARGUMENT;
    const std::shared_ptr<PlanAccount> account = account_of(plan);
    if (account == nullptr) return THALWEG_NOT_FOUND;
    const PlanAccount::Figures figures = account->figures();
    thalweg_plan_stats filled;
    std::memset(&filled, 0, sizeof filled);
    std::snprintf(filled.operation, sizeof filled.operation, "%s", text_of(figures.kind));
    std::snprintf(filled.algorithm, sizeof filled.algorithm, "%s", figures.algorithm.c_str());
    filled.starts = figures.starts;
    filled.init_seconds = figures.init_seconds;
    filled.plan_seconds = figures.plan_seconds;
    filled.once_seconds = figures.once_seconds;
    filled.once_measured = figures.once == PlanAccount::Once::measured;
    const bool known = figures.once != PlanAccount::Once::unknown && figures.starts != 0;
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    filled.break_even = known ? figures.even.calls : unknown;
    filled.break_even_low = known ? figures.even.low : unknown;
    filled.break_even_high = known ? figures.even.high : unknown;
    hand_over(filled, stats, size);
    return THALWEG_OK;
} catch (const std::bad_alloc&) {
    return THALWEG_ERR_MEMORY;
}

}  // extern "C"
#pragma GCC visibility pop
