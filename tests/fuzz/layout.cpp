// Packing and unpacking any range of any layout, against a list of every byte made the slow way. Memory is
// exactly as large as the layout says, so that a checker sees a byte too many.
#include "layout/layout.h"

#include <algorithm>

#include "fuzz/fuzz.h"

using namespace thalweg;

namespace {

struct Case {
    Layout layout;
    std::vector<std::int64_t> offsets;  // of every byte of all elements, in packing order
    std::uint64_t count = 0;
};

Case read_case(fuzz::Input& input) {
    std::vector<ByteRun> runs;
    const std::int64_t extent = input.between(-60, 200);
    Case made;
    made.count = input.below(6);
    if (input.chance(3)) {
        // Loops in one another, each around what there is.
        const std::int64_t offset = input.between(-100, 100);
        const std::uint64_t levels = 1 + input.below(5);
        std::optional<Layout> layout = Layout::contiguous(input.below(20));
        runs.push_back({0, layout->size()});
        for (std::uint64_t i = 0; i < levels; ++i) {
            const std::uint64_t copies = input.below(4);
            const std::int64_t distance = input.between(-60, 120);
            layout = Layout::repeated(*layout, copies, distance, extent, i + 1 == levels ? offset : 0);
            if (!layout) fuzz::fail("five strides in one another are no layout");
            std::vector<ByteRun> all;
            for (std::uint64_t copy = 0; copy < copies; ++copy)
                for (const ByteRun& run : runs)
                    all.push_back({run.offset + static_cast<std::int64_t>(copy) * distance, run.bytes});
            runs = std::move(all);
        }
        for (ByteRun& run : runs) run.offset += offset;
        made.layout = std::move(*layout);
    } else if (input.chance(2)) {
        const std::uint64_t blocks = input.below(12), bytes = input.below(40);
        const std::int64_t stride = input.between(-60, 60), offset = input.between(-100, 100);
        made.layout = Layout::strided(blocks, bytes, stride, extent, offset);
        for (std::uint64_t i = 0; i < blocks; ++i)
            runs.push_back({offset + static_cast<std::int64_t>(i) * stride, bytes});
    } else {
        // Half of the runs continue the one before.
        std::int64_t end = 0;
        for (std::uint64_t i = input.below(12); i > 0; --i) {
            const std::int64_t offset = input.chance(2) ? end : input.between(-100, 150);
            runs.push_back({offset, input.below(12)});
            end = offset + static_cast<std::int64_t>(runs.back().bytes);
        }
        made.layout = Layout::list(runs, extent);
    }
    for (std::uint64_t element = 0; element < made.count; ++element)
        for (const ByteRun& run : runs)
            for (std::uint64_t i = 0; i < run.bytes; ++i)
                made.offsets.push_back(static_cast<std::int64_t>(element) * extent + run.offset +
                                       static_cast<std::int64_t>(i));
    return made;
}

void compare(const Case& it, std::uint64_t from, std::uint64_t to) {
    const std::int64_t lower = it.layout.lower(it.count);
    const auto room = static_cast<std::size_t>(it.layout.upper(it.count) - lower);
    std::vector<std::uint8_t> memory(room), packed(to - from);
    for (std::size_t i = 0; i < room; ++i) memory[i] = static_cast<std::uint8_t>(i * 37 + i / 251 + 1);
    it.layout.pack(packed.data(), memory.data() - lower, from, to);
    for (std::uint64_t i = from; i < to; ++i)
        if (packed[i - from] != memory[static_cast<std::size_t>(it.offsets[i] - lower)])
            fuzz::fail("packed byte " + std::to_string(i) + " is wrong");

    // Where runs overlap, the byte that is packed last stays.
    std::vector<std::uint8_t> found(room, 0xdd), right(room, 0xdd);
    for (std::uint64_t i = from; i < to; ++i) {
        packed[i - from] = static_cast<std::uint8_t>(i * 11 + 3);
        right[static_cast<std::size_t>(it.offsets[i] - lower)] = packed[i - from];
    }
    it.layout.unpack(found.data() - lower, packed.data(), from, to);
    if (found != right) fuzz::fail("unpacking wrote something else");

    std::vector<ByteRun> runs(to - from);
    const std::size_t count = it.layout.runs_of(from, to, runs);
    if (count > runs.size()) fuzz::fail("more runs than bytes");
    std::uint64_t at = from;
    for (const ByteRun& run : std::span(runs).first(count))
        for (std::uint64_t i = 0; i < run.bytes; ++i, ++at)
            if (at >= to || it.offsets[at] != run.offset + static_cast<std::int64_t>(i))
                fuzz::fail("the runs are wrong at byte " + std::to_string(at));
    if (at != to) fuzz::fail("the runs end too early");
}

}  // namespace

std::vector<std::string> fuzz::seeds() { return {}; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const Case it = read_case(input);
    const std::uint64_t bytes = it.layout.size() * it.count;
    if (bytes != it.offsets.size()) fuzz::fail("the layout has another number of bytes");
    if (bytes != 0) {
        const auto [low, high] = std::minmax_element(it.offsets.begin(), it.offsets.end());
        if (it.layout.lower(it.count) != *low || it.layout.upper(it.count) != *high + 1)
            fuzz::fail("the layout has other bounds");
    }
    compare(it, 0, bytes);
    for (int i = 0; i < 4; ++i) {
        const std::uint64_t a = input.below(bytes + 1), b = input.below(bytes + 1);
        compare(it, std::min(a, b), std::max(a, b));
    }
    return 0;
}
