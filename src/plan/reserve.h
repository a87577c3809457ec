// Memory of last resort. A rank that alone has no memory left for the book-keeping of an operation cannot
// decline it: the others run it. So what `new` in the preload objects cannot get from malloc comes from a
// reserve that every rank set aside before the ranks agreed to take operations at all.
//
// It holds what one operation needs (the plan of a piece, a communicator's state), also the largest that is
// made; plans made from it go with the call (Plan::transient).
#pragma once

#include <cstddef>
#include <cstdint>

namespace thalweg {

inline constexpr std::size_t reserve_bytes = 32u << 20;  // of address space: pages come with use

// Plans of more steps are not made, by any rank: one that has nothing but the reserve could not. A step takes
// up to 500 bytes while its schedule is built, and 150 from then on.
inline constexpr std::uint64_t most_plan_steps = reserve_bytes / 512;

// Sets it aside, once per process. False: not even that is to be had.
bool open_reserve();
// Bytes of it that are taken, their book-keeping included. Lock-free.
std::size_t reserve_in_use();
// Whether half of it, or more, is left. Plans of the program keep what they have of it as long as they live:
// a rank that says so before the others rely on it makes none that it might not be able to finish.
bool reserve_has_room();

// Whether more of it is taken than was left when everything that is kept between calls was given up last.
// Queues that have grown and the like hold some for long: to give up more would not bring it back, and every
// call would have to make anew what it could have used again. Lock-free.
bool reserve_is_kept();
// Everything that is kept has been given up.
void reserve_was_relieved();

}  // namespace thalweg
