#include "transport/shm/elements.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transport/shm/protocol.h"

namespace thalweg::shm {
namespace {

// The system pins pages run by run, which takes as long as copying about so much.
constexpr std::uint64_t least_run_bytes = 1024;
// Far beyond any address: sums of a few such numbers do not overflow.
constexpr std::uint64_t most = std::uint64_t{1} << 56;
constexpr std::size_t most_stretches = 256;

bool is_place(std::int64_t number) {
    return number > -static_cast<std::int64_t>(most) && number < static_cast<std::int64_t>(most);
}

// a × b, or `most` where that is more.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
    std::uint64_t result = 0;
    return __builtin_mul_overflow(a, b, &result) ? most : std::min(result, most);
}

std::uint64_t magnitude(std::int64_t number) {
    return static_cast<std::uint64_t>(number < 0 ? -number : number);
}

// No number of a peer's is believed: what is computed from them must neither overflow nor divide by nothing.
// Whether memory is there the system finds out.
bool makes_sense(const WrittenElements& written, std::uint64_t bytes) {
    const std::uint64_t size = product(written.runs, written.run_bytes);
    if (size == 0 || size >= most || written.begin >= most || bytes >= most || !is_place(written.first) ||
        !is_place(written.stride) || !is_place(written.extent))
        return false;
    const std::uint64_t elements = (written.begin + bytes) / size + 1;
    return product(written.runs, magnitude(written.stride)) < most &&
           product(elements, magnitude(written.extent)) < most && product(elements, written.runs) < most;
}

// Whether the process whose life this is has ended. A signal of this one's, which interrupts the question
// though it waits for nothing, says neither.
bool has_ended(int life) {
    pollfd end{life, POLLIN, 0};
    int found = 0;
    do found = poll(&end, 1, 0);
    while (found < 0 && errno == EINTR);
    return found > 0;
}

}  // namespace

bool reachable(const StandInPart& part) {
    const Layout& layout = *part.whole->layout;
    return (layout.form() == Layout::Form::contiguous || layout.form() == Layout::Form::strided) &&
           layout.run_bytes() >= least_run_bytes &&
           makes_sense(written(part), part.whole->bytes - part.begin);
}

// The address is that of the first run, which is one also where elements lie behind MPI_BOTTOM.
WrittenElements written(const StandInPart& part) {
    const Layout& layout = *part.whole->layout;
    const std::uint64_t address =
        reinterpret_cast<std::uintptr_t>(part.whole->elements) + static_cast<std::uint64_t>(layout.first());
    return {layout.runs(), layout.run_bytes(), address, part.begin, 0, layout.stride(), layout.extent()};
}

std::optional<Elements> read_elements(const WrittenElements& written, std::uint64_t bytes) {
    if (!makes_sense(written, bytes)) return std::nullopt;
    return Elements{
        Layout::strided(written.runs, written.run_bytes, written.stride, written.extent, written.first),
        written.address, written.begin};
}

bool read_place(const Frame& frame, const std::byte* payload, std::uint64_t bytes, RemotePlace& place) {
    if (frame.payload == 0) return true;
    if (frame.address == 0) return false;
    if (frame.payload == sizeof(SharedPlace)) {
        std::memcpy(&place.shared.emplace(), payload, sizeof(SharedPlace));
        return true;
    }
    WrittenElements written;
    if (frame.payload != sizeof written) return false;
    std::memcpy(&written, payload, sizeof written);
    place.elements = read_elements(written, bytes);
    return place.elements.has_value();
}

std::size_t stretches(const Layout& layout, std::uint64_t address, std::uint64_t begin, std::uint64_t& bytes,
                      std::span<iovec> into) {
    std::array<ByteRun, most_stretches> runs;
    const std::size_t room = std::min(into.size(), runs.size());
    const std::size_t count = layout.runs_of(begin, begin + bytes, std::span(runs).first(room));
    bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = {reinterpret_cast<void*>(address + static_cast<std::uint64_t>(runs[i].offset)),
                   runs[i].bytes};
        bytes += runs[i].bytes;
    }
    return count;
}

Status cma_copy(ssize_t (*call)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                                unsigned long),
                const Transfer& transfer, std::uint64_t offset, std::size_t bytes, std::size_t& done) {
    done = 0;
    if (has_ended(transfer.life)) return Status::transport_failed;
    std::array<iovec, most_stretches> here, there;
    std::size_t here_count = 1, there_count = 1;
    std::uint64_t length = bytes;
    here[0] = {transfer.local + offset, bytes};
    there[0] = {reinterpret_cast<void*>(transfer.remote + offset), bytes};
    if (transfer.elements) {
        const StandIn& whole = *transfer.elements.whole;
        here_count = stretches(*whole.layout, reinterpret_cast<std::uintptr_t>(whole.elements),
                               transfer.elements.begin + offset, length, here);
    }
    if (transfer.remote_elements != nullptr) {
        const Elements& remote = *transfer.remote_elements;
        there_count = stretches(remote.layout, remote.address, remote.begin + offset, length, there);
    }
    // Of two lists the shorter one says how much is copied.
    const ssize_t got = call(transfer.pid, here.data(), here_count, there.data(), there_count, 0);
    const int error = got < 0 ? errno : 0;
    // Memory that it cannot read, or not now: the kernel pins pages, and needs memory for that.
    if (error == EFAULT || error == EPERM || error == EACCES || error == ENOSYS || error == ENOMEM)
        return Status::unsupported;
    // It looks for memory at a process's first thread, which may end before the others.
    if (error == ESRCH && !has_ended(transfer.life)) return Status::unsupported;
    if (got <= 0) return Status::transport_failed;
    done = static_cast<std::size_t>(got);
    return Status::ok;
}

}  // namespace thalweg::shm
