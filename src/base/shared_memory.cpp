#include "base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace thalweg {
namespace {

// In front of a page's bytes.
struct PageHeader {
    std::uint64_t nonce = 0, bytes = 0;
};

constexpr std::size_t allocated_at_once = 1 << 20;
// MFD_NOEXEC_SEAL, which older headers lack.
constexpr unsigned not_executed = 0x0008;
constexpr int length_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::uint64_t mix(std::uint64_t hash, const char* text, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i)
        hash = (hash ^ static_cast<unsigned char>(text[i])) * 1099511628211u;
    return hash;
}

Status refuse(const char* what, std::string& why) {
    const Status status = errno == ENOMEM ? Status::out_of_memory : Status::unsupported;
    why = std::string(what) + ": " + std::strerror(errno);
    return status;
}

}  // namespace

std::uint64_t machine_key() {
    std::uint64_t hash = 14695981039346656037u;
    char text[128];
    const Descriptor file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    if (!file) return 0;
    ssize_t got = read(file.get(), text, sizeof text);
    if (got <= 0) return 0;
    hash = mix(hash, text, static_cast<std::size_t>(got));
    got = readlink("/proc/self/ns/pid", text, sizeof text);
    if (got <= 0) return 0;
    return mix(hash, text, static_cast<std::size_t>(got)) | 1;
}

bool files_may_have(std::size_t bytes) {
    rlimit limit = {};
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= bytes;
}

bool memory_is_counted() {
    char mode = '0';
    const Descriptor file(open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC));
    return file && read(file.get(), &mode, 1) == 1 && mode == '2';
}

std::uint64_t address_space_left() {
    rlimit limit = {};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    char pages[32] = {};  // the first number
    const Descriptor file(open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
    if (!file || read(file.get(), pages, sizeof pages - 1) <= 0) return UINT64_MAX;
    const auto used = std::strtoull(pages, nullptr, 10) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return limit.rlim_cur - std::min<std::uint64_t>(used, limit.rlim_cur);
}

// Piece by piece, because a signal undoes what one call has done.
bool give_memory(int file, std::size_t begin, std::size_t bytes) {
    for (const std::size_t end = begin + bytes; begin < end;) {
        const std::size_t piece = std::min(end - begin, allocated_at_once);
        if (fallocate(file, 0, static_cast<off_t>(begin), static_cast<off_t>(piece)) == 0)
            begin += piece;
        else if (errno != EINTR)
            return false;
    }
    return true;
}

// Where files of no name must not be executed (vm.memfd_noexec is 2) the system makes none of which that is
// not said; before Linux 6.3 it does not know how to say it.
Descriptor anonymous_file() {
    constexpr unsigned wanted = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    const int file = memfd_create("thalweg", wanted | not_executed);
    return Descriptor(file >= 0 || errno != EINVAL ? file : memfd_create("thalweg", wanted));
}

bool seal_length(int file) { return fcntl(file, F_ADD_SEALS, length_seals) == 0; }

bool has_sealed_length(int file) {
    // Kernels may add a seal of their own, against execution.
    const int sealed = fcntl(file, F_GET_SEALS);
    return sealed >= 0 && (sealed & length_seals) == length_seals;
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
}

Descriptor::~Descriptor() {
    if (number_ >= 0) close(number_);
}

int Descriptor::release() { return std::exchange(number_, -1); }

Mapping::Mapping(Mapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

Mapping::~Mapping() {
    if (base_ != nullptr) munmap(base_, bytes_);
}

Mapping anonymous_memory(std::size_t bytes) {
    void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return base == MAP_FAILED ? Mapping() : Mapping(base, bytes);
}

Status HostPage::create(std::string& why) {
    Location location;
    location.machine = machine_key();
    if (location.machine == 0) return refuse("/proc does not say which machine this is", why);
    Descriptor file = anonymous_file();
    if (!file) return refuse("memfd_create", why);
    if (getrandom(&location.nonce, sizeof location.nonce, 0) != sizeof location.nonce)
        return refuse("getrandom", why);
    location.pid = getpid();
    location.descriptor = file.get();
    file_ = std::move(file);
    location_ = location;
    return Status::ok;
}

Status HostPage::resize(std::size_t bytes, std::string& why) {
    const std::size_t all = sizeof(PageHeader) + bytes;
    if (!files_may_have(all)) {
        errno = EFBIG;
        return refuse("the limit on the size of files", why);
    }
    // With its memory: a write that finds none later would end the process.
    if (!give_memory(file_.get(), 0, all)) return refuse("fallocate", why);
    if (!seal_length(file_.get())) return refuse("sealing shared memory", why);
    void* const base = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (base == MAP_FAILED) return refuse("mmap", why);
    mapping_ = Mapping(base, all);
    const PageHeader header{location_.nonce, bytes};
    std::memcpy(base, &header, sizeof header);
    return Status::ok;
}

Status HostPage::open(const Location& location, std::size_t bytes, std::string& why) {
    if (location.machine != machine_key()) {
        why = "it is on another host, or in another PID namespace";
        return Status::unsupported;
    }
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", location.pid, location.descriptor);
    const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status = {};
    if (!file || fstat(file.get(), &status) != 0) return refuse(path, why);
    const std::size_t all = sizeof(PageHeader) + bytes;
    PageHeader header;
    if (static_cast<std::size_t>(status.st_size) != all || !has_sealed_length(file.get()) ||
        pread(file.get(), &header, sizeof header, 0) != sizeof header || header.nonce != location.nonce ||
        header.bytes != bytes) {
        why = "the shared memory there is another one";
        return Status::mismatch;
    }
    void* const base = mmap(nullptr, all, PROT_READ, MAP_SHARED, file.get(), 0);
    if (base == MAP_FAILED) return refuse("mmap", why);
    mapping_ = Mapping(base, all);
    return Status::ok;
}

void HostPage::end_writing() {
    file_ = Descriptor();
    location_.descriptor = -1;
    // A stray write of the program's would reach every rank of the host. Where it is refused that stays so.
    if (mapping_.base() != nullptr) mprotect(mapping_.base(), mapping_.bytes(), PROT_READ);
}

std::span<std::byte> HostPage::bytes() const {
    if (mapping_.base() == nullptr) return {};
    return {mapping_.base() + sizeof(PageHeader), mapping_.bytes() - sizeof(PageHeader)};
}

}  // namespace thalweg
