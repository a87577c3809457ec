// Work that takes time beside communication: real computing, and a stated sleep for each unit of it that
// stands for slower computing. No MPI here.
#pragma once

#include <time.h>

#include <cmath>
#include <cstddef>

namespace thalweg::apps {

// Seconds of a clock that only goes forward.
inline double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Sleeps at least this long, with the thread's timer slack on top (see sharpen_sleep).
inline void sleep_for(double seconds) {
    if (seconds <= 0) return;
    timespec t;
    t.tv_sec = static_cast<time_t>(seconds);
    t.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) != 0) {
    }
}

// Linux lets a thread oversleep by 50 microseconds; work in many pieces would then take longer than in one.
void sharpen_sleep();

// A stretch of work on items 0 … items - 1, cut into pieces. piece(begin, end) does the computing of these
// items; after it the piece's share of `sleep_seconds` is slept; between(last) is called after every piece
// (last: it was the last one) and its time is not part of the work. Sleeps are reckoned over the whole
// stretch, so that the pieces' oversleeping does not add up. Returns the seconds of the work.
template <class Piece, class Between>
double work_in_pieces(std::size_t items, int pieces, double sleep_seconds, Piece&& piece, Between&& between) {
    double worked = 0, slept = 0;
    for (int i = 0; i < pieces; ++i) {
        const auto at = [&](int edge) {
            return items / static_cast<std::size_t>(pieces) * static_cast<std::size_t>(edge) +
                   items % static_cast<std::size_t>(pieces) * static_cast<std::size_t>(edge) /
                       static_cast<std::size_t>(pieces);
        };
        const double begin = now();
        piece(at(i), at(i + 1));
        const double computed = now();
        sleep_for(sleep_seconds * (i + 1) / pieces - slept);
        const double end = now();
        slept += end - computed;
        worked += end - begin;
        between(i + 1 == pieces);
    }
    return worked;
}

}  // namespace thalweg::apps
