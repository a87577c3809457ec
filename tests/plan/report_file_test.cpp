// A report's file is there whole, or as it was.
#include "plan/report_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
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
    // The limit on the size of files stands for the disk's; its signal ends no program.
    const pid_t job = fork();
    if (job == 0) {
        const rlimit few{1000, 1000};
        signal(SIGXFSZ, SIG_DFL);
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

TEST_F(ReportFile, a_link_to_a_file_that_is_not_there_makes_that_file) {
    fs::create_symlink("later.json", folder / "link");
    EXPECT_EQ(write_report_file(folder / "link", "new"), "");
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
    EXPECT_EQ(read(folder / "later.json"), "new");
    fs::create_symlink("no/such", folder / "lost");
    EXPECT_EQ(write_report_file(folder / "lost", "new"), "No such file or directory");
    EXPECT_EQ(files(), 3u);
}

// In a process of its own: 0, 1, or `cannot`.
constexpr int cannot = 77;
int in_child(const std::function<int()>& work) {
    const pid_t child = fork();
    if (child == 0) _exit(work());
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(ReportFile, a_file_that_is_mounted_is_written_where_it_is) {
    const std::string path = folder / "report.json";
    std::ofstream(path) << "an old and longer report";
    const int status = in_child([&] {
        if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return cannot;
        if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount(path.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0)
            return cannot;
        const std::string why = write_report_file(path, "new");
        if (!why.empty()) std::fprintf(stderr, "%s\n", why.c_str());
        return why.empty() ? 0 : 1;
    });
    if (status == cannot) GTEST_SKIP() << "no mounts of one's own here";
    EXPECT_EQ(status, 0);
    EXPECT_EQ(read(path), "new");
    EXPECT_EQ(files(), 1u);
}

// As in /tmp: everybody may write the file, and only its owner may replace it.
TEST_F(ReportFile, anothers_file_in_a_sticky_folder_is_written_where_it_is) {
    if (geteuid() != 0) GTEST_SKIP() << "needs to be several users";
    const std::string path = folder / "report.json";
    std::ofstream(path) << "an old and longer report";
    ASSERT_EQ(chmod(path.c_str(), 0666), 0);
    ASSERT_EQ(chown(path.c_str(), 1001, 1001), 0);
    ASSERT_EQ(chmod(folder.c_str(), 01777), 0);
    const int status = in_child([&] {
        if (setresuid(1002, 1002, 1002) != 0) return cannot;
        return write_report_file(path, "new").empty() ? 0 : 1;
    });
    if (status == cannot) GTEST_SKIP() << "there is no user 1002 here";
    EXPECT_EQ(status, 0);
    EXPECT_EQ(read(path), "new");
    EXPECT_EQ(files(), 1u);
}

// As in `mpirun ... | head -1`.
TEST_F(ReportFile, a_pipe_that_nobody_reads_is_an_error_and_not_the_end_of_the_program) {
    const int status = in_child([] {
        signal(SIGPIPE, SIG_DFL);
        int ends[2];
        if (pipe(ends) != 0 || dup2(ends[1], 1) != 1 || close(ends[0]) != 0) return 1;
        if (write_report_file("/dev/stdout", "{}\n") != "Broken pipe") return 1;
        // What the program writes there itself still ends it.
        sigset_t pending, blocked;
        sigpending(&pending);
        pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
        return sigismember(&pending, SIGPIPE) + sigismember(&blocked, SIGPIPE);
    });
    EXPECT_EQ(status, 0);
}

// The program's output went to a file: the report stands behind what it wrote before, and before what it
// writes later.
TEST_F(ReportFile, an_open_file_goes_on_with_the_report) {
    const std::string path = folder / "output";
    for (const char* name : {"/dev/stdout", "/dev/stderr", "/dev/fd/7", "/proc/self/fd/7"}) {
        SCOPED_TRACE(name);
        const int status = in_child([&] {
            const int output = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
            for (const int descriptor : {1, 2, 7}) dup2(output, descriptor);
            return write(7, "before\n", 7) == 7 && write_report_file(name, "{}\n").empty() &&
                           write(7, "after\n", 6) == 6
                       ? 0
                       : 1;
        });
        EXPECT_EQ(status, 0);
        EXPECT_EQ(read(path), "before\n{}\nafter\n");
        EXPECT_EQ(files(), 1u);
    }
    // By the name of any process, and where our own descriptor only reads.
    std::ofstream(path) << "before\n";
    const int output = open(path.c_str(), O_RDONLY);
    const std::string number = "/fd/" + std::to_string(output);
    EXPECT_EQ(write_report_file("/proc/" + std::to_string(getpid()) + number, "one\n"), "");
    EXPECT_EQ(write_report_file("/dev" + number, "two\n"), "");
    close(output);
    EXPECT_EQ(read(path), "before\none\ntwo\n");
    EXPECT_EQ(files(), 1u);
}

// Nothing is lost where nothing is written over: these have no place beside them for a file.
TEST_F(ReportFile, a_spawned_world_has_a_file_of_its_own_and_shares_what_is_none) {
    for (const char* name : {"/dev/stdout", "/dev/stderr", "/dev/fd/7", "/proc/self/fd/7", "/dev/null"})
        EXPECT_EQ(path_of_spawned(name), name);
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    const std::string who = ".spawned-" + std::string(host) + "-" + std::to_string(getpid());
    EXPECT_EQ(path_of_spawned("a.b/report.json"), "a.b/report" + who + ".json");
    EXPECT_EQ(path_of_spawned("a.b/report"), "a.b/report" + who);
    EXPECT_EQ(path_of_spawned(".report"), ".report" + who);
}

// Not all in /dev is what somebody has open: shared memory holds files.
TEST_F(ReportFile, a_file_in_shared_memory_is_replaced) {
    const std::string path = "/dev/shm/thalweg-report-" + std::to_string(getpid());
    const std::string why = write_report_file(path, "old\n");
    if (!why.empty()) GTEST_SKIP() << "/dev/shm: " << why;
    EXPECT_EQ(write_report_file(path, "new\n"), "");
    EXPECT_EQ(read(path), "new\n");
    fs::remove(path);
}

}  // namespace
}  // namespace thalweg
