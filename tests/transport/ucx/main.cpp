// Runs one case on a few processes: test_ucx CASE RANKS [name=value…], over ucx or with carrier=shm.
//
// Ends with 0 when every rank passed, 77 where the build or the machine has no ucx transport. With lab=FOLDER
// the processes are there already (PMI_RANK and PMI_SIZE say which), and meet in that folder.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "job.h"

namespace thalweg::test {
namespace {

constexpr double longest_seconds = 220;

Case find_case(const std::string& name) {
#define UCX_FIND(each) \
    if (name == #each) return &each;
    UCX_CASES(UCX_FIND)
#undef UCX_FIND
    return nullptr;
}

struct Child {
    pid_t pid = -1;
    int socket = -1;
    Bytes received;  // an exchange that is not complete
    bool alive = true;
};

// A whole contribution of the child, taken from what it has sent.
bool take(Child& child, Bytes& message) {
    std::uint64_t length = 0;
    if (child.received.size() < sizeof length) return false;
    std::memcpy(&length, child.received.data(), sizeof length);
    if (child.received.size() < sizeof length + length) return false;
    const auto begin = child.received.begin() + sizeof length;
    message.assign(begin, begin + static_cast<std::ptrdiff_t>(length));
    child.received.erase(child.received.begin(), begin + static_cast<std::ptrdiff_t>(length));
    return true;
}

bool ready(const Child& child) {
    std::uint64_t length = 0;
    if (child.received.size() < sizeof length) return false;
    std::memcpy(&length, child.received.data(), sizeof length);
    return child.received.size() >= sizeof length + length;
}

void answer(std::vector<Child>& children) {
    for (const Child& child : children) {
        if (child.alive && !ready(child)) return;
    }
    Bytes all;
    bool any = false;
    for (Child& child : children) {
        Bytes message;
        any |= child.alive && take(child, message);
        const std::uint64_t length = message.size();
        const auto* first = reinterpret_cast<const std::byte*>(&length);
        all.insert(all.end(), first, first + sizeof length);
        all.insert(all.end(), message.begin(), message.end());
    }
    if (!any) return;
    for (const Child& child : children) {
        for (std::size_t at = 0; child.alive && at < all.size();) {
            const ssize_t done = send(child.socket, all.data() + at, all.size() - at, MSG_NOSIGNAL);
            if (done <= 0) break;
            at += static_cast<std::size_t>(done);
        }
    }
}

// Carries the exchanges until all children are gone. The first bad status, or 0.
int serve(std::vector<Child>& children) {
    const double begin = seconds_now();
    int result = 0;
    for (std::size_t left = children.size(); left != 0;) {
        std::vector<pollfd> waited;
        for (const Child& child : children) waited.push_back({child.alive ? child.socket : -1, POLLIN, 0});
        ::poll(waited.data(), waited.size(), 1000);
        for (std::size_t i = 0; i < children.size(); ++i) {
            if (!children[i].alive || waited[i].revents == 0) continue;
            std::byte buffer[65536];
            const ssize_t got = read(children[i].socket, buffer, sizeof buffer);
            if (got > 0) {
                children[i].received.insert(children[i].received.end(), buffer, buffer + got);
                continue;
            }
            int status = 0;
            waitpid(children[i].pid, &status, 0);
            children[i].alive = false;
            --left;
            // A rank that kills itself means to.
            const bool meant = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && result == 0;
            const int code = WIFEXITED(status) ? WEXITSTATUS(status) : meant ? 0 : 1;
            if (code != 0 && result == 0) {
                std::fprintf(stderr, "rank %zu ended with status %#x\n", i, static_cast<unsigned>(status));
                result = code;
            }
        }
        answer(children);
        if (result != 0 || seconds_now() - begin > longest_seconds) {
            if (result == 0) std::fprintf(stderr, "out of time\n"), result = 1;
            for (const Child& child : children) {
                if (child.alive) kill(child.pid, SIGKILL);
            }
        }
    }
    return result;
}

int run_here(Case which, int size, const Arguments& arguments) {
    std::vector<Child> children(size);
    for (int rank = 0; rank < size; ++rank) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return 1;
        const pid_t pid = fork();
        if (pid == 0) {
            close(pair[0]);
            for (int other = 0; other < rank; ++other) close(children[other].socket);
            job_rank = rank;
            Job job(rank, size, pair[1], "");
            which(job, arguments);
            std::exit(0);
        }
        close(pair[1]);
        children[rank].pid = pid;
        children[rank].socket = pair[0];
    }
    return serve(children);
}

}  // namespace
}  // namespace thalweg::test

int main(int count, char** values) {
    using namespace thalweg::test;
    const Case which = count > 2 ? find_case(values[1]) : nullptr;
    if (!which) {
        std::fprintf(stderr, "test_ucx CASE RANKS [name=value...]\n");
        return 2;
    }
    Arguments arguments;
    for (int i = 3; i < count; ++i) {
        const char* equals = std::strchr(values[i], '=');
        if (equals) arguments[std::string(values[i], equals - values[i])] = equals + 1;
    }
    if (arguments.contains("carrier")) job_carrier = arguments["carrier"];
    job_between = arguments["between"];
    job_packs = arguments.contains("packing");
    static const std::string protocol = arguments["protocol"];
    Node::standard_shm.protocol = protocol.c_str();
    Node::standard_shm.cma = arguments["cma"] != "off";
    const auto lab = arguments.find("lab");
    if (lab == arguments.end()) return run_here(which, std::atoi(values[2]), arguments);
    job_rank = std::atoi(std::getenv("PMI_RANK"));
    Job job(job_rank, std::atoi(std::getenv("PMI_SIZE")), -1, lab->second);
    which(job, arguments);
    return 0;
}
