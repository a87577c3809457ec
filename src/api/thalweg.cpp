#include "thalweg/thalweg.h"

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

int thalweg_get_last_call(thalweg_last_call* call) {
    if (call == nullptr) return THALWEG_ERR_ARGUMENT;
    const LastCall& last = last_call;
    if (!last.any && !Bypass::open()) return THALWEG_NOT_FOUND;
    std::memset(call, 0, sizeof *call);
    if (!last.any) {
        std::snprintf(call->reason, sizeof call->reason, "%s", bypass_reason);
        return THALWEG_DECLINED;
    }
    call->accelerated = last.accelerated;
    call->bytes = last.bytes;
    if (last.accelerated) {
        std::memcpy(call->algorithm, last.algorithm, sizeof call->algorithm);
        std::memcpy(call->reason, last.chosen_because, sizeof call->reason);
        std::snprintf(call->transport, sizeof call->transport, "%s", last.transport);
        std::snprintf(call->waits, sizeof call->waits, "%s", last.waits);
    } else {
        std::snprintf(call->reason, sizeof call->reason, "%s", text_of(last.reason));
    }
    return THALWEG_OK;
}

int thalweg_get_plan_stats(size_t plan, thalweg_plan_stats* stats) try {
    if (stats == nullptr) return THALWEG_ERR_ARGUMENT;
    const std::shared_ptr<PlanAccount> account = account_of(plan);
    if (account == nullptr) return THALWEG_NOT_FOUND;
    const PlanAccount::Figures figures = account->figures();
    std::memset(stats, 0, sizeof *stats);
    std::snprintf(stats->operation, sizeof stats->operation, "%s", text_of(figures.kind));
    std::snprintf(stats->algorithm, sizeof stats->algorithm, "%s", figures.algorithm.c_str());
    stats->starts = figures.starts;
    stats->init_seconds = figures.init_seconds;
    stats->plan_seconds = figures.plan_seconds;
    stats->once_seconds = figures.once_seconds;
    stats->once_measured = figures.once == PlanAccount::Once::measured;
    const bool known = figures.once != PlanAccount::Once::unknown && figures.starts != 0;
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    stats->break_even = known ? figures.even.calls : unknown;
    stats->break_even_low = known ? figures.even.low : unknown;
    stats->break_even_high = known ? figures.even.high : unknown;
    return THALWEG_OK;
} catch (const std::bad_alloc&) {
    return THALWEG_ERR_MEMORY;
}

}  // extern "C"
#pragma GCC visibility pop
