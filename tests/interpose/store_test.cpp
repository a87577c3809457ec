// The word in the launcher's store, beside a conversation of a library's own that knows nothing of it: a
// pretended launcher at one end of PMI_FD, a pretended library at the other, every byte of both compared.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plan/launcher_store.h"
#include "plan/pmi_relay.h"

namespace thalweg {
namespace {

using Dialect = PmiRelay::Dialect;

// Reads until the other end closes; answers each message by a table of beginnings.
class Launcher {
  public:
    struct Rule {
        std::string begins, answer;
    };

    Launcher(Dialect dialect, std::vector<Rule> rules) : dialect_(dialect), rules_(std::move(rules)) {
        int pair[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        end_ = pair[0];
        library_end = pair[1];
        thread_ = std::thread([this] { serve(); });
    }
    ~Launcher() {
        close(library_end);
        thread_.join();
        close(end_);
    }

    int library_end = -1;
    // All messages until now.
    std::vector<std::string> heard() const {
        const std::lock_guard lock(mutex_);
        return heard_;
    }

  private:
    void serve() {
        std::string bytes;
        char more[256];
        for (ssize_t got; (got = read(end_, more, sizeof more)) > 0;) {
            bytes.append(more, static_cast<std::size_t>(got));
            for (std::size_t length; (length = message_length(bytes)) != 0; bytes.erase(0, length))
                answer(bytes.substr(0, length));
        }
    }

    std::size_t message_length(const std::string& bytes) const {
        const bool lines = dialect_ != Dialect::pmi2 || heard_.empty();
        if (lines) return bytes.find('\n') + 1;
        if (bytes.size() < 6) return 0;
        const std::size_t length = 6 + std::strtoul(bytes.c_str(), nullptr, 10);
        return bytes.size() < length ? 0 : length;
    }

    void answer(const std::string& message) {
        {
            const std::lock_guard lock(mutex_);
            heard_.push_back(message);
        }
        const std::string body = message.substr(dialect_ == Dialect::pmi2 && heard_.size() > 1 ? 6 : 0);
        for (const Rule& rule : rules_)
            if (body.rfind(rule.begins, 0) == 0) {
                const bool line = dialect_ != Dialect::pmi2 || heard_.size() == 1;
                const std::string text = line ? rule.answer + "\n" : pmi_framed(Dialect::pmi2, rule.answer);
                EXPECT_TRUE(pmi_send(end_, text.data(), text.size()));
                return;
            }
        ADD_FAILURE() << "no rule for " << message;
    }

    Dialect dialect_;
    std::vector<Rule> rules_;
    mutable std::mutex mutex_;  // of heard_, where the test reads it or the launcher adds to it
    std::vector<std::string> heard_;
    int end_ = -1;
    std::thread thread_;
};

// What the library says, in pieces of `piece` bytes, and hears.
std::string converse(int descriptor, const std::string& request, std::size_t piece,
                     std::size_t answer_bytes) {
    for (std::size_t at = 0; at < request.size(); at += piece) {
        EXPECT_TRUE(pmi_send(descriptor, request.data() + at, std::min(piece, request.size() - at)));
        std::this_thread::yield();
    }
    std::string answer;
    char bytes[512];
    while (answer.size() < answer_bytes) {
        const std::ptrdiff_t got = pmi_receive(descriptor, bytes, answer_bytes - answer.size());
        if (got <= 0) break;
        answer.append(bytes, static_cast<std::size_t>(got));
    }
    return answer;
}

void become_rank(int descriptor) {
    for (const char* name : {"PMI_HOSTNAME", "HYDI_CONTROL_FD", "HYDRA_BSTRAP_LOCALHOST"}) unsetenv(name);
    setenv("PMI_FD", std::to_string(descriptor).c_str(), 1);
    setenv("PMI_RANK", "7", 1);
    setenv("PMI_JOBID", "4711.0", 1);
}

const std::vector<Launcher::Rule> lines = {
    {"cmd=init", "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1"},
    {"cmd=get_my_kvsname", "cmd=my_kvsname rc=0 kvsname=job"},
    {"cmd=put kvsname=job key=thalweg-7 value=1.2.3\n", "cmd=put_result rc=0"},
    {"cmd=barrier_in", "cmd=barrier_out rc=0"},
    {"cmd=get kvsname=job key=thalweg-3\n", "cmd=get_result rc=0 value=1.2.3"},
    {"cmd=get kvsname=job key=thalweg-4\n", "cmd=get_result rc=1"},
};

TEST(launcher_store, a_word_is_put_before_the_first_barrier_of_a_conversation_in_lines) {
    for (std::size_t piece : {1000, 3, 1}) {
        Launcher launcher(Dialect::pmi1, lines);
        become_rank(launcher.library_end);
        fcntl(launcher.library_end, F_SETFD, 0);
        LauncherStore store;
        ASSERT_TRUE(store.write("1.2.3"));
        EXPECT_FALSE(store.open());
        const int descriptor = launcher.library_end;
        const auto say = [&](const std::string& request, const std::string& answer) {
            EXPECT_EQ(converse(descriptor, request + "\n", piece, answer.size() + 1), answer + "\n");
        };
        say("cmd=init pmi_version=1 pmi_subversion=1", lines[0].answer);
        say("cmd=barrier_in", "cmd=barrier_out rc=0");
        say("cmd=barrier_in", "cmd=barrier_out rc=0");
        store.settle();
        EXPECT_TRUE(store.open());
        EXPECT_EQ(fcntl(descriptor, F_GETFD), 0) << "the descriptor is as it was, not closed on exec";
        char word[64];
        EXPECT_EQ(store.read(3, word, sizeof word), Word::present);
        EXPECT_STREQ(word, "1.2.3");
        EXPECT_EQ(store.read(4, word, sizeof word), Word::absent);
        say("cmd=barrier_in", "cmd=barrier_out rc=0");  // the library goes on where it was
        ASSERT_EQ(launcher.heard().size(), 8u);
        EXPECT_EQ(launcher.heard()[0], "cmd=init pmi_version=1 pmi_subversion=1\n")
            << "nobody else said init";
        EXPECT_EQ(launcher.heard()[2], "cmd=put kvsname=job key=thalweg-7 value=1.2.3\n");
        EXPECT_EQ(launcher.heard()[3], "cmd=barrier_in\n");
        EXPECT_EQ(launcher.heard()[4], "cmd=barrier_in\n") << "put once";
    }
}

TEST(launcher_store, a_word_is_put_before_the_first_fence_of_a_conversation_with_lengths) {
    const std::vector<Launcher::Rule> rules = {
        {"cmd=init", "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0"},
        {"cmd=fullinit;", "cmd=fullinit-response;rc=0;rank=7;"},
        {"cmd=kvs-put;key=thalweg-7;value=1.2.3;", "cmd=kvs-put-response;rc=0;"},
        {"cmd=kvs-put;key=address;", "cmd=kvs-put-response;rc=0;"},
        {"cmd=kvs-fence;", "cmd=kvs-fence-response;rc=0;"},
        {"cmd=kvs-get;jobid=4711.0;srcid=-1;key=thalweg-3;",
         "cmd=kvs-get-response;rc=0;found=TRUE;value=1.2.3;"},
        {"cmd=kvs-get;jobid=4711.0;srcid=-1;key=thalweg-4;", "cmd=kvs-get-response;rc=0;found=FALSE;"},
    };
    for (std::size_t piece : {1000, 6, 1}) {
        Launcher launcher(Dialect::pmi2, rules);
        become_rank(launcher.library_end);
        LauncherStore store;
        ASSERT_TRUE(store.write("1.2.3"));
        const int descriptor = launcher.library_end;
        const std::string first = rules[0].answer + "\n";
        EXPECT_EQ(converse(descriptor, "cmd=init pmi_version=2 pmi_subversion=0\n", piece, first.size()),
                  first);
        const auto say = [&](const std::string& request, const std::string& answer) {
            const std::string framed = pmi_framed(Dialect::pmi2, answer);
            EXPECT_EQ(converse(descriptor, pmi_framed(Dialect::pmi2, request), piece, framed.size()), framed);
        };
        say("cmd=fullinit;pmijobid=4711.0;pmirank=7;threaded=FALSE;", rules[1].answer);
        say("cmd=kvs-put;key=address;value=cmd=kvs-fence;",
            rules[3].answer);  // not a fence, only looks like one
        say("cmd=kvs-fence;", rules[4].answer);
        store.settle();
        EXPECT_TRUE(store.open());
        char word[64];
        EXPECT_EQ(store.read(3, word, sizeof word), Word::present);
        EXPECT_STREQ(word, "1.2.3");
        EXPECT_EQ(store.read(4, word, sizeof word), Word::absent);
        ASSERT_EQ(launcher.heard().size(), 7u);
        EXPECT_EQ(launcher.heard()[3].substr(6), "cmd=kvs-put;key=thalweg-7;value=1.2.3;");
    }
}

TEST(launcher_store, a_launcher_that_speaks_something_else_is_left_in_peace) {
    const std::vector<Launcher::Rule> rules = {{"hello", "good day"}, {"cmd=barrier_in", "whatever"}};
    Launcher launcher(Dialect::none, rules);
    become_rank(launcher.library_end);
    LauncherStore store;
    ASSERT_TRUE(store.write("1.2.3"));
    EXPECT_EQ(converse(launcher.library_end, "hello\n", 2, 9), "good day\n");
    EXPECT_EQ(converse(launcher.library_end, "cmd=barrier_in\n", 2, 9), "whatever\n");
    store.settle();
    EXPECT_FALSE(store.open());
    EXPECT_EQ(launcher.heard(), (std::vector<std::string>{"hello\n", "cmd=barrier_in\n"}));
}

// A put that the launcher refuses is no word, and the library hears nothing of it.
TEST(launcher_store, a_refused_word_counts_as_none) {
    std::vector<Launcher::Rule> rules = lines;
    rules[2].answer = "cmd=put_result rc=-1 msg=full";
    Launcher launcher(Dialect::pmi1, rules);
    become_rank(launcher.library_end);
    LauncherStore store;
    ASSERT_TRUE(store.write("1.2.3"));
    EXPECT_EQ(converse(launcher.library_end, "cmd=init pmi_version=1 pmi_subversion=1\n", 99,
                       rules[0].answer.size() + 1),
              rules[0].answer + "\n");
    EXPECT_EQ(converse(launcher.library_end, "cmd=barrier_in\n", 99, 21), "cmd=barrier_out rc=0\n");
    store.settle();
    EXPECT_FALSE(store.open());
}

TEST(launcher_store, a_conversation_that_never_came_to_a_barrier_ends_as_well) {
    Launcher launcher(Dialect::pmi1, lines);
    become_rank(launcher.library_end);
    LauncherStore store;
    ASSERT_TRUE(store.write("1.2.3"));
    store.settle();
    store.settle();
    EXPECT_FALSE(store.open());
    EXPECT_EQ(converse(launcher.library_end, "cmd=barrier_in\n", 99, 21), "cmd=barrier_out rc=0\n");
}

TEST(launcher_store, no_launcher_and_a_descriptor_that_is_none_are_no_store) {
    LauncherStore store;
    unsetenv("PMI_FD");
    EXPECT_FALSE(store.write("1.2.3"));
    become_rank(987654);
    EXPECT_FALSE(store.write("1.2.3"));
    // Variables that were inherited: the number is a file's now.
    for (const bool hydra : {false, true}) {
        std::FILE* const file = std::tmpfile();
        ASSERT_NE(file, nullptr);
        become_rank(fileno(file));
        if (hydra) setenv("PMI_HOSTNAME", "here", 1);
        EXPECT_FALSE(LauncherStore::reachable());
        EXPECT_FALSE(store.write("1.2.3"));
        EXPECT_EQ(lseek(fileno(file), 0, SEEK_END), 0) << "nothing is written into it";
        std::fclose(file);
    }
    store.settle();
    EXPECT_FALSE(store.open());
}

}  // namespace
}  // namespace thalweg
