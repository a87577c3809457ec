#include "plan/datatype.h"

#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "plan/attendance.h"
#include "plan/keyvals.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

using Runs = std::vector<ByteRun>;

// What a constructor was called with, whatever the width of its counts was.
class Contents {
  public:
    explicit Contents(MPI_Datatype type) {
        const Host& mpi = *host();
#if MPI_VERSION >= 4
        if (mpi.Type_get_envelope_c != nullptr && mpi.Type_get_contents_c != nullptr) {
            MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
            if (mpi.Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner_) !=
                MPI_SUCCESS)
                return;
            valid_ = true;
            if (named()) return;
            integers_.resize(integers);
            addresses_.resize(addresses);
            counts_.resize(counts);
            types_.resize(types);
            valid_ = mpi.Type_get_contents_c(type, integers, addresses, counts, types, integers_.data(),
                                             addresses_.data(), counts_.data(), types_.data()) == MPI_SUCCESS;
            if (!valid_) types_.clear();
            return;
        }
#endif
        int integers = 0, addresses = 0, types = 0;
        if (mpi.Type_get_envelope(type, &integers, &addresses, &types, &combiner_) != MPI_SUCCESS) return;
        valid_ = true;
        if (named()) return;
        integers_.resize(integers);
        addresses_.resize(addresses);
        types_.resize(types);
        valid_ = mpi.Type_get_contents(type, integers, addresses, types, integers_.data(), addresses_.data(),
                                       types_.data()) == MPI_SUCCESS;
        if (!valid_) types_.clear();
    }

    // The handles are new references, except to predefined types.
    ~Contents() {
        for (MPI_Datatype& type : types_)
            if (!Contents::is_predefined(type)) host()->Type_free(&type);
    }
    Contents(const Contents&) = delete;
    Contents& operator=(const Contents&) = delete;

    bool valid() const { return valid_; }
    int combiner() const { return combiner_; }
    bool named() const {
        return combiner_ == MPI_COMBINER_NAMED || combiner_ == MPI_COMBINER_F90_REAL ||
               combiner_ == MPI_COMBINER_F90_COMPLEX || combiner_ == MPI_COMBINER_F90_INTEGER;
    }
    MPI_Datatype type(std::size_t i) const { return types_[i]; }
    bool large() const { return !counts_.empty(); }

    // The arguments in the order of the constructor's list. In the large form displacements and counts share
    // one array; in the small form byte displacements are addresses and everything else is an integer.
    std::int64_t number(std::size_t i) const { return large() ? counts_[i] : integers_[i]; }
    // Byte displacement i of a constructor whose numbers before the displacements are `before`.
    std::int64_t displacement(std::size_t i, std::size_t before) const {
        return large() ? counts_[before + i] : static_cast<std::int64_t>(addresses_[i]);
    }
    int integer(std::size_t i) const { return integers_[i]; }

  private:
    static bool is_predefined(MPI_Datatype type) {
        const Host& mpi = *host();
        int combiner = MPI_COMBINER_NAMED;
#if MPI_VERSION >= 4
        if (mpi.Type_get_envelope_c != nullptr) {
            MPI_Count ignored[4];
            mpi.Type_get_envelope_c(type, &ignored[0], &ignored[1], &ignored[2], &ignored[3], &combiner);
        } else
#endif
        {
            int ignored[3];
            mpi.Type_get_envelope(type, &ignored[0], &ignored[1], &ignored[2], &combiner);
        }
        return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
               combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
    }

    bool valid_ = false;
    int combiner_ = -1;
    std::vector<int> integers_;
    std::vector<MPI_Aint> addresses_;
    std::vector<MPI_Count> counts_;
    std::vector<MPI_Datatype> types_;
};

// Puts copies of a type's runs one after another, in the order of the type map.
class Gather {
  public:
    // Copies at this distance lie side by side.
    static bool is_one_run(const Runs& element, std::int64_t distance) {
        return element.size() == 1 && distance == static_cast<std::int64_t>(element[0].bytes);
    }
    // False when there would be too many runs.
    bool place(const Runs& element, std::int64_t extent, std::int64_t elements, std::int64_t at) {
        if (element.empty() || elements == 0) return true;
        // Elements that touch are one run; adding them one by one would only take longer.
        if (is_one_run(element, extent))
            return add(at + element[0].offset, element[0].bytes * static_cast<std::uint64_t>(elements));
        for (std::int64_t i = 0; i < elements; ++i)
            for (const ByteRun& run : element)
                if (!add(at + i * extent + run.offset, run.bytes)) return false;
        return true;
    }
    Runs take() { return std::move(runs_); }

  private:
    bool add(std::int64_t offset, std::uint64_t bytes) {
        if (bytes == 0) return true;
        if (!runs_.empty() && runs_.back().offset + static_cast<std::int64_t>(runs_.back().bytes) == offset) {
            runs_.back().bytes += bytes;
            return true;
        }
        if (runs_.size() == most_runs) return false;
        runs_.push_back({offset, bytes});
        return true;
    }
    Runs runs_;
};

std::int64_t extent_of(MPI_Datatype type) {
    MPI_Count lower = 0, extent = 0;
    host()->Type_get_extent_x(type, &lower, &extent);
    return extent;
}

// Predefined types are one run, except the pairs of a value and an int with a gap.
Runs runs_of_named(std::uint64_t size, std::int64_t extent) {
    if (size == 0) return {};
    if (extent == static_cast<std::int64_t>(size)) return {{0, size}};
    const std::uint64_t value = size - sizeof(int);
    const std::uint64_t second = (value + sizeof(int) - 1) / sizeof(int) * sizeof(int);
    if (second == value) return {{0, size}};
    return {{0, value}, {static_cast<std::int64_t>(second), sizeof(int)}};
}

std::optional<Runs> runs_of(MPI_Datatype type);

// A subarray: the innermost dimension is a run of elements, the others count like an odometer. Dimensions
// that are taken whole are one with those around them, so that every turn begins a run of its own.
bool place_subarray(const Contents& contents, const Runs& element, std::int64_t extent, Gather& gather) {
    const std::size_t given = static_cast<std::size_t>(contents.integer(0));
    const std::size_t base = contents.large() ? 0 : 1;
    const int order = contents.large() ? contents.integer(1) : contents.integer(3 * given + 1);
    std::vector<std::int64_t> size(given), part(given), start(given);
    for (std::size_t i = 0; i < given; ++i) {
        // Slowest dimension first, as C orders them.
        const std::size_t from = order == MPI_ORDER_C ? i : given - 1 - i;
        size[i] = contents.number(base + from);
        part[i] = contents.number(base + given + from);
        start[i] = contents.number(base + 2 * given + from);
        if (part[i] == 0) return true;
    }
    std::size_t dimensions = given;
    while (dimensions > 1 && part[dimensions - 1] == size[dimensions - 1]) {
        --dimensions;
        for (auto* of : {&size, &part, &start}) (*of)[dimensions - 1] *= size[dimensions];
    }
    std::vector<std::int64_t> index(dimensions, 0);
    for (;;) {
        std::int64_t at = 0;
        for (std::size_t i = 0; i < dimensions; ++i) at = at * size[i] + start[i] + index[i];
        if (!gather.place(element, extent, part[dimensions - 1], at * extent)) return false;
        std::size_t i = dimensions - 1;
        while (i > 0 && ++index[i - 1] == part[i - 1]) index[--i] = 0;
        if (i == 0) return true;
    }
}

// Constructors of one inner type.
bool place_copies(const Contents& contents, const Runs& element, std::int64_t extent, Gather& gather) {
    const auto number = [&contents](std::size_t i) { return contents.number(i); };
    switch (contents.combiner()) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
            return gather.place(element, extent, 1, 0);
        case MPI_COMBINER_CONTIGUOUS:
            return gather.place(element, extent, number(0), 0);
        case MPI_COMBINER_VECTOR:
        case MPI_COMBINER_HVECTOR: {
            const std::int64_t stride =
                contents.combiner() == MPI_COMBINER_VECTOR ? number(2) * extent : contents.displacement(0, 2);
            if (element.empty() || number(1) == 0) return true;
            // Blocks that touch, as elements that do.
            if (Gather::is_one_run(element, extent) && stride == number(1) * extent)
                return gather.place(element, extent, number(0) * number(1), 0);
            for (std::int64_t i = 0; i < number(0); ++i)
                if (!gather.place(element, extent, number(1), i * stride)) return false;
            return true;
        }
        case MPI_COMBINER_INDEXED:
        case MPI_COMBINER_HINDEXED: {
            const std::size_t count = static_cast<std::size_t>(number(0));
            for (std::size_t i = 0; i < count; ++i) {
                const std::int64_t at = contents.combiner() == MPI_COMBINER_INDEXED
                                            ? number(1 + count + i) * extent
                                            : contents.displacement(i, 1 + count);
                if (!gather.place(element, extent, number(1 + i), at)) return false;
            }
            return true;
        }
        case MPI_COMBINER_INDEXED_BLOCK:
        case MPI_COMBINER_HINDEXED_BLOCK: {
            const std::size_t count = static_cast<std::size_t>(number(0));
            for (std::size_t i = 0; i < count; ++i) {
                const std::int64_t at = contents.combiner() == MPI_COMBINER_INDEXED_BLOCK
                                            ? number(2 + i) * extent
                                            : contents.displacement(i, 2);
                if (!gather.place(element, extent, number(1), at)) return false;
            }
            return true;
        }
        case MPI_COMBINER_SUBARRAY:
            return place_subarray(contents, element, extent, gather);
        default:
            return false;
    }
}

// The runs of one element in the order of the type map; empty optional: too many, or a constructor we do not
// know (darray, the deprecated Fortran forms).
std::optional<Runs> runs_of(MPI_Datatype type) {
    const Contents contents(type);
    if (!contents.valid()) return std::nullopt;
    if (contents.named()) return runs_of_named(static_cast<std::uint64_t>(type_size(type)), extent_of(type));
    Gather gather;
    if (contents.combiner() == MPI_COMBINER_STRUCT) {
        const std::size_t count = static_cast<std::size_t>(contents.number(0));
        for (std::size_t i = 0; i < count; ++i) {
            const std::optional<Runs> element = runs_of(contents.type(i));
            if (!element || !gather.place(*element, extent_of(contents.type(i)), contents.number(1 + i),
                                          contents.displacement(i, 1 + count)))
                return std::nullopt;
        }
        return gather.take();
    }
    switch (contents.combiner()) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
        case MPI_COMBINER_CONTIGUOUS:
        case MPI_COMBINER_VECTOR:
        case MPI_COMBINER_HVECTOR:
        case MPI_COMBINER_INDEXED:
        case MPI_COMBINER_HINDEXED:
        case MPI_COMBINER_INDEXED_BLOCK:
        case MPI_COMBINER_HINDEXED_BLOCK:
        case MPI_COMBINER_SUBARRAY:
            break;
        default:
            return std::nullopt;
    }
    const std::optional<Runs> element = runs_of(contents.type(0));
    if (!element || !place_copies(contents, *element, extent_of(contents.type(0)), gather))
        return std::nullopt;
    return gather.take();
}

bool is_named(MPI_Datatype type) { return Contents(type).named(); }

// MPI has no call that tells; the libraries refuse to pack elements of such a type, even none. (To receive
// none MPICH does not refuse.)
bool is_committed(MPI_Datatype type) {
    int nothing = 0, position = 0;
    if (Attendance::self() == host()->comm_null) return true;
    return host()->Pack(&nothing, 0, type, &nothing, 0, &position, Attendance::self()) == MPI_SUCCESS;
}

// Two threads may meet a type at the same time, on two communicators. Setting the attribute twice would
// delete the shape that the first of them is using.
constinit std::mutex making_mutex;
// With the lock held.
constinit std::uint64_t latest_identity = TypeShape::predefined;

// Null where it was not made yet.
const TypeShape* known_shape(MPI_Datatype type) {
    void* known = nullptr;
    int found = 0;
    if (host()->Type_get_attr(type, keyvals().type, &known, &found) != MPI_SUCCESS || !found) return nullptr;
    return static_cast<const TypeShape*>(known);
}

}  // namespace

std::int64_t type_size(MPI_Datatype type) {
    const Host& mpi = *host();
    if (type == mpi.datatype_null) return -1;
    MPI_Count size = -1;
    if (mpi.Type_size_x(type, &size) != MPI_SUCCESS) return -1;
    return static_cast<std::int64_t>(size);
}

const TypeShape& shape_of(MPI_Datatype type, TypeShape& storage) {
    if (const TypeShape* const known = known_shape(type)) return *known;
    storage.size = static_cast<std::uint64_t>(type_size(type));
    storage.extent = extent_of(type);
    const bool named = is_named(type);
    if (named) storage.identity = TypeShape::predefined;
    if (named && storage.extent == static_cast<std::int64_t>(storage.size)) {
        storage.layout = Layout::contiguous(storage.size);
        return storage;
    }
    if (!named && !is_committed(type)) {
        storage.uncommitted = true;
        return storage;
    }
    std::lock_guard lock(making_mutex);
    if (const TypeShape* const known = known_shape(type)) return *known;
    // MPI itself packs where the map has too many runs, does not hold as many bytes as MPI says, or finds no
    // memory.
    storage.opaque = true;
    std::unique_ptr<TypeShape> kept;
    try {
        if (const std::optional<Runs> runs = runs_of(type)) {
            storage.layout = Layout::list(*runs, storage.extent);
            storage.opaque = storage.layout.size() != storage.size;
        }
        if (named) return storage;
        kept.reset(new TypeShape(storage));
        kept->identity = ++latest_identity;
    } catch (const std::bad_alloc&) {
        return storage;
    }
    if (host()->Type_set_attr(type, keyvals().type, kept.get()) != MPI_SUCCESS) return storage;
    return *kept.release();
}

}  // namespace thalweg
