#include "driver/sockets.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "driver/ours.h"
#include "driver/pattern.h"

namespace thalweg::bench {
namespace {

constexpr const char* first_rail = "rail0";  // of a lab host

// The address of the lab's first rail; without one, this host's own.
in_addr_t own_address() {
    in_addr_t address = htonl(INADDR_LOOPBACK);
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) return address;
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next)
        if (each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_INET &&
            std::strcmp(each->ifa_name, first_rail) == 0)
            address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr.s_addr;
    freeifaddrs(list);
    return address;
}

[[noreturn]] void die_of(const char* what) {
    die(std::string("the socket reference cannot ") + what + ": " + std::strerror(errno));
}

// Own words of each rank, so that bytes of another place are seen.
std::uint64_t pattern_of(std::uint64_t seed, int rank) {
    return seed * 4099 + static_cast<std::uint64_t>(rank);
}

void send_all(int socket, const std::vector<unsigned char>& data) {
    for (std::size_t done = 0; done < data.size();) {
        const ssize_t moved = ::send(socket, data.data() + done, data.size() - done, MSG_NOSIGNAL);
        if (moved < 0 && errno != EINTR) die_of("send");
        if (moved > 0) done += static_cast<std::size_t>(moved);
    }
}

void receive_all(int socket, std::vector<unsigned char>& data) {
    for (std::size_t done = 0; done < data.size();) {
        const ssize_t moved = ::recv(socket, data.data() + done, data.size() - done, 0);
        if (moved == 0 || (moved < 0 && errno != EINTR)) die_of("receive");
        if (moved > 0) done += static_cast<std::size_t>(moved);
    }
}

}  // namespace

SocketMover::SocketMover(MPI_Comm comm) {
    PMPI_Comm_rank(comm, &rank_);
    PMPI_Comm_size(comm, &size_);
    connect_ring(comm);
    sender_ = std::thread([this] { serve(true); });
    receiver_ = std::thread([this] { serve(false); });
}

SocketMover::~SocketMover() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    changed_.notify_all();
    sender_.join();
    receiver_.join();
    close(to_next_);
    close(from_previous_);
}

void SocketMover::connect_ring(MPI_Comm comm) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = own_address();
    socklen_t length = sizeof own;
    if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0 ||
        listen(listener, 1) != 0 || getsockname(listener, reinterpret_cast<sockaddr*>(&own), &length) != 0)
        die_of("listen");
    std::vector<sockaddr_in> all(static_cast<std::size_t>(size_));
    PMPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, comm);
    to_next_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in& next = all[static_cast<std::size_t>((rank_ + 1) % size_)];
    // The listener's queue takes the connection, whenever its owner gets to accept it.
    if (to_next_ < 0 || connect(to_next_, reinterpret_cast<const sockaddr*>(&next), sizeof next) != 0)
        die_of("connect");
    from_previous_ = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (from_previous_ < 0) die_of("accept");
    close(listener);
}

void SocketMover::serve(bool sends) {
    std::uint64_t& done = sends ? sent_ : received_;
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ends_ || started_ != done; });
        if (ends_) return;
        lock.unlock();
        if (sends) {
            send_all(to_next_, outgoing_);
        } else {
            receive_all(from_previous_, incoming_);
        }
        lock.lock();
        ++done;
        changed_.notify_all();
    }
}

void SocketMover::prepare(std::size_t send_bytes, std::size_t receive_bytes, std::uint64_t seed) {
    seed_ = seed;
    outgoing_.resize(send_bytes);
    fill_pattern(outgoing_.data(), send_bytes, pattern_of(seed, rank_));
    incoming_.assign(receive_bytes, 0xa5);
}

void SocketMover::start() {
    {
        const std::lock_guard lock(mutex_);
        ++started_;
    }
    changed_.notify_all();
}

void SocketMover::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return sent_ == started_ && received_ == started_; });
}

std::uint64_t SocketMover::check() const {
    return count_wrong(incoming_.data(), incoming_.size(), pattern_of(seed_, (rank_ + size_ - 1) % size_));
}

}  // namespace thalweg::bench
