#include "base/cpu_mask.h"

#include <sched.h>

#include <array>
#include <climits>
#include <cstddef>

namespace thalweg {
namespace {

constexpr std::size_t word_bits = CHAR_BIT * sizeof(unsigned long);

}  // namespace

// Hosts may have more threads than a cpu_set_t has bits.
CpuMask mask_of_this_thread() {
    for (std::size_t bits = CPU_SETSIZE; bits <= std::size_t{1} << 20; bits *= 2) {
        CpuMask mask(bits / word_bits);
        if (sched_getaffinity(0, bits / CHAR_BIT, reinterpret_cast<cpu_set_t*>(mask.data())) == 0)
            return mask;
    }
    return {};
}

std::vector<int> numbers_in(const CpuMask& mask) {
    std::vector<int> numbers;
    for (std::size_t bit = 0; bit < mask.size() * word_bits; ++bit)
        if ((mask[bit / word_bits] >> bit % word_bits & 1) != 0) numbers.push_back(static_cast<int>(bit));
    return numbers;
}

bool run_on(std::span<const unsigned long> mask) {
    return sched_setaffinity(0, mask.size_bytes(), reinterpret_cast<const cpu_set_t*>(mask.data())) == 0;
}

bool run_on(int number) {
    // As many as a kernel has been built for, several times over; on a stack.
    std::array<unsigned long, std::size_t{1} << 10> mask{};
    const std::size_t bit = static_cast<std::size_t>(number), word = bit / word_bits;
    if (number < 0 || word >= mask.size()) return false;
    mask[word] = 1ul << bit % word_bits;
    return run_on(std::span<const unsigned long>(mask).first(word + 1));
}

}  // namespace thalweg
