#include "base/log.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/clock.h"

namespace thalweg {
namespace {

// Collects what is logged while it lives.
class Captured {
  public:
    Captured() {
        EXPECT_EQ(pipe(ends_), 0);
        set_log_descriptor(ends_[1]);
    }
    ~Captured() {
        set_log_descriptor(-1);
        set_log_level(LogLevel::warn);
        set_log_rank(-1);
        close(ends_[0]);
        if (ends_[1] >= 0) close(ends_[1]);
    }
    std::string text() {
        close(ends_[1]);
        ends_[1] = -1;
        std::string all;
        char buffer[4096];
        for (ssize_t n; (n = read(ends_[0], buffer, sizeof buffer)) > 0;) all.append(buffer, n);
        return all;
    }

  private:
    int ends_[2] = {-1, -1};
};

TEST(log, a_line_names_the_program_and_the_rank_once_known) {
    Captured captured;
    THALWEG_LOG_AT(warn, "before %d", 1);
    set_log_rank(3);
    THALWEG_LOG_AT(error, "after %s", "it");
    EXPECT_EQ(captured.text(), "thalweg: before 1\nthalweg: rank 3: after it\n");
}

TEST(log, levels_above_the_chosen_one_are_dropped) {
    Captured captured;
    THALWEG_LOG_AT(info, "quiet");
    set_log_level(LogLevel::info);
    THALWEG_LOG_AT(info, "heard");
    THALWEG_LOG_AT(debug, "quiet");
    EXPECT_EQ(captured.text(), "thalweg: heard\n");
}

TEST(log, a_message_in_a_loop_does_not_flood) {
    Captured captured;
    const std::uint64_t start = now_ns();
    for (int i = 0; i < 100000; ++i) THALWEG_LOG_AT(warn, "again");
    const std::uint64_t windows = (now_ns() - start) / log_window_ns + 1;
    const std::string text = captured.text();
    EXPECT_GE(std::count(text.begin(), text.end(), '\n'), 1);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), static_cast<long>(log_burst + windows));
}

TEST(log, a_line_longer_than_its_room_still_ends) {
    Captured captured;
    const std::string longer(5000, 'x');
    THALWEG_LOG_AT(error, "%s", longer.c_str());
    const std::string text = captured.text();
    EXPECT_LE(text.size(), 1024u);
    EXPECT_EQ(text.back(), '\n');
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(log, a_line_that_nobody_reads_does_not_end_the_program) {
    const auto write_line = [] {
        signal(SIGPIPE, SIG_DFL);
        int ends[2];
        if (pipe(ends) != 0 || close(ends[0]) != 0) _exit(1);
        set_log_descriptor(ends[1]);
        THALWEG_LOG_AT(warn, "lost");
        sigset_t pending;
        sigpending(&pending);
        _exit(sigismember(&pending, SIGPIPE));
    };
    EXPECT_EXIT(write_line(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace thalweg
