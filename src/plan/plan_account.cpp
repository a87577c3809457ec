#include "plan/plan_account.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "base/float_modes.h"
#include "model/median.h"
#include "plan/report_text.h"

namespace thalweg {

namespace {

constexpr std::size_t most_plans = 1024;

constinit std::mutex plans_mutex;
std::vector<std::shared_ptr<PlanAccount>>& plans() {
    static auto* const list = new std::vector<std::shared_ptr<PlanAccount>>;
    return *list;
}

const char* text_of(PlanAccount::Once once) {
    switch (once) {
        case PlanAccount::Once::measured:
            return "measured";
        case PlanAccount::Once::model:
            return "model";
        case PlanAccount::Once::unknown:
            break;
    }
    return "unknown";
}

// JSON has no infinity, nor what is no number.
std::string calls_json(double calls) {
    if (std::isnan(calls)) return "null";
    if (std::isinf(calls)) return "\"never\"";
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, calls, std::chars_format::general, 6);
    return std::string(text, end.ptr);
}

// Half as much to twice as much, or not known.
bool alike(std::uint64_t sent, std::uint64_t other) {
    if (sent == NativeTimes::any_size || other == NativeTimes::any_size) return true;
    const std::uint64_t less = std::min(sent, other), more = std::max(sent, other);
    return more - less <= less;
}

std::string time_text(double seconds) { return seconds_text(static_cast<std::uint64_t>(seconds * 1e9)); }

template <typename Row>
void each_plan(Row row) {
    for (std::size_t plan = 0;; ++plan) {
        const std::shared_ptr<PlanAccount> account = account_of(plan);
        if (account == nullptr) return;
        row(account->figures());
    }
}

}  // namespace

void NativeTimes::add(std::uint64_t ns, std::uint64_t sent) {
    const std::lock_guard lock(mutex_);
    if (count_ == most) {
        // The oldest of those of which there are the most leaves: calls of one size do not push out what is
        // known of another.
        std::array<std::size_t, most> like_it;
        for (std::size_t i = 0; i < most; ++i)
            like_it[i] = static_cast<std::size_t>(
                std::count_if(samples_.begin(), samples_.end(),
                              [&](const Sample& other) { return alike(samples_[i].sent, other.sent); }) +
                alike(samples_[i].sent, sent));
        const auto leaves = std::max_element(like_it.begin(), like_it.end()) - like_it.begin();
        std::move(samples_.begin() + leaves + 1, samples_.end(), samples_.begin() + leaves);
        --count_;
    }
    samples_[count_++] = {ns, sent};
}

void NativeTimes::note(std::uint64_t ns, std::uint64_t sent) {
    const std::lock_guard lock(mutex_);
    if (noted_count_ < places) noted_[noted_count_++] = {ns, sent};
}

NativeTimes::Words NativeTimes::noted() const {
    const std::lock_guard lock(mutex_);
    Words words;
    std::transform(noted_.begin(), noted_.end(), words.begin(),
                   [](const Sample& sample) { return sample.ns; });
    return words;
}

void NativeTimes::settle(const Words& slowest) {
    std::array<Sample, places> noted;
    {
        const std::lock_guard lock(mutex_);
        std::swap(noted, noted_);
        noted_count_ = 0;
    }
    for (std::size_t i = 0; i < places; ++i)
        if (slowest[i] != 0) add(slowest[i], noted[i].sent);
}

std::vector<double> NativeTimes::samples(std::uint64_t sent) const {
    const std::lock_guard lock(mutex_);
    std::vector<double> all;
    all.reserve(count_ + noted_count_);
    in_standard_modes([&] {
        for (std::size_t i = 0; i < count_; ++i)
            if (alike(samples_[i].sent, sent)) all.push_back(seconds(samples_[i].ns));
        for (std::size_t i = 0; i < noted_count_; ++i)
            if (alike(noted_[i].sent, sent)) all.push_back(seconds(noted_[i].ns));
    });
    return all;
}

PlanAccount::PlanAccount(CallKind kind, std::string algorithm, int ranks,
                         std::shared_ptr<const NativeTimes> native, Picoseconds model_once,
                         std::uint64_t sends)
    : kind_(kind),
      algorithm_(std::move(algorithm)),
      ranks_(ranks),
      native_(std::move(native)),
      model_once_(model_once),
      sends_(sends) {}

void PlanAccount::set_tried(Tried tried) {
    const std::lock_guard lock(mutex_);
    tried_ = std::move(tried);
}

void PlanAccount::add_run(std::uint64_t ns, std::uint64_t puts) {
    const std::lock_guard lock(mutex_);
    puts_ = puts;
    runs_ns_[starts_++ % most_runs] = ns;
}

PlanAccount::Figures PlanAccount::figures() const {
    return in_standard_modes([this] { return computed(); });
}

PlanAccount::Figures PlanAccount::computed() const {
    Figures figures;
    figures.kind = kind_;
    figures.algorithm = algorithm_;
    figures.ranks = ranks_;
    figures.shortcoming = shortcoming_;
    std::vector<double> runs;
    {
        const std::lock_guard lock(mutex_);
        if (tried_) {
            figures.starts = starts_;
            figures.puts = puts_;
            figures.init_seconds = tried_->init_seconds;
            figures.once_seconds = tried_->once_seconds;
            figures.plan_seconds = tried_->plan_seconds;
            if (tried_->once_seconds > 0) figures.once = Once::measured;
            figures.even = break_even({&tried_->init_seconds, 1}, tried_->once, tried_->plan);
            figures.even.calls = break_even(figures.init_seconds, figures.once_seconds, figures.plan_seconds);
            if (tried_->once.empty())
                figures.even.low = figures.even.high = std::numeric_limits<double>::quiet_NaN();
            return figures;
        }
        figures.starts = starts_;
        figures.puts = puts_;
        // The first start does what later ones need not.
        const std::size_t known = std::min<std::uint64_t>(starts_, most_runs);
        const std::size_t first = starts_ > 1 && starts_ <= most_runs ? 1 : 0;
        for (std::size_t i = first; i < known; ++i) runs.push_back(seconds(runs_ns_[i]));
    }
    std::vector<double> once = native_ == nullptr ? std::vector<double>{} : native_->samples(sends_);
    figures.init_seconds = seconds(init_ns_);
    figures.once = once.empty() ? Once::unknown : Once::measured;
    if (once.empty() && model_once_ != 0) {
        once = {1e-12 * static_cast<double>(model_once_)};
        figures.once = Once::model;
    }
    if (figures.once != Once::unknown && !runs.empty())
        figures.even = break_even({&figures.init_seconds, 1}, once, runs);
    figures.plan_seconds = median_of(runs);
    figures.once_seconds = median_of(once);
    return figures;
}

void keep_account(std::shared_ptr<PlanAccount> account) {
    const std::lock_guard lock(plans_mutex);
    if (plans().size() < most_plans) plans().push_back(std::move(account));
}

std::shared_ptr<PlanAccount> account_of(std::size_t plan) {
    const std::lock_guard lock(plans_mutex);
    return plan < plans().size() ? plans()[plan] : nullptr;
}

std::string plans_json() {
    std::string text;
    each_plan([&](const PlanAccount::Figures& plan) {
        append(text, "%s\n  {\"operation\": \"%s\", \"algorithm\": ", text.empty() ? "" : ",",
               thalweg::text_of(plan.kind));
        text += quoted(plan.algorithm);
        if (*plan.shortcoming != '\0') text += ", \"shortcoming\": " + quoted(plan.shortcoming);
        append(text, ", \"ranks\": %d, \"starts\": %" PRIu64 ", \"puts\": %" PRIu64, plan.ranks, plan.starts,
               plan.puts);
        text += ", \"init_seconds\": " + time_text(plan.init_seconds) +
                ", \"plan_seconds\": " + time_text(plan.plan_seconds) +
                ", \"once_seconds\": " + time_text(plan.once_seconds);
        append(text, ", \"once_from\": \"%s\"", text_of(plan.once));
        if (plan.once != PlanAccount::Once::unknown && plan.starts != 0)
            text += ", \"break_even\": " + calls_json(plan.even.calls) +
                    ", \"break_even_low\": " + calls_json(plan.even.low) +
                    ", \"break_even_high\": " + calls_json(plan.even.high);
        text += '}';
    });
    return text;
}

std::string plans_table() {
    std::string text;
    each_plan([&](const PlanAccount::Figures& plan) {
        append(text, "  plan %s, %s%s%s%s: made in %s s, %" PRIu64 " starts of %s s",
               thalweg::text_of(plan.kind), plan.algorithm.c_str(), *plan.shortcoming != '\0' ? " (" : "",
               plan.shortcoming, *plan.shortcoming != '\0' ? ")" : "", time_text(plan.init_seconds).c_str(),
               plan.starts, time_text(plan.plan_seconds).c_str());
        if (plan.once != PlanAccount::Once::unknown && plan.starts != 0)
            append(text, ", natively %s s (%s): pays after %s calls", time_text(plan.once_seconds).c_str(),
                   text_of(plan.once), calls_text(plan.even.calls).c_str());
        text += '\n';
    });
    return text;
}

}  // namespace thalweg
