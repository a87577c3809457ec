#include "plan/address_book.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/shared_memory.h"
#include "plan/set_up.h"
#include "topology/topology.h"
#include "transport/mpi/host.h"

namespace thalweg {
namespace {

// Ranks whose addresses are told at a time: what is in a rank's memory meanwhile, where another keeps them.
constexpr std::size_t usual_at_once = 4096;
// Fewer bytes are not worth a file and a mapping.
constexpr std::uint64_t fewest_shared_bytes = 4096;
// Ranks that keep the addresses themselves, because their host's are out of reach, keep so many.
constexpr std::size_t most_kept_alone = 4096;

// What each rank says of itself first.
struct Told {
    HostPage::Location page;  // where it keeps the book of its host, if it does
    std::uint64_t bytes = 0;  // of its address
};

// A test build tells a few at a time and shares any book; below 0 as many, and no reader reaches it. And it
// takes a job of a few for a large one.
int of_test([[maybe_unused]] const char* variable) {
#if defined(THALWEG_SABOTEUR)
    if (const char* const text = std::getenv(variable)) return std::atoi(text);
#endif
    return 0;
}

// Where things are in a book: offsets, processes, addresses. By process, not by rank.
class Shape {
  public:
    Shape(const std::vector<Told>& told, const RankMap& places) : count_(told.size()), order_(count_) {
        std::iota(order_.begin(), order_.end(), 0);
        std::sort(order_.begin(), order_.end(), [&](int a, int b) { return places[a] < places[b]; });
        begins_.resize(count_);
        for (const int rank : order_) {
            begins_[static_cast<std::size_t>(rank)] = address_bytes_;
            address_bytes_ += told[static_cast<std::size_t>(rank)].bytes;
        }
    }
    std::size_t bytes() const { return addresses_begin() + address_bytes_; }
    // Of the address of a rank.
    std::size_t begin(std::size_t rank) const { return addresses_begin() + begins_[rank]; }

    void write_index(std::span<std::byte> book, const std::vector<Told>& told, const RankMap& places) const {
        std::uint64_t offset = 0;
        for (std::size_t at = 0; at < count_; ++at) {
            const auto rank = static_cast<std::size_t>(order_[at]);
            const auto process = static_cast<std::uint32_t>(places[order_[at]]);
            std::memcpy(book.data() + at * sizeof offset, &offset, sizeof offset);
            std::memcpy(book.data() + processes_begin() + at * sizeof process, &process, sizeof process);
            offset += told[rank].bytes;
        }
        std::memcpy(book.data() + count_ * sizeof offset, &offset, sizeof offset);
    }
    UcxDirectory read(std::span<const std::byte> book) const {
        UcxDirectory directory;
        directory.offsets = {reinterpret_cast<const std::uint64_t*>(book.data()), count_ + 1};
        directory.processes = {reinterpret_cast<const std::uint32_t*>(book.data() + processes_begin()),
                               count_};
        directory.bytes = book.subspan(addresses_begin());
        return directory;
    }

  private:
    std::size_t processes_begin() const { return (count_ + 1) * sizeof(std::uint64_t); }
    std::size_t addresses_begin() const {
        return processes_begin() + (count_ + 1) / 2 * 2 * sizeof(std::uint32_t);
    }
    std::size_t count_;
    std::vector<int> order_;             // ranks by process
    std::vector<std::uint64_t> begins_;  // by rank, among the addresses
    std::uint64_t address_bytes_ = 0;
};

// The addresses of `told.size()` ranks, `at_once` of them at a time; kept in `book`, which is empty where
// another keeps them. Collective.
bool tell(MPI_Comm comm, const std::vector<Told>& told, const Shape& shape, std::span<const std::byte> own,
          std::size_t at_once, std::span<std::byte> book) {
    const Host& mpi = *host();
    int rank = 0;
    mpi.Comm_rank(comm, &rank);
    bool all_well = true;
    std::vector<int> counts(told.size()), begins(told.size());
    std::vector<std::byte> some;
    for (std::size_t first = 0; first < told.size(); first += at_once) {
        const std::size_t end = std::min(first + at_once, told.size());
        std::fill(counts.begin(), counts.end(), 0);
        int total = 0;
        for (std::size_t each = first; each < end; ++each) {
            counts[each] = static_cast<int>(told[each].bytes);
            begins[each] = total;
            total += counts[each];
        }
        some.resize(static_cast<std::size_t>(total));
        all_well &= mpi.Allgatherv(own.data(), counts[static_cast<std::size_t>(rank)], mpi.byte, some.data(),
                                   counts.data(), begins.data(), mpi.byte, comm) == MPI_SUCCESS;
        for (std::size_t each = first; each < end && !book.empty(); ++each)
            std::memcpy(book.data() + shape.begin(each), some.data() + begins[each], told[each].bytes);
    }
    return all_well;
}

}  // namespace

bool AddressBook::exchange(MPI_Comm comm, const Topology& topology, const RankMap& places,
                           std::span<const std::byte> own) {
    const Host& mpi = *host();
    const auto size = static_cast<std::size_t>(topology.size());
    int rank = 0;
    mpi.Comm_rank(comm, &rank);
    const std::span<const int> here = topology.ranks_on(topology.node_of(rank));
    const int few = of_test("THALWEG_TEST_ADDRESSES_AT_ONCE"),
              alone_few = of_test("THALWEG_TEST_ADDRESSES_ALONE");
    const std::size_t at_once = few != 0 ? static_cast<std::size_t>(std::abs(few)) : usual_at_once;
    const std::size_t most_alone = alone_few != 0 ? static_cast<std::size_t>(alone_few) : most_kept_alone;

    // The same memory for whoever has the book by itself, and where others read it.
    struct Memory {
        HostPage page;
        Mapping own;
    };
    const auto memory = std::make_shared<Memory>();
    HostPage& page = memory->page;
    const bool may_keep =
        here.front() == rank && here.size() > 1 && (few != 0 || own.size() * size >= fewest_shared_bytes);
    if (may_keep && failed(page.create(why_not_))) page = {};
    const Told mine{page.location(), own.size()};
    std::vector<Told> told(size);
    std::uint64_t unknown[1] = {
        mpi.Allgather(&mine, sizeof mine, mpi.byte, told.data(), sizeof mine, mpi.byte, comm) != MPI_SUCCESS};
    const Shape shape(told, places);
    const bool keeps =
        unknown[0] == 0 && page.location().descriptor >= 0 && !failed(page.resize(shape.bytes(), why_not_));
    agree_on(comm, mpi.max, unknown);
    if (unknown[0] != 0) {
        why_not_ = "the ranks cannot tell each other their addresses";
        return false;
    }

    const Told& keeper = told[static_cast<std::size_t>(here.front())];
    const bool reads = here.front() != rank && keeper.page.descriptor >= 0 && few >= 0 &&
                       !failed(page.open(keeper.page, shape.bytes(), why_not_));
    const bool alone = !keeps && !reads;
    once_per_host_ = !alone || here.size() == 1;
    // Never of the reserve, which what follows needs.
    const bool too_many = !once_per_host_ && size > most_alone;
    if (alone && !too_many) {
        memory->own = anonymous_memory(shape.bytes());
        if (memory->own.base() == nullptr) why_not_ = "no memory for the addresses of others";
    }
    const std::span<std::byte> kept(memory->own.base(), memory->own.bytes());
    const bool has_book = !alone || !kept.empty();
    if (!has_book && why_not_.empty()) why_not_ = "no rank of this host keeps them for all";
    if (size > most_alone) {
        std::uint64_t none[1] = {!has_book};
        agree_on(comm, mpi.max, none);
        if (none[0] != 0) {
            if (why_not_.empty()) why_not_ = "a rank has nowhere to keep the addresses of all";
            return false;
        }
    }
    const std::span<std::byte> written = keeps ? page.bytes() : kept;
    if (!written.empty()) shape.write_index(written, told, places);
    const bool all_told = tell(comm, told, shape, own, at_once, written);
    // A reader reads when its host's keeper has written.
    std::uint64_t incomplete[1] = {!all_told};
    const bool shares =
        std::any_of(told.begin(), told.end(), [](const Told& each) { return each.page.descriptor >= 0; });
    if (shares) agree_on(comm, mpi.max, incomplete);
    if (incomplete[0] != 0) why_not_ = "the ranks cannot tell each other their addresses";
    // Whoever reads has it mapped.
    if (keeps) page.end_writing();
    if (incomplete[0] != 0 || !has_book) return false;
    directory_ = shape.read(alone ? kept : page.bytes());
    directory_.owner = memory;
    return true;
}

std::string AddressBook::description() const {
    const std::size_t bytes = directory_.bytes.size();
    return std::to_string(directory_.processes.size()) + " processes, " + std::to_string(bytes) +
           (once_per_host_ ? " bytes, once per host" : " bytes, kept by each rank");
}

}  // namespace thalweg
