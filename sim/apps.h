// Programs as what they compute and communicate per iteration: the shapes of the papers' applications,
// without their arithmetic. Times of computation follow from bytes that are read and written, at a rate that
// is given.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "select/exchanges.h"
#include "sim/program.h"

namespace thalweg::sim {

// "stencil", "amr", "sort", "cg", "fourier"
std::span<const std::string_view> app_names();

// An operation of a program. Of faces: an alltoallv with the neighbours in a 3D grid of ranks.
struct Call {
    Collective collective = Collective::alltoallv;
    std::uint64_t bytes = 0;  // as Problem::bytes; of faces: one face's
    bool faces = false;
    int axis = -1;         // of faces: 0, 1 or 2; -1: all three
    bool refined = false;  // of faces: some ranks have four times the data
    bool rounds = false;   // of an allreduce: of a few floating-point numbers, in whose sum their order shows
};

// start and wait: of calls[call]. A program that blocks waits where it starts.
struct Phase {
    ActKind kind = ActKind::start;
    std::size_t call = 0;
    double seconds = 0;
};

struct App {
    std::vector<Call> calls;
    std::vector<Phase> phases;  // of one iteration, the same on all ranks

    double compute_seconds() const;
};

// stencil: seven points; six faces, beside the inside; then the shell. amr: one axis after another, packed
// and unpacked, as miniAMR; a quarter of the ranks is refined. sort: of a digit's radix sort the counts of
// all ranks, beside the ranks' own permutation; then the keys. cg: the vector of all ranks, beside the half
// of the product that needs none of it (27 entries in a row); two scalar products. fourier: two halves of a
// transposition, each beside the transforms of the other half.
//
// `bytes`: of a face, of a rank's keys, of a rank's vector, or (fourier) from each rank to each. `sweep`:
// bytes that a rank reads and writes per second. Pre: `name` is one of app_names().
App make_app(std::string_view name, int ranks, std::uint64_t bytes, double sweep);

// What `rank` exchanges in a call of faces. `seed` draws the refined ranks.
Exchange faces_of_call(const Call& call, int rank, int ranks, std::uint64_t seed);
// The largest message of all ranks there.
std::uint64_t largest_face(const Call& call, int ranks, std::uint64_t seed);
// What a plan of them is decided by besides.
Traits traits_of_faces(const Call& call, const Topology& topology, std::uint64_t seed);

}  // namespace thalweg::sim
