#include "plan/direct.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <unordered_map>

#include "algorithms/patterns/parcels.h"
#include "base/log.h"
#include "plan/quiet_errors.h"
#include "plan/set_up.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// What a receiver tells a sender, once per message: where it goes, how much is expected, and how to reach the
// memory.
struct Invitation {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t key_bytes = 0;
};

struct Letterbox {
    int rank, size;
    Run* run;
    std::vector<std::byte> key;
    std::uint64_t key_room = 0;  // of the longest key of any rank
    std::vector<int> send_counts, send_places, receive_counts, receive_places;
    std::vector<std::byte> sent, received;

    std::size_t record() const { return sizeof(Invitation) + key_room; }

    Problem problem() const {
        Problem problem;
        problem.rank = rank;
        problem.size = size;
        problem.bytes = run->key.bytes;
        if (run->key.exchange) problem.exchange = &*run->key.exchange;
        return problem;
    }
    bool counts(const Parcel& parcel) const { return parcel.bytes != 0 && parcel.peer != rank; }
};

// The memory between the first and the last byte that arrives.
Status expose(Letterbox& box, Lane& lane, std::byte* memory) {
    std::uint64_t end = 0;
    for (const Parcel& parcel : patterns::incoming_of(box.problem()))
        if (box.counts(parcel)) end = std::max(end, parcel.offset + parcel.bytes);
    if (end == 0) return Status::ok;
    Region region = 0;
    return lane.driven().exclusively([&] { return lane.transport().expose(memory, end, region, box.key); });
}

// False: more than MPI counts.
bool address(Letterbox& box) {
    const auto ranks = static_cast<std::size_t>(box.size);
    for (auto* list : {&box.send_counts, &box.send_places, &box.receive_counts, &box.receive_places})
        list->assign(ranks, 0);
    std::size_t to_send = 0, to_receive = 0;
    const auto add = [&](const std::vector<Parcel>& parcels, std::vector<int>& counts, std::size_t& total) {
        for (const Parcel& parcel : parcels) {
            if (!box.counts(parcel)) continue;
            total += box.record();
            if (total <= INT32_MAX)
                counts[static_cast<std::size_t>(parcel.peer)] += static_cast<int>(box.record());
        }
    };
    // Who receives from a rank invites it.
    add(patterns::incoming_of(box.problem()), box.send_counts, to_send);
    add(patterns::outgoing_of(box.problem()), box.receive_counts, to_receive);
    if (to_send > INT32_MAX || to_receive > INT32_MAX) return false;
    for (std::size_t i = 1; i < ranks; ++i) {
        box.send_places[i] = box.send_places[i - 1] + box.send_counts[i - 1];
        box.receive_places[i] = box.receive_places[i - 1] + box.receive_counts[i - 1];
    }
    box.sent.resize(to_send);
    box.received.resize(to_receive);
    std::vector<int> next = box.send_places;
    for (const Parcel& parcel : patterns::incoming_of(box.problem())) {
        if (!box.counts(parcel)) continue;
        int& place = next[static_cast<std::size_t>(parcel.peer)];
        const Invitation invitation{parcel.offset, parcel.bytes, box.key.size()};
        std::memcpy(&box.sent[static_cast<std::size_t>(place)], &invitation, sizeof invitation);
        std::memcpy(&box.sent[static_cast<std::size_t>(place) + sizeof invitation], box.key.data(),
                    box.key.size());
        place += static_cast<int>(box.record());
    }
    return true;
}

// Attaches what was received; the k-th put to a peer goes where its k-th invitation says.
Status take_aim(const Letterbox& box, Lane& lane, std::vector<Aim>& aims) {
    const std::span<const Step> steps = box.run->schedule->steps();
    aims.resize(steps.size());
    std::vector<int> next = box.receive_places;
    std::unordered_map<int, Target> attached;
    for (std::size_t id = 0; id < steps.size(); ++id) {
        const Step& step = steps[id];
        if (step.kind != StepKind::send || !step.direct) continue;
        int& place = next[static_cast<std::size_t>(step.peer)];
        Invitation invitation;
        std::memcpy(&invitation, &box.received[static_cast<std::size_t>(place)], sizeof invitation);
        const std::byte* const key = &box.received[static_cast<std::size_t>(place)] + sizeof invitation;
        place += static_cast<int>(box.record());
        // A put of any other size would be taken for one of this.
        if (invitation.bytes != step.source.bytes) return Status::mismatch;
        const auto known = attached.try_emplace(step.peer);
        Target& target = known.first->second;
        if (known.second) {
            const Status status = lane.driven().exclusively([&] {
                return lane.transport().attach(step.peer, {key, invitation.key_bytes}, target);
            });
            if (failed(status)) return status;
        }
        aims[id] = {target, invitation.offset};
    }
    return Status::ok;
}

template <typename Do>
bool attempt(Do action) try {
    return action();
} catch (const std::bad_alloc&) {
    return false;
}

}  // namespace

void open_direct(MPI_Comm comm, Lane& lane, Ongoing* ongoing, int rank, int size) {
    // Of memory inside hosts it says whom this rank may write to, which ranks need not have in common.
    const bool able = lane.transport().capabilities().one_sided;
    const QuietErrors quiet(comm);
    const Host& mpi = *host();
    Letterbox box{
        rank, size, ongoing == nullptr ? nullptr : ongoing->parts().front().run.get(), {}, 0, {}, {}, {}, {},
        {},   {}};
    bool ready = able && box.run != nullptr &&
                 attempt([&] { return !failed(expose(box, lane, ongoing->buffer().data())); });
    std::uint64_t most[2] = {!ready, box.key.size()};
    agree_on(comm, mpi.max, most);
    if (most[0] != 0) return;
    box.key_room = (most[1] + 7) / 8 * 8;
    ready = attempt([&] { return address(box); });
    std::uint64_t trouble[1] = {!ready};
    agree_on(comm, mpi.max, trouble);
    if (trouble[0] != 0) return;
    ready = mpi.Alltoallv(box.sent.data(), box.send_counts.data(), box.send_places.data(), mpi.byte,
                          box.received.data(), box.receive_counts.data(), box.receive_places.data(), mpi.byte,
                          comm) == MPI_SUCCESS;
    std::vector<Aim> aims;
    ready = ready && attempt([&] { return !failed(take_aim(box, lane, aims)); });
    trouble[0] = !ready;
    agree_on(comm, mpi.max, trouble);
    if (trouble[0] != 0) {
        THALWEG_LOG_AT(info, "persistent alltoall: memory cannot be put into; it is sent instead");
        return;
    }
    lane.driven().exclusively([&] { box.run->execution.aim(std::move(aims)); });
}

}  // namespace thalweg
