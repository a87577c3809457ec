#include "plan/exchange.h"

#include <algorithm>
#include <map>
#include <new>

#include "base/float_modes.h"
#include "base/mixing.h"
#include "plan/datatype.h"
#include "plan/quiet_errors.h"
#include "plan/set_up.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

std::uint64_t sum_of(const std::vector<Letter>& letters) {
    std::uint64_t total = 0;
    for (const Letter& letter : letters) total += letter.bytes;
    return total;
}

Status attach_side(const std::vector<Letter>& letters, void* memory, bool copied, bool empty_travel,
                   ProgramBuffer& buffer, std::vector<Parcel>& parcels) {
    std::vector<Segment> segments;
    segments.reserve(letters.size());
    for (const Letter& letter : letters) segments.push_back(letter.where);
    std::vector<Block> blocks;
    if (const Status status = buffer.attach(memory, std::move(segments), blocks, copied); failed(status))
        return status;
    parcels.reserve(letters.size());
    for (std::size_t i = 0; i < letters.size(); ++i)
        if (blocks[i].bytes != 0 || empty_travel)
            parcels.push_back({letters[i].peer, blocks[i].offset, blocks[i].bytes});
    return Status::ok;
}

}  // namespace

std::uint64_t Letters::sent_bytes() const { return sum_of(outgoing); }

bool read_letter(const LetterArrays& side, int index, int peer, std::vector<Letter>& letters,
                 LetterType& last) {
    if (!side.given()) return false;
    const MPI_Count count = side.counts != nullptr ? side.counts[index] : side.large_counts[index];
    const MPI_Datatype type = side.types != nullptr ? side.types[index] : side.type;
    if (count < 0) return false;
    // A type that goes with no elements need not be one.
    if (count == 0) {
        letters.push_back({peer, 0, {}, 0});
        return true;
    }
    if (side.displacements == nullptr && side.large_displacements == nullptr) return false;
    if (!last.known || last.type != type) {
        if (type_size(type) < 0) return false;
        TypeShape named;
        const TypeShape& shape = shape_of(type, named);
        if (shape.uncommitted) return false;
        last = {true, type, shape.size, shape.extent, shape.identity};
    }
    const std::int64_t place =
        side.displacements != nullptr ? side.displacements[index] : side.large_displacements[index];
    std::uint64_t bytes = 0;
    std::int64_t displacement = place;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(count), last.size, &bytes) ||
        (side.types == nullptr && __builtin_mul_overflow(place, last.extent, &displacement)))
        return false;
    letters.push_back(
        {peer, 0, {static_cast<std::uint64_t>(count), displacement, type}, bytes, last.identity});
    return true;
}

bool read_letters(const LetterArrays& side, int size, std::vector<Letter>& letters) {
    letters.reserve(static_cast<std::size_t>(size));
    LetterType last;
    for (int peer = 0; peer < size; ++peer)
        if (!read_letter(side, peer, peer, letters, last)) return false;
    return true;
}

Status attach(const Letters& letters, void* send, void* receive, bool copied, ProgramBuffer& input,
              ProgramBuffer& output, Exchange& exchange) {
    const bool empty = exchange.empty_travel;
    Status status = attach_side(letters.incoming, receive, false, empty, output, exchange.incoming);
    if (failed(status)) return status;
    const std::vector<Letter>& sent = copied ? letters.incoming : letters.outgoing;
    return attach_side(sent, copied ? receive : send, copied, empty, input, exchange.outgoing);
}

void send_in_place(const Letters& letters, int rank, bool copied, Ongoing& ongoing) {
    const auto others = [rank](const std::vector<Letter>& side) {
        std::vector<int> peers;
        peers.reserve(side.size());
        for (const Letter& letter : side) peers.push_back(letter.peer == rank ? -1 : letter.peer);
        return peers;
    };
    Lane& lane = *ongoing.options().lane;
    const bool lasting = ongoing.options().persistent;
    ongoing.buffer().send_in_place(lane, others(letters.incoming), false);
    // In place the input is a copy of what is written over.
    if (!copied) ongoing.input().send_in_place(lane, others(letters.outgoing), lasting);
}

namespace {

std::uint64_t digest(int from, int to, int edge, std::uint64_t bytes) {
    return mixed({static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to),
                  static_cast<std::uint64_t>(edge), bytes});
}

}  // namespace

std::uint64_t difference_of(const Letters& letters, int rank) {
    std::uint64_t difference = 0;
    for (const Letter& letter : letters.outgoing)
        if (letter.bytes != 0) difference += digest(rank, letter.peer, letter.edge, letter.bytes);
    for (const Letter& letter : letters.incoming)
        if (letter.bytes != 0) difference -= digest(letter.peer, rank, letter.edge, letter.bytes);
    return difference;
}

TraitWords words_of(const Letters& letters, int rank, int size, const Topology& topology) {
    TraitWords words{};
    count_exchange(words, letters.outgoing, letters.incoming, rank, size, topology);
    words[word_of_digests] = difference_of(letters, rank);
    return words;
}

Traits agree_on_traits(MPI_Comm comm, const Letters& letters, int rank, int size, const Topology& topology,
                       std::optional<ChannelName>* name) {
    const QuietErrors quiet(comm);
    // And of rank 0: whether there is a name, its parts.
    std::uint64_t sums[trait_words + 3] = {};
    TraitWords own = words_of(letters, rank, size, topology);
    std::copy(own.begin(), own.end(), sums);
    if (rank == 0 && name != nullptr && *name) {
        sums[trait_words] = 1;
        sums[trait_words + 1] = (*name)->root;
        sums[trait_words + 2] = (*name)->counter;
    }
    agree_on(comm, host()->sum, sums);
    if (name != nullptr && sums[trait_words] != 0)
        *name = {static_cast<std::uint32_t>(sums[trait_words + 1]),
                 static_cast<std::uint32_t>(sums[trait_words + 2])};
    std::copy_n(sums, trait_words, own.begin());
    return traits_of(own, size);
}

TraitsToCome::TraitsToCome(MPI_Comm comm, const Letters& letters, int rank, int size,
                           const Topology& topology)
    : comm_(comm), size_(size) {
    const QuietErrors quiet(comm);
    const Host& mpi = *host();
    own_ = words_of(letters, rank, size, topology);
    demand(mpi.Iallreduce(own_.data(), all_.data(), trait_words, mpi.uint64, mpi.sum, comm, &request_));
    pending_ = true;
}

TraitsToCome::~TraitsToCome() {
    if (!pending_) return;
    const QuietErrors quiet(comm_);
    (void)complete(request_);
}

Traits TraitsToCome::take() {
    const QuietErrors quiet(comm_);
    pending_ = false;
    demand(complete(request_));
    return traits_of(all_, size_);
}

namespace {

using Pairs = std::map<std::pair<int, int>, std::uint64_t>;

// What goes between this rank and other hosts.
Pairs own_crossing(const Letters& letters, int rank, const Topology& topology) {
    Pairs pairs;
    const int here = topology.node_of(rank);
    for (const Letter& letter : letters.outgoing)
        if (letter.bytes != 0 && topology.node_of(letter.peer) != here)
            pairs[{rank, letter.peer}] += letter.bytes;
    for (const Letter& letter : letters.incoming)
        if (letter.bytes != 0 && topology.node_of(letter.peer) != here)
            pairs[{letter.peer, rank}] += letter.bytes;
    return pairs;
}

// All ranks of comm: what each sends (three words per pair) goes to its leader, who gets it in `gathered`.
// Null arrays of a rank without memory were agreed on before.
struct Gathering {
    std::vector<std::uint64_t> words, gathered;
    std::vector<int> send_counts, send_places, receive_counts, receive_places;
};

bool gather(MPI_Comm comm, int leader, Gathering& all) {
    const Host& mpi = *host();
    const auto own = static_cast<std::size_t>(leader);
    all.send_counts[own] = static_cast<int>(all.words.size());
    bool ready = mpi.Alltoall(all.send_counts.data(), 1, mpi.int_, all.receive_counts.data(), 1, mpi.int_,
                              comm) == MPI_SUCCESS;
    std::size_t total = 0;
    if (!ready) std::fill(all.receive_counts.begin(), all.receive_counts.end(), 0);
    for (std::size_t i = 0; i < all.receive_counts.size(); ++i) {
        all.receive_places[i] = static_cast<int>(total);
        total += static_cast<std::size_t>(all.receive_counts[i]);
    }
    ready = ready && total <= INT32_MAX;
    try {
        all.gathered.resize(ready ? total : 0);
    } catch (const std::bad_alloc&) {
        ready = false;
    }
    std::uint64_t trouble[1] = {!ready};
    agree_on(comm, mpi.max, trouble);
    if (trouble[0] != 0) return false;
    return mpi.Alltoallv(all.words.data(), all.send_counts.data(), all.send_places.data(), mpi.uint64,
                         all.gathered.data(), all.receive_counts.data(), all.receive_places.data(),
                         mpi.uint64, comm) == MPI_SUCCESS;
}

}  // namespace

bool inform_leaders(MPI_Comm comm, const Letters& letters, int rank, const Topology& topology,
                    Exchange& exchange) {
    const QuietErrors quiet(comm);
    const Host& mpi = *host();
    Gathering all;
    bool ready = true;
    try {
        const auto size = static_cast<std::size_t>(topology.size());
        for (auto* list : {&all.send_counts, &all.send_places, &all.receive_counts, &all.receive_places})
            list->assign(size, 0);
        for (const auto& [pair, bytes] : own_crossing(letters, rank, topology)) {
            all.words.push_back(static_cast<std::uint64_t>(pair.first));
            all.words.push_back(static_cast<std::uint64_t>(pair.second));
            all.words.push_back(bytes);
        }
        ready = all.words.size() <= INT32_MAX;
    } catch (const std::bad_alloc&) {
        ready = false;
    }
    std::uint64_t trouble[1] = {!ready};
    agree_on(comm, mpi.max, trouble);
    if (trouble[0] != 0) return false;
    const int leader = topology.ranks_on(topology.node_of(rank)).front();
    bool informed = gather(comm, leader, all);
    if (informed) try {
            for (std::size_t i = 0; i + 2 < all.gathered.size(); i += 3)
                exchange.crossing.push_back({static_cast<int>(all.gathered[i]),
                                             static_cast<int>(all.gathered[i + 1]), all.gathered[i + 2]});
            std::sort(exchange.crossing.begin(), exchange.crossing.end(),
                      [](const Traffic& a, const Traffic& b) {
                          return a.from != b.from ? a.from < b.from : a.to < b.to;
                      });
        } catch (const std::bad_alloc&) {
            informed = false;
        }
    trouble[0] = !informed;
    agree_on(comm, mpi.max, trouble);
    if (trouble[0] != 0) return false;
    exchange.hosts_informed = true;
    return true;
}

}  // namespace thalweg
