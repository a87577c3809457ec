#include "plan/pmi_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/signals_blocked.h"

namespace thalweg {
namespace {

// A launcher's daemon answers in microseconds; one that is silent this long will not answer at all.
constexpr int reply_timeout_ms = 10'000;
// "123   ": the length of a message of PMI-2.
constexpr std::size_t length_bytes = 6;
// No message of either dialect is longer; a "length" beyond it is none.
constexpr std::size_t longest_message_bytes = 1 << 20;

bool begins(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

void close_if_open(int& descriptor) {
    if (descriptor >= 0) close(descriptor);
    descriptor = -1;
}

}  // namespace

bool pmi_field(const char* message, const char* name, char separator, char* value, std::size_t capacity) {
    const std::size_t length = std::strlen(name);
    const char ends[] = {separator, '\n', '\0'};
    for (const char* at = message; (at = std::strstr(at, name)) != nullptr; at += length) {
        if (at != message && at[-1] != separator) continue;
        if (at[length] != '=') continue;
        std::snprintf(value, capacity, "%.*s", static_cast<int>(std::strcspn(at + length + 1, ends)),
                      at + length + 1);
        return true;
    }
    return false;
}

bool pmi_send(int descriptor, const char* bytes, std::size_t count) {
    while (count > 0) {
        const ssize_t written = write(descriptor, bytes, count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        bytes += written;
        count -= static_cast<std::size_t>(written);
    }
    return true;
}

std::ptrdiff_t pmi_receive(int descriptor, char* bytes, std::size_t capacity) {
    for (;;) {
        pollfd ready{descriptor, POLLIN, 0};
        const int events = poll(&ready, 1, reply_timeout_ms);
        if (events < 0 && errno == EINTR) continue;
        if (events <= 0) return -1;
        const ssize_t got = read(descriptor, bytes, capacity);
        if (got < 0 && errno == EINTR) continue;
        return got;
    }
}

std::string pmi_framed(PmiRelay::Dialect dialect, const std::string& body) {
    if (dialect == PmiRelay::Dialect::pmi1) return body + "\n";
    char length[length_bytes + 1];
    std::snprintf(length, sizeof length, "%-6u", static_cast<unsigned>(body.size()));
    return length + body;
}

bool PmiRelay::start(int descriptor, const char* key, const char* word) {
    int pair[2];
    descriptor_ = descriptor;
    descriptor_flags_ = fcntl(descriptor, F_GETFD);
    if (running_ || descriptor_flags_ < 0) return false;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
    library_ = pair[0];
    launcher_ = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    key_ = key;
    word_ = word;
    if (launcher_ >= 0 && pipe2(stop_, O_CLOEXEC) == 0 && dup2(pair[1], descriptor) == descriptor) {
        fcntl(descriptor, F_SETFD, descriptor_flags_);
        {
            const SignalsBlocked blocked;
            running_ = pthread_create(&thread_, nullptr, run, this) == 0;
        }
        if (!running_) {
            dup2(launcher_, descriptor);
            fcntl(descriptor, F_SETFD, descriptor_flags_);
        }
    }
    close(pair[1]);
    if (!running_) {
        close_if_open(library_);
        close_if_open(launcher_);
        close_if_open(stop_[0]);
        close_if_open(stop_[1]);
    }
    return running_;
}

PmiRelay::Dialect PmiRelay::stop() {
    if (!running_) return put_ ? dialect_ : Dialect::none;
    running_ = false;
    close_if_open(stop_[1]);
    pthread_join(thread_, nullptr);
    // The library may have closed it, in an initialisation that failed.
    if (fcntl(descriptor_, F_GETFD) >= 0) {
        dup2(launcher_, descriptor_);
        fcntl(descriptor_, F_SETFD, descriptor_flags_);
    }
    close_if_open(library_);
    close_if_open(launcher_);
    close_if_open(stop_[0]);
    return put_ ? dialect_ : Dialect::none;
}

// Without memory for a message the conversation cannot go on: the library finds its stream ended, and says
// so.
void* PmiRelay::run(void* self) {
    auto* const relay = static_cast<PmiRelay*>(self);
    try {
        relay->relay();
    } catch (const std::bad_alloc&) {
    }
    shutdown(relay->library_, SHUT_RDWR);
    return nullptr;
}

// Until stop(), or until one side is gone: then the library reads the end of its stream, as it would have.
void PmiRelay::relay() {
    for (;;) {
        pollfd ready[3] = {{library_, POLLIN, 0}, {launcher_, POLLIN, 0}, {stop_[0], 0, 0}};
        if (poll(ready, 3, -1) < 0 && errno != EINTR) break;
        if (ready[1].revents != 0 && !from_launcher()) break;
        if (ready[0].revents != 0 && !from_library()) break;
        if (ready[0].revents == 0 && ready[1].revents == 0 && ready[2].revents != 0) break;
    }
}

bool PmiRelay::from_launcher() {
    char bytes[4096];
    const ssize_t got = read(launcher_, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    if (dialect_ == Dialect::none && !transparent_) {
        // The answer to `init`, in lines whatever comes after it.
        answers_.append(bytes, static_cast<std::size_t>(got));
        char version[16], status[16] = "0";
        if (answers_.find('\n') != std::string::npos) {
            pmi_field(answers_.c_str(), "rc", ' ', status, sizeof status);
            if (!begins(answers_, "cmd=response_to_init") || std::strcmp(status, "0") != 0 ||
                !pmi_field(answers_.c_str(), "pmi_version", ' ', version, sizeof version))
                transparent_ = true;
            else if (std::strcmp(version, "1") == 0)
                dialect_ = Dialect::pmi1;
            else if (std::strcmp(version, "2") == 0)
                dialect_ = Dialect::pmi2;
            else
                transparent_ = true;
        }
    }
    return pmi_send(library_, bytes, static_cast<std::size_t>(got));
}

bool PmiRelay::from_library() {
    char bytes[4096];
    const ssize_t got = read(library_, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    const auto count = static_cast<std::size_t>(got);
    // Before the dialect is known nothing but `init` is said, and after our word nothing is looked for.
    if (transparent_ || put_ || dialect_ == Dialect::none) return pmi_send(launcher_, bytes, count);
    pending_.append(bytes, count);
    std::string message;
    while (next_message(pending_, message))
        if (!pass_on_message(message)) return false;
    if (!transparent_ && !put_) return true;
    const std::string rest = std::move(pending_);
    pending_.clear();
    return pmi_send(launcher_, rest.data(), rest.size());
}

// Takes one whole message off the front of `bytes`; false when there is none yet.
bool PmiRelay::next_message(std::string& bytes, std::string& message) const {
    std::size_t length = 0;
    if (dialect_ == Dialect::pmi1) {
        const std::size_t end = bytes.find('\n');
        if (end == std::string::npos) return false;
        length = end + 1;
    } else {
        if (bytes.size() < length_bytes) return false;
        const unsigned long body = std::strtoul(bytes.substr(0, length_bytes).c_str(), nullptr, 10);
        // Nonsense goes through as it is.
        length = body == 0 || body > longest_message_bytes ? bytes.size() : length_bytes + body;
        if (bytes.size() < length) return false;
    }
    message = bytes.substr(0, length);
    bytes.erase(0, length);
    return true;
}

bool PmiRelay::pass_on_message(const std::string& message) {
    const bool spreads =
        dialect_ == Dialect::pmi1
            ? begins(message, "cmd=barrier_in")
            : message.compare(length_bytes, std::strlen("cmd=kvs-fence"), "cmd=kvs-fence") == 0;
    if (spreads && !put_ && !transparent_) {
        put_ = put_word();
        transparent_ = !put_;  // one try
    }
    return pmi_send(launcher_, message.data(), message.size());
}

// Between two messages of the library, which waits for nothing now: the next answer is ours.
bool PmiRelay::put_word() {
    std::string reply;
    char status[16] = "";
    if (dialect_ == Dialect::pmi2)
        return ask("cmd=kvs-put;key=" + key_ + ";value=" + word_ + ";", "kvs-put-response", reply) &&
               pmi_field(reply.c_str(), "rc", ';', status, sizeof status) && std::strcmp(status, "0") == 0;
    if (!ask("cmd=get_my_kvsname", "my_kvsname", reply)) return false;
    if (!pmi_field(reply.c_str(), "kvsname", ' ', space_, sizeof space_)) return false;
    if (!ask("cmd=put kvsname=" + std::string(space_) + " key=" + key_ + " value=" + word_, "put_result",
             reply))
        return false;
    return !pmi_field(reply.c_str(), "rc", ' ', status, sizeof status) || std::strcmp(status, "0") == 0;
}

// A message that is not the answer belongs to the library: passed on. False: no answer.
bool PmiRelay::ask(const std::string& request, const char* reply_command, std::string& reply) {
    const std::string framed = pmi_framed(dialect_, request);
    if (!pmi_send(launcher_, framed.data(), framed.size())) return false;
    const std::string wanted = std::string("cmd=") + reply_command;
    std::string received;
    for (;;) {
        std::string message;
        while (next_message(received, message)) {
            const std::string body = dialect_ == Dialect::pmi2 ? message.substr(length_bytes) : message;
            if (begins(body, wanted.c_str())) {
                reply = body;
                return received.empty() || pmi_send(library_, received.data(), received.size());
            }
            if (!pmi_send(library_, message.data(), message.size())) return false;
        }
        char bytes[1024];
        const std::ptrdiff_t got = pmi_receive(launcher_, bytes, sizeof bytes);
        if (got <= 0) return false;
        received.append(bytes, static_cast<std::size_t>(got));
    }
}

}  // namespace thalweg
