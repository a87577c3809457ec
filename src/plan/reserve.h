// Memory of last resort. A rank that alone has no memory left for the book-keeping of an operation cannot
// decline it: the others run it. So what `new` in the preload objects cannot get from malloc comes from a
// reserve that every rank set aside before the ranks agreed to take operations at all.
//
// It holds what one operation needs (the plan of a piece, a communicator's state); plans made from it go with
// the call (Plan::transient).
#pragma once

#include <cstddef>

namespace thalweg {

inline constexpr std::size_t reserve_bytes = 8u << 20;  // of address space: pages come with use

// Sets it aside, once per process. False: not even that is to be had.
bool open_reserve();
// Bytes of it that are taken, their book-keeping included. Lock-free.
std::size_t reserve_in_use();

}  // namespace thalweg
