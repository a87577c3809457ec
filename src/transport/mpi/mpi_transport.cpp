#include "transport/mpi/mpi_transport.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

#include "transport/mpi/host.h"

namespace thalweg {
namespace {

// Step::message takes the low bits of a tag, see docs/decisions: tags and credits. Above them the operation,
// above that the channel where several share a communicator.
constexpr unsigned message_bits = MpiTransport::message_bits;
constexpr unsigned channel_bits = std::countr_zero(MpiTransport::most_channels);
// The smallest MPI_TAG_UB that the standard allows: two live operations of one channel.
constexpr int smallest_tag_ub = 32767;
// MPI's counts are int; a round number below INT_MAX keeps the parts of a large message aligned.
constexpr std::size_t largest_message_bytes = std::size_t{1} << 30;
constexpr std::size_t not_a_receive = ~std::size_t{0};

// The bits of a tag above those of the message, by the communicator's own MPI_TAG_UB, or the world's (where a
// library attaches it to nothing else), or what the standard promises. The same on all ranks, because these
// attributes are.
unsigned free_bits(MPI_Comm comm) {
    int* tag_ub = nullptr;
    int found = 0;
    int initialized = 0;
    if (host()->Comm_get_attr(comm, MPI_TAG_UB, &tag_ub, &found) != MPI_SUCCESS) found = 0;
    // A program that only has sessions has no world to ask.
    if (!found && host()->Initialized(&initialized) == MPI_SUCCESS && initialized) {
        if (host()->Comm_get_attr(host()->comm_world, MPI_TAG_UB, &tag_ub, &found) != MPI_SUCCESS) found = 0;
    }
    const std::uint64_t tags = static_cast<std::uint64_t>(found ? *tag_ub : smallest_tag_ub) + 1;
    return static_cast<unsigned>(std::bit_width(tags)) - 1 - message_bits;
}

// Whether the program itself got the right to call MPI from any thread.
bool any_thread_may_call() {
    int initialized = 0, provided = MPI_THREAD_SINGLE;
    if (host()->Initialized(&initialized) != MPI_SUCCESS || !initialized) return false;
    return host()->Query_thread(&provided) == MPI_SUCCESS && provided == MPI_THREAD_MULTIPLE;
}

// MPICH sends by rendezvous what is synchronous and large (4.0.2 beyond 16 KiB, 5.0.2 beyond 32), whatever it
// does with other messages. Intel MPI sends it at once, and Open MPI's large messages all ask.
bool asks_first() { return std::strncmp(host()->library_version, "MPICH", 5) == 0; }

// `bytes` bytes as one element, where there are more than an int counts: of `unequal` messages. To be freed;
// an error of MPI.
int make_type_of(std::size_t bytes, MPI_Datatype& whole) {
    const Host& mpi = *host();
    const std::size_t full = bytes / largest_message_bytes;
    const int counts[2] = {static_cast<int>(full), static_cast<int>(bytes % largest_message_bytes)};
    const MPI_Aint places[2] = {0, static_cast<MPI_Aint>(full * largest_message_bytes)};
    MPI_Datatype types[2] = {mpi.byte, mpi.byte};
    int error = mpi.Type_contiguous(static_cast<int>(largest_message_bytes), mpi.byte, &types[0]);
    if (error != MPI_SUCCESS) return error;
    error = mpi.Type_create_struct(2, counts, places, types, &whole);
    mpi.Type_free(&types[0]);
    return error == MPI_SUCCESS ? mpi.Type_commit(&whole) : error;
}

// post(count, type) with what is `bytes` bytes.
template <typename Post>
int post_as(std::size_t bytes, Post post) {
    if (bytes <= INT_MAX) return post(static_cast<int>(bytes), host()->byte);
    MPI_Datatype whole;
    if (const int error = make_type_of(bytes, whole); error != MPI_SUCCESS) return error;
    const int error = post(1, whole);
    host()->Type_free(&whole);  // when the request is complete
    return error;
}

// Of a message that is no longer than its receive, `most` bytes.
std::uint64_t bytes_in(const MPI_Status& status, std::size_t most) {
    if (most > INT_MAX) {
        MPI_Count received = 0;
        host()->Get_elements_x(&status, host()->byte, &received);
        return static_cast<std::uint64_t>(received);
    }
    int received = 0;
    host()->Get_count(&status, host()->byte, &received);
    return static_cast<std::uint64_t>(received);
}

constexpr WayTaken mpis_choice{Way::mpi, "the MPI library carries all of it"};

// One bit is left to the operation, so that it has two values.
unsigned channel_bits_of(unsigned bits) { return std::min(channel_bits, bits - 1); }

}  // namespace

unsigned MpiTransport::channels_on(MPI_Comm comm) { return 1u << channel_bits_of(free_bits(comm)); }

int MpiTransport::first_tag_on(MPI_Comm comm, unsigned channel) {
    const unsigned bits = free_bits(comm);
    return static_cast<int>(channel << (bits - channel_bits_of(bits) + message_bits));
}

std::unique_ptr<MpiTransport> MpiTransport::make(MPI_Comm comm, Slot slots, int& error) {
    MpiPlace place{comm, 0, 1, {}, 0};
    error = host()->Comm_set_errhandler(comm, host()->errors_return);
    if (error == MPI_SUCCESS) error = host()->Comm_rank(comm, &place.rank);
    if (error == MPI_SUCCESS) error = host()->Comm_size(comm, &place.size);
    if (error != MPI_SUCCESS) return nullptr;
    return std::unique_ptr<MpiTransport>(new MpiTransport(std::move(place), free_bits(comm), slots));
}

std::unique_ptr<MpiTransport> MpiTransport::make_beside_others(MpiPlace place, Slot slots) {
    const unsigned bits = free_bits(place.comm);
    return std::unique_ptr<MpiTransport>(
        new MpiTransport(std::move(place), bits - channel_bits_of(bits), slots));
}

MpiTransport::MpiTransport(MpiPlace place, unsigned operation_bits, Slot slots)
    : place_(std::move(place)),
      first_tag_(static_cast<int>(place_.channel << (operation_bits + message_bits))) {
    capabilities_.name = "mpi";
    capabilities_.max_message_bytes = largest_message_bytes;
    capabilities_.live_operations = 1u << operation_bits;
    capabilities_.any_thread = any_thread_may_call();
    capabilities_.overtakes = asks_first();
    if (grow(slots) != Status::ok) throw std::bad_alloc();
}

Status MpiTransport::grow(Slot slots) try {
    if (slots <= this->slots()) return Status::ok;
    requests_.resize(slots);
    slot_of_.resize(slots);
    indices_.resize(slots);
    statuses_.resize(slots);
    completed_.reserve(slots);
    unequal_.resize(slots);
    received_.resize(slots);
    accounts_.resize(slots);
    bytes_.resize(slots);  // the last, because it is what slots() says
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

int MpiTransport::tag_of(MessageId id) const {
    const std::uint32_t operation = id.operation & (capabilities_.live_operations - 1);
    return first_tag_ + static_cast<int>(operation << message_bits | id.message);
}

Status MpiTransport::post(Slot slot, int error, MPI_Request request) {
    if (error != MPI_SUCCESS) {
        last_error_ = error;
        return Status::transport_failed;
    }
    requests_[active_] = request;
    slot_of_[active_] = slot;
    ++active_;
    return Status::ok;
}

Status MpiTransport::post_send(Slot slot, int peer, MessageId id, const void* data, std::size_t bytes,
                               SendMode mode) {
    MPI_Request request;
    auto* const call = mode == SendMode::synchronous ? host()->Issend : host()->Isend;
    bytes_[slot] = not_a_receive;
    unequal_[slot] = false;
    if (PeerAccount* const account = account_of(peer); account != nullptr && bytes != 0) {
        account->sent(Way::mpi, bytes);
        account->takes(0, mpis_choice);
    }
    const int error = post_as(bytes, [&](int count, MPI_Datatype type) {
        return call(data, count, type, place_.ranks[peer], tag_of(id), place_.comm, &request);
    });
    return post(slot, error, request);
}

Status MpiTransport::post_recv(Slot slot, int peer, MessageId id, void* data, std::size_t bytes) {
    MPI_Request request;
    bytes_[slot] = bytes;
    unequal_[slot] = id.unequal;
    received_[slot] = bytes;
    accounts_[slot] = account_of(peer);
    const int error = post_as(bytes, [&](int count, MPI_Datatype type) {
        return host()->Irecv(data, count, type, place_.ranks[peer], tag_of(id), place_.comm, &request);
    });
    return post(slot, error, request);
}

Status MpiTransport::progress(std::span<Slot> done, std::size_t& count) {
    // Room for all: slots that are handed out late are still busy.
    if (active_ != 0) {
        if (const Status status = test(); status != Status::ok) return status;
    }
    count = std::min(done.size(), completed_.size());
    std::copy_n(completed_.begin(), count, done.begin());
    completed_.erase(completed_.begin(), completed_.begin() + static_cast<std::ptrdiff_t>(count));
    return Status::ok;
}

Status MpiTransport::test() {
    int completed = 0;
    const int error =
        host()->Testsome(active_, requests_.data(), &completed, indices_.data(), statuses_.data());
    if (error != MPI_SUCCESS) {
        last_error_ = error;
        if (const Status status = find_error(completed); failed(status)) return status;
    }
    if (completed == 0 || completed == MPI_UNDEFINED) return Status::ok;
    for (int i = 0; i < completed; ++i) {
        const Slot slot = slot_of_[indices_[i]];
        completed_.push_back(slot);
        if (bytes_[slot] == not_a_receive || received_[slot] == too_many_bytes) continue;
        received_[slot] = bytes_in(statuses_[i], bytes_[slot]);
        if (received_[slot] != bytes_[slot] && !unequal_[slot]) {
            last_error_ = MPI_SUCCESS;
            return Status::mismatch;
        }
        if (accounts_[slot] != nullptr && received_[slot] != 0) {
            accounts_[slot]->received(Way::mpi, received_[slot]);
            accounts_[slot]->takes(0, mpis_choice);
        }
    }
    // Fill the holes from the end; from the highest index down, so that what moves is never a hole itself.
    std::sort(indices_.begin(), indices_.begin() + completed);
    for (int i = completed; i-- > 0;) {
        --active_;
        requests_[indices_[i]] = requests_[active_];
        slot_of_[indices_[i]] = slot_of_[active_];
    }
    return Status::ok;
}

// Testsome failed: the statuses say which request, where there are any. ok: only receives that may be too
// small were.
Status MpiTransport::find_error(int completed) {
    int error_class = MPI_SUCCESS;
    host()->Error_class(last_error_, &error_class);
    if (error_class == MPI_ERR_IN_STATUS && completed != MPI_UNDEFINED) {
        const int all = last_error_;
        for (int i = 0; i < completed; ++i) {
            if (statuses_[i].MPI_ERROR == MPI_SUCCESS) continue;
            last_error_ = statuses_[i].MPI_ERROR;
            host()->Error_class(last_error_, &error_class);
            const Slot slot = slot_of_[indices_[i]];
            if (error_class != MPI_ERR_TRUNCATE || !unequal_[slot])
                return error_class == MPI_ERR_TRUNCATE ? Status::mismatch : Status::transport_failed;
            received_[slot] = too_many_bytes;
        }
        if (last_error_ == all) return Status::transport_failed;
        last_error_ = MPI_SUCCESS;
        return Status::ok;
    }
    return error_class == MPI_ERR_TRUNCATE ? Status::mismatch : Status::transport_failed;
}

// A probe that finds a message may return without having done anything: so for a tag that no message has.
void MpiTransport::drive_host() {
    int found = 0;
    host()->Iprobe(MPI_ANY_SOURCE, spare_tag(), place_.comm, &found, MPI_STATUS_IGNORE);
}

}  // namespace thalweg
