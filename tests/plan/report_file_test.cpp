// A report's file is there whole, or as it was.
#include "plan/report_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace thalweg {
namespace {

namespace fs = std::filesystem;

class ReportFile : public testing::Test {
  protected:
    ReportFile() : before_(fs::current_path()) {
        std::string pattern = (fs::temp_directory_path() / "thalweg-report-XXXXXX").string();
        folder = mkdtemp(pattern.data());
    }
    ~ReportFile() override {
        fs::current_path(before_);
        fs::remove_all(folder);
    }
    static std::string read(const fs::path& path) {
        std::ifstream file(path);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    std::size_t files() const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
    }
    fs::path folder;

  private:
    fs::path before_;
};

TEST_F(ReportFile, a_relative_name_is_of_the_folder_in_which_the_program_began) {
    fs::create_directory(folder / "elsewhere");
    fs::current_path(folder);
    note_report_folder();
    fs::current_path(folder / "elsewhere");
    EXPECT_EQ(write_report_file(report_path("report.json"), "{}\n"), "");
    EXPECT_EQ(read(folder / "report.json"), "{}\n");
    EXPECT_EQ(report_path("/tmp/report.json"), "/tmp/report.json");
}

// Whoever looks while jobs end sees one of their reports, whole; nothing is left beside it.
TEST_F(ReportFile, jobs_that_end_together_leave_one_whole_report) {
    const std::string path = folder / "report.json";
    const std::string one(300000, '1'), other(200000, '2');
    ASSERT_EQ(write_report_file(path, one), "");
    std::vector<pid_t> jobs;
    for (const std::string* text : {&one, &other})
        if (const pid_t job = fork(); job != 0)
            jobs.push_back(job);
        else
            for (int i = 0;; ++i)
                if (i == 30 || !write_report_file(path, *text).empty()) _exit(i == 30 ? 0 : 1);
    std::size_t torn = 0;
    for (int i = 0; i < 100; ++i) {
        const std::string seen = read(path);
        torn += seen != one && seen != other;
    }
    for (const pid_t job : jobs) {
        int status = -1;
        waitpid(job, &status, 0);
        EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(torn, 0u);
    EXPECT_EQ(files(), 1u);
}

TEST_F(ReportFile, a_disk_without_room_leaves_the_old_report_and_says_why) {
    const std::string path = folder / "report.json";
    ASSERT_EQ(write_report_file(path, "old\n"), "");
    // The limit on the size of files stands for the disk's; SIGXFSZ would end the program.
    const pid_t job = fork();
    if (job == 0) {
        const rlimit few{1000, 1000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &few);
        _exit(write_report_file(path, std::string(5000, 'x')) == "File too large" ? 0 : 1);
    }
    int status = -1;
    waitpid(job, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(read(path), "old\n");
    EXPECT_EQ(files(), 1u);
    EXPECT_EQ(write_report_file("/dev/full", "{}\n"), "No space left on device");
    EXPECT_EQ(write_report_file(folder / "no/such", "{}\n"), "No such file or directory");
    EXPECT_EQ(write_report_file(folder, "{}\n"), "Is a directory");
}

TEST_F(ReportFile, a_link_stays_a_link_and_a_mode_stays_as_it_was) {
    std::ofstream(folder / "report.json") << "old";
    fs::permissions(folder / "report.json", fs::perms(0640));
    fs::create_symlink("report.json", folder / "link");
    EXPECT_EQ(write_report_file(folder / "link", "new"), "");
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
    EXPECT_EQ(read(folder / "report.json"), "new");
    EXPECT_EQ(fs::status(folder / "report.json").permissions(), fs::perms(0640));
}

}  // namespace
}  // namespace thalweg
