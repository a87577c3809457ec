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

// Puts the runs of layouts one after another, in the order of the type map.
class Gather {
  public:
    // `elements` times those of `element`, `distance` bytes apart. False when there would be too many runs.
    bool place(const Layout& element, std::int64_t distance, std::int64_t elements, std::int64_t at) {
        if (element.size() == 0 || elements == 0) return true;
        const auto many = static_cast<std::uint64_t>(elements);
        // Elements that touch are one run; adding them one by one would only take longer.
        if (element.form() == Layout::Form::contiguous &&
            distance == static_cast<std::int64_t>(element.size()))
            return add({at + element.first(), element.size() * many});
        if (element.runs() > most_runs) return false;
        own_.resize(element.runs());
        own_.resize(element.runs_of(0, element.size(), own_));
        for (std::uint64_t i = 0; i < many; ++i, at += distance)
            for (const ByteRun& run : own_)
                if (!add({at + run.offset, run.bytes})) return false;
        return true;
    }
    Layout take(std::int64_t extent) const { return Layout::list(runs_, extent); }

  private:
    bool add(ByteRun run) {
        if (!runs_.empty() &&
            runs_.back().offset + static_cast<std::int64_t>(runs_.back().bytes) == run.offset) {
            runs_.back().bytes += run.bytes;
            return true;
        }
        if (runs_.size() == most_runs) return false;
        runs_.push_back(run);
        return true;
    }
    std::vector<ByteRun> runs_;
    std::vector<ByteRun> own_;  // of the element that is placed
};

std::int64_t extent_of(MPI_Datatype type) {
    MPI_Count lower = 0, extent = 0;
    host()->Type_get_extent_x(type, &lower, &extent);
    return extent;
}

// Predefined types are one run, except the pairs of a value and an int with a gap.
Layout layout_of_named(std::uint64_t size, std::int64_t extent) {
    if (extent == static_cast<std::int64_t>(size) || size < sizeof(int))
        return Layout::strided(1, size, 0, extent);
    const std::uint64_t value = size - sizeof(int);
    const std::uint64_t second = (value + sizeof(int) - 1) / sizeof(int) * sizeof(int);
    const ByteRun runs[] = {{0, value}, {static_cast<std::int64_t>(second), sizeof(int)}};
    return Layout::list(runs, extent);
}

// `elements` elements `distance` bytes apart, the first at `at`; empty: too many runs. Its own extent is not
// the result's.
std::optional<Layout> copies_of(const Layout& element, std::int64_t elements, std::int64_t distance,
                                std::int64_t at = 0) {
    if (auto regular = Layout::repeated(element, static_cast<std::uint64_t>(elements), distance, 0, at))
        return regular;
    Gather gather;
    if (!gather.place(element, distance, elements, at)) return std::nullopt;
    return gather.take(0);
}

// One level on in a nest of loops: `inner` times `count`.
void nest(std::optional<Layout>& inner, std::int64_t count, std::int64_t stride, std::int64_t at = 0) {
    if (inner) inner = copies_of(*inner, count, stride, at);
}

// A subarray: of the innermost dimension a row of elements, of that as many as the next one says …
std::optional<Layout> subarray_of(const Contents& contents, const Layout& element, std::int64_t extent) {
    const std::size_t dimensions = static_cast<std::size_t>(contents.integer(0));
    const std::size_t base = contents.large() ? 0 : 1;
    const int order = contents.large() ? contents.integer(1) : contents.integer(3 * dimensions + 1);
    std::optional<Layout> found = element;
    std::int64_t stride = extent;
    for (std::size_t i = 0; i < dimensions; ++i) {
        const std::size_t from = order == MPI_ORDER_C ? dimensions - 1 - i : i;
        nest(found, contents.number(base + dimensions + from), stride,
             contents.number(base + 2 * dimensions + from) * stride);
        stride *= contents.number(base + from);
    }
    return found;
}

// Blocks of elements, each where an array says; one alone stays as simple as it is.
class Blocks {
  public:
    explicit Blocks(std::size_t count) : alone_(count == 1) {}
    bool place(const Layout& element, std::int64_t extent, std::int64_t elements, std::int64_t at) {
        if (!alone_) return gather_.place(element, extent, elements, at);
        only_ = copies_of(element, elements, extent, at);
        return only_.has_value();
    }
    Layout take() { return only_ ? std::move(*only_) : gather_.take(0); }

  private:
    const bool alone_;
    std::optional<Layout> only_;
    Gather gather_;
};

// Constructors of one inner type; empty: too many runs.
std::optional<Layout> combined(const Contents& contents, const Layout& element, std::int64_t extent) {
    const auto number = [&contents](std::size_t i) { return contents.number(i); };
    switch (contents.combiner()) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
            return element;
        case MPI_COMBINER_CONTIGUOUS:
            return copies_of(element, number(0), extent);
        case MPI_COMBINER_VECTOR:
        case MPI_COMBINER_HVECTOR: {
            std::optional<Layout> found = copies_of(element, number(1), extent);
            nest(found, number(0),
                 contents.combiner() == MPI_COMBINER_VECTOR ? number(2) * extent
                                                            : contents.displacement(0, 2));
            return found;
        }
        case MPI_COMBINER_INDEXED:
        case MPI_COMBINER_HINDEXED: {
            const std::size_t count = static_cast<std::size_t>(number(0));
            Blocks blocks(count);
            for (std::size_t i = 0; i < count; ++i) {
                const std::int64_t at = contents.combiner() == MPI_COMBINER_INDEXED
                                            ? number(1 + count + i) * extent
                                            : contents.displacement(i, 1 + count);
                if (!blocks.place(element, extent, number(1 + i), at)) return std::nullopt;
            }
            return blocks.take();
        }
        case MPI_COMBINER_INDEXED_BLOCK:
        case MPI_COMBINER_HINDEXED_BLOCK: {
            const std::size_t count = static_cast<std::size_t>(number(0));
            Blocks blocks(count);
            for (std::size_t i = 0; i < count; ++i) {
                const std::int64_t at = contents.combiner() == MPI_COMBINER_INDEXED_BLOCK
                                            ? number(2 + i) * extent
                                            : contents.displacement(i, 2);
                if (!blocks.place(element, extent, number(1), at)) return std::nullopt;
            }
            return blocks.take();
        }
        case MPI_COMBINER_SUBARRAY:
            return subarray_of(contents, element, extent);
        default:
            return std::nullopt;
    }
}

// Where the bytes of one element are, in the order of the type map; empty: too many runs for a list, or a
// constructor we do not know (darray, the deprecated Fortran forms).
std::optional<Layout> layout_of(MPI_Datatype type) {
    const Contents contents(type);
    if (!contents.valid()) return std::nullopt;
    if (contents.named())
        return layout_of_named(static_cast<std::uint64_t>(type_size(type)), extent_of(type));
    std::optional<Layout> found;
    switch (contents.combiner()) {
        case MPI_COMBINER_STRUCT: {
            const std::size_t count = static_cast<std::size_t>(contents.number(0));
            Blocks blocks(count);
            for (std::size_t i = 0; i < count; ++i) {
                const std::optional<Layout> element = layout_of(contents.type(i));
                if (!element || !blocks.place(*element, extent_of(contents.type(i)), contents.number(1 + i),
                                              contents.displacement(i, 1 + count)))
                    return std::nullopt;
            }
            found = blocks.take();
            break;
        }
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
            if (const std::optional<Layout> element = layout_of(contents.type(0)))
                found = combined(contents, *element, extent_of(contents.type(0)));
            break;
        default:
            break;
    }
    return found ? Layout::repeated(*found, 1, 0, extent_of(type)) : std::nullopt;
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
const KeptShape* kept_shape(MPI_Datatype type) {
    void* known = nullptr;
    int found = 0;
    if (host()->Type_get_attr(type, keyvals().type, &known, &found) != MPI_SUCCESS || !found) return nullptr;
    return static_cast<const KeptShape*>(known);
}
const TypeShape* known_shape(MPI_Datatype type) {
    const KeptShape* const kept = kept_shape(type);
    return kept == nullptr ? nullptr : kept->get();
}

}  // namespace

std::int64_t type_size(MPI_Datatype type) {
    const auto handle = static_cast<std::uint32_t>((std::intptr_t)type);
    if ((handle & sizes_in_handles.mask) == sizes_in_handles.predefined) return handle >> 8 & 255;
    const Host& mpi = *host();
    if (type == mpi.datatype_null || !may_be_datatype(type)) return -1;
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
    std::unique_ptr<KeptShape> kept;
    try {
        if (std::optional<Layout> layout = layout_of(type)) {
            storage.layout = std::move(*layout);
            storage.opaque = storage.layout.size() != storage.size;
        }
        if (named) return storage;
        const auto made = std::make_shared<TypeShape>(storage);
        made->identity = ++latest_identity;
        kept = std::make_unique<KeptShape>(made);
    } catch (const std::bad_alloc&) {
        return storage;
    }
    if (host()->Type_set_attr(type, keyvals().type, kept.get()) != MPI_SUCCESS) return storage;
    return **kept.release();
}

void share_shape(MPI_Datatype type, MPI_Datatype twin) try {
    const KeptShape* const known = kept_shape(type);
    if (known == nullptr) return;
    auto same = std::make_unique<KeptShape>(*known);
    if (host()->Type_set_attr(twin, keyvals().type, same.get()) == MPI_SUCCESS) same.release();
} catch (const std::bad_alloc&) {
    // Found out again, then.
}

}  // namespace thalweg
