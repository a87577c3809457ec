#include "transport/shm/port.h"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/shared_memory.h"
#include "transport/shm/channel.h"

namespace thalweg {

using shm::Channel;
using shm::Frame;
using shm::Peer;
using shm::Request;

namespace {

// Polls in vain between two looks at whether peers live: some ten microseconds.
constexpr std::uint32_t polls_per_look = 256;
// How long closing waits for peers to take what was sent, and how long without sleeping.
constexpr std::uint64_t longest_close_ns = 2'000'000'000;
constexpr std::uint64_t spin_ns = 1'000'000;
// Twice the longest that a thread sleeps on a descriptor (agent_loop.cpp).
constexpr std::uint64_t longest_sleep_ns = 200'000'000;
constexpr std::size_t arena_alignment = 64;

constinit std::atomic<std::uint32_t> forks{0};

void count_forks() {
    static const int registered =
        pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    (void)registered;
}

}  // namespace

ShmPort::Impl::Driver::Driver(Impl& port) : port_(port) {
    // The lock is not fair, and a driver that polls in a loop would keep it from posters.
    if (port_.posters_.load(std::memory_order_relaxed) != 0) sched_yield();
    port_.mutex_.lock();
}

bool ShmPort::Impl::in_child() const { return forks.load(std::memory_order_relaxed) != forks_at_birth_; }

// Where processes share cores each end of a ring waits for a core whenever it is full or empty: how often
// follows from its length. All of a segment's together take no more than 32 of the shortest, and no host's
// memory is given up for longer ones: of each peer a segment like the own one is mapped.
std::size_t ShmPort::Impl::length_of_rings(const ShmOptions& options) {
    constexpr std::size_t most_of_all = 32 * shm::ring_bytes;
    const auto fits = [&options](std::size_t bytes) {
        const std::size_t all = options.peers * bytes, segment = 2 * all + options.arena_bytes;
        return all <= most_of_all && files_may_have(segment) &&
               options.peers * segment <= address_space_left() / 2;
    };
    std::size_t bytes = options.crowded ? shm::most_ring_bytes : shm::ring_bytes;
    while (bytes > shm::ring_bytes && !fits(bytes)) bytes /= 2;
    return bytes;
}

Status ShmPort::Impl::start(std::string& why) {
    count_forks();
    forks_at_birth_ = forks.load(std::memory_order_relaxed);
    if (failed(set_protocol(options_.protocol))) {
        why = std::string("there is no protocol ") + options_.protocol;
        return Status::invalid_argument;
    }
    options_.peers = std::clamp<std::uint32_t>(options_.peers, 1, shm::most_rings);
    static_assert(most_peers == shm::most_rings);
    options_.eager_bytes = std::min(options_.eager_bytes, shm::payload_bytes);
    options_.chunk_bytes = std::max<std::size_t>(options_.chunk_bytes, 4096);
    options_.longest_chunk_bytes = std::max(options_.longest_chunk_bytes, options_.chunk_bytes);
    const Status created = segment_.create(options_.process, options_.peers, length_of_rings(options_),
                                           options_.arena_bytes, why, options_.takes_memory);
    if (failed(created)) return created;
    address_ = segment_.address();
    by_ring_.resize(options_.peers);
    unread_.resize((options_.peers + 63) / 64);
    unmet_.resize(unread_.size());
    if (segment_.arena_bytes() != 0) free_.emplace(0, segment_.arena_bytes());
    descriptor_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
    bell_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_event event = {};
    event.events = EPOLLIN;
    bool made = descriptor_ && bell_;
    for (const int listened : {segment_.bell(), bell_.get()})
        made = made && epoll_ctl(descriptor_.get(), EPOLL_CTL_ADD, listened, &event) == 0;
    if (made) return Status::ok;
    why = std::string("no descriptor to sleep on: ") + std::strerror(errno);
    return Status::unsupported;
}

Status ShmPort::Impl::meet(std::uint32_t process, std::span<const std::byte> bytes, std::string& why) try {
    shm::Address address;
    if (bytes.size() != sizeof address) {
        why = "its address is of another build";
        return Status::mismatch;
    }
    std::memcpy(&address, bytes.data(), sizeof address);
    if (in_child()) {
        why = "this process was forked off one with a port";
        return Status::transport_failed;
    }
    if (address.process != process) {
        why = "its address is another process's";
        return Status::mismatch;
    }
    const std::lock_guard meeting(meeting_);
    if (knows(process)) return Status::ok;
    // All memory is taken before a ring is: one that nobody gives back has no other writer.
    decltype(peers_) met;
    Peer& peer = *met.emplace(process, std::make_unique<Peer>()).first->second;
    {
        const Poster lock(*this);
        peers_.reserve(peers_.size() + 1);
        by_process_.reserve();
    }
    peer.process = peer.account.process = process;
    const Status attached = peer.segment.attach(address, address_, options_.cma, why, options_.takes_memory);
    if (failed(attached)) return attached;
    peer.writer = shm::RingWriter(peer.segment.ring());
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.ptr = &peer;
    if (process != options_.process &&
        epoll_ctl(descriptor_.get(), EPOLL_CTL_ADD, peer.segment.life(), &event) != 0) {
        const int error = errno;
        peer.segment.give_ring_back();
        why = std::string("nobody would tell when it ends: ") + std::strerror(error);
        return Status::unsupported;
    }
    const Poster lock(*this);
    peers_.insert(met.extract(process));
    by_process_.add(process, peer);
    hear_unmet();
    return Status::ok;
} catch (const std::bad_alloc&) {
    why = "no memory";
    return Status::out_of_memory;
}

// What the peer wrote before it was met. Nothing of that is missed: listen() takes a bit out of the segment,
// and puts the ring aside if nobody knows its sender, with the lock held, as it is here. So a ring was put
// aside before, and who sleeps is woken for it; or its bit is taken out after this, when the sender is known.
// What is written to a ring that is aside sets its bit again, and rings, as ever.
void ShmPort::Impl::hear_unmet() {
    bool any = false;
    for (std::size_t word = 0; word < unread_.size(); ++word) {
        any |= unmet_[word] != 0;
        unread_[word] |= std::exchange(unmet_[word], 0);
    }
    if (any) stir();
}

bool ShmPort::Impl::knows(std::uint32_t process) {
    const Poster lock(*this);
    return find(process) != nullptr;
}

// In the upper half, where nobody else names channels.
ChannelName ShmPort::Impl::name_channel() {
    const Poster lock(*this);
    return {options_.process, next_counter_++};
}

// Of one request two frames may wait for room: what the peer asked for, and that it is done.
void ShmPort::Impl::reserve(std::size_t slots) {
    const std::size_t all = requests_.reserved() + slots;
    posted_.reserve(all);
    early_.reserve(all);
    waiting_.reserve(2 * all);
    requests_.reserve(slots);
}

void ShmPort::Impl::expect(std::size_t bytes) try {
    requests_.expect(bytes, bytes <= options_.eager_bytes);
    reserve(0);
} catch (const std::bad_alloc&) {
    // Then it is taken when it is needed.
}

bool ShmPort::Impl::open(Channel& channel) { return channels_.emplace(channel.name(), &channel).second; }

bool ShmPort::Impl::poll(bool woken) {
    sleeps_ += woken;
    fetch_postponed();
    bool moved = listen();
    if (waiting_frames_ != 0) {
        for (const auto& [process, peer] : peers_)
            if (!peer->outgoing.empty() && !peer->dead) moved |= flush(*peer);
    }
    if (jobs_ != 0) moved |= copy_a_chunk();
    if (woken || (!moved && ++idle_polls_ >= polls_per_look)) {
        idle_polls_ = 0;
        look_for_deaths();
    }
    return moved;
}

void ShmPort::Impl::look_for_deaths() {
    epoll_event events[16];
    const int count = epoll_wait(descriptor_.get(), events, 16, 0);
    for (int i = 0; i < count; ++i) {
        Peer* const peer = static_cast<Peer*>(events[i].data.ptr);
        if (peer == nullptr) continue;
        epoll_ctl(descriptor_.get(), EPOLL_CTL_DEL, peer->segment.life(), nullptr);
        if (peer->dead) continue;
        // What it wrote while it lived counts.
        for (std::uint32_t ring = 0; ring < by_ring_.size() && !peer->heard; ++ring) sender_of(ring);
        if (peer->heard) drain(*peer, ~0u);
        if (!peer->dead) mourn(*peer, "its process has ended");
    }
}

// Fails the channels that still want something of it. One that has finished is not missed by anybody.
void ShmPort::Impl::mourn(Peer& peer, const char* reason) {
    if (peer.dead) return;
    peer.dead = true;
    peer.reason = reason;
    peer.announced_bytes = 0;
    peer.first_announced = peer.last_announced = nullptr;
    peer.readies.clear();
    for (; !peer.outgoing.empty(); --waiting_frames_) waiting_.free(peer.outgoing.pop());
    for (Request& request : requests_) {
        const bool wants = request.kind == Request::Kind::send || request.kind == Request::Kind::receive ||
                           request.kind == Request::Kind::put;
        if (!wants || request.peer != &peer) continue;
        if (request.channel != nullptr) request.channel->lose(&peer, -1);
        if (request.copying) continue;  // the queue finds that it is dead
        if (request.kind == Request::Kind::receive && request.protocol == nullptr)
            forget(request);
        else
            requests_.free(request);
    }
}

Status ShmPort::Impl::arm(Channel& channel) {
    if (rung_ != 0) silence_failed();
    // While another channel's bell rings the descriptor is readable and nobody can sleep on it.
    if (channel.has_news() || rung_ != 0 || first_met_ != nullptr) return Status::in_progress;
    for (const std::uint64_t unread : unread_)
        if (unread != 0) return Status::in_progress;
    for (const Request* job = first_job_; job != nullptr; job = job->next_job)
        if (!job->blocked) return Status::in_progress;
    segment_.silence();
    stirred_ = false;
    shm::Header& header = segment_.header();
    // Others write into a ring and then look at `asleep`; we set it and then look for what they wrote.
    header.asleep.store(1, std::memory_order_seq_cst);
    bool pending = false;
    for (std::size_t word = 0; word < unread_.size(); ++word) pending |= header.written[word].load() != 0;
    if (waiting_frames_ != 0) {
        for (const auto& [process, peer] : peers_)
            pending |= !peer->outgoing.empty() && !peer->dead && peer->writer.want_space();
    }
    for (const Request* job = first_job_; job != nullptr; job = job->next_job)
        pending |= job->peer->dead || job->peer->writer.want_space();
    if (pending) {
        if (sleepers_ == 0) header.asleep.store(0, std::memory_order_relaxed);
        stir();  // the bell that was silenced may have been for others, who have not heard it yet
        return Status::in_progress;
    }
    if (!channel.asleep) ++sleepers_;
    channel.asleep = true;
    channel.sleeper = pthread_self();
    return Status::ok;
}

void ShmPort::Impl::stir() {
    if (sleepers_ == 0 || stirred_) return;
    stirred_ = true;
    segment_.ring_bell();
}

void ShmPort::Impl::tell(Channel& channel) {
    // The thread that polls now will ask for this channel's news before it sleeps again.
    if (!channel.asleep || channel.rung || pthread_equal(channel.sleeper, pthread_self())) return;
    channel.rung = true;
    channel.rung_ns = now_ns();
    if (rung_++ != 0) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof one);
}

// One that has failed is never polled again, so nobody would answer its bell. Who slept for it has woken by
// then: no sleep is longer.
void ShmPort::Impl::silence_failed() {
    const std::uint64_t time_ns = now_ns();
    for (const auto& [name, channel] : channels_)
        if (channel->rung && channel->has_failed() && time_ns - channel->rung_ns > longest_sleep_ns)
            awake(*channel);
}

void ShmPort::Impl::awake(Channel& channel) {
    if (!channel.asleep) return;
    channel.asleep = false;
    if (--sleepers_ == 0) segment_.header().asleep.store(0, std::memory_order_relaxed);
    if (!channel.rung) return;
    channel.rung = false;
    if (--rung_ != 0) return;
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(bell_.get(), &count, sizeof count);
}

void* ShmPort::Impl::allocate(std::size_t bytes) try {
    bytes = (std::max<std::size_t>(bytes, 1) + arena_alignment - 1) / arena_alignment * arena_alignment;
    const Poster lock(*this);
    for (const auto& [begin, length] : free_) {
        if (length < bytes) continue;
        used_.emplace(begin, bytes);
        std::byte* const memory = segment_.arena() + begin;
        const std::size_t rest = length - bytes, next = begin + bytes;
        free_.erase(begin);
        if (rest != 0) free_.emplace(next, rest);
        return memory;
    }
    return nullptr;
} catch (const std::bad_alloc&) {
    return nullptr;
}

void ShmPort::Impl::release(void* memory) {
    const Poster lock(*this);
    const auto used =
        used_.find(static_cast<std::size_t>(static_cast<std::byte*>(memory) - segment_.arena()));
    if (used == used_.end()) return;
    auto node = used_.extract(used);
    auto freed = free_.insert(std::move(node)).position;
    const auto after = std::next(freed);
    if (after != free_.end() && freed->first + freed->second == after->first) {
        freed->second += after->second;
        free_.erase(after);
    }
    if (freed == free_.begin()) return;
    const auto before = std::prev(freed);
    if (before->first + before->second != freed->first) return;
    before->second += freed->second;
    free_.erase(freed);
}

Status ShmPort::Impl::set_protocol(const char* name) {
    const shm::Protocol* const found = name[0] == '\0' ? nullptr : shm::find_protocol(name);
    if (found == nullptr && name[0] != '\0') return Status::invalid_argument;
    const Poster lock(*this);
    forced_ = found;
    return Status::ok;
}

void ShmPort::Impl::set_wire_ns(std::uint64_t ns) {
    segment_.header().wire_ns.store(ns, std::memory_order_relaxed);
}

// Delivers what was sent, and says that it leaves.
ShmPort::Impl::~Impl() {
    if (in_child()) {
        // The segments are the parent's; only what was mapped here goes.
        for (auto& [process, peer] : peers_) (void)peer.release();
        return;
    }
    const Poster lock(*this);
    Frame leaving;
    leaving.kind = shm::FrameKind::leaving;
    for (const auto& [process, peer] : peers_)
        if (!peer->dead && process != options_.process) write(*peer, leaving);
    const std::uint64_t begin_ns = now_ns();
    while (waiting_frames_ != 0 && now_ns() - begin_ns < longest_close_ns) {
        for (const auto& [process, peer] : peers_)
            if (!peer->dead) flush(*peer);
        look_for_deaths();
        if (now_ns() - begin_ns > spin_ns) usleep(100);
    }
}

}  // namespace thalweg
