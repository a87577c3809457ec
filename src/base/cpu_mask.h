// The hardware threads that a thread may run on.
#pragma once

#include <span>
#include <vector>

namespace thalweg {

// Words of bits, as the kernel has them, and as many as it takes.
using CpuMask = std::vector<unsigned long>;

// The calling thread's; empty: the kernel does not say. Throws std::bad_alloc.
CpuMask mask_of_this_thread();
// Those that are in it, ascending. Throws std::bad_alloc.
std::vector<int> numbers_in(const CpuMask& mask);
// Lets the calling thread run on these and on no others. False: the kernel refuses.
bool run_on(std::span<const unsigned long> mask);
// The same, on this one alone; allocates nothing.
bool run_on(int number);

}  // namespace thalweg
