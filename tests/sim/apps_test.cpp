// Programs: what their ranks exchange fits together, and what they compute follows from bytes and a rate.
#include "sim/apps.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace thalweg::sim {
namespace {

TEST(Apps, WaitForWhatTheyStartOnce) {
    for (const std::string_view name : app_names()) {
        const App app = make_app(name, 24, 64 << 10, 1e9);
        std::set<std::size_t> open, seen;
        for (const Phase& phase : app.phases) {
            if (phase.kind == ActKind::start) {
                EXPECT_TRUE(seen.insert(phase.call).second) << name;
                open.insert(phase.call);
            } else if (phase.kind == ActKind::wait) {
                EXPECT_EQ(open.erase(phase.call), 1u) << name;
            } else {
                EXPECT_GE(phase.seconds, 0) << name;
            }
        }
        EXPECT_TRUE(open.empty()) << name;
        EXPECT_EQ(seen.size(), app.calls.size()) << name;
        // Twice the rate, half the time.
        EXPECT_DOUBLE_EQ(make_app(name, 24, 64 << 10, 2e9).compute_seconds() * 2, app.compute_seconds());
    }
    // A face of 32 KiB is 64 x 64 cells, so its cube has 2 MiB.
    EXPECT_DOUBLE_EQ(make_app("stencil", 27, 32 << 10, 1e6).compute_seconds(), 2.097152);
}

TEST(Apps, BothEndsOfAFaceKnowItsBytes) {
    constexpr int ranks = 48;
    bool alike = true;
    for (const int axis : {-1, 0, 1, 2}) {
        const Call call{Collective::alltoallv, 1000, true, axis, true};
        std::map<std::pair<int, int>, std::uint64_t> sent, received;
        for (int rank = 0; rank < ranks; ++rank) {
            const Exchange faces = faces_of_call(call, rank, ranks, 3);
            for (const Parcel& face : faces.outgoing) sent[{rank, face.peer}] += face.bytes;
            for (const Parcel& face : faces.incoming) received[{face.peer, rank}] += face.bytes;
        }
        EXPECT_EQ(sent, received);
        EXPECT_FALSE(sent.empty());
        for (const auto& [pair, bytes] : sent) {
            EXPECT_TRUE(bytes == 1000 || bytes == 4000);
            alike &= bytes == 1000;
        }
    }
    EXPECT_FALSE(alike);
}

TEST(Apps, TheAxesTogetherAreAllFaces) {
    constexpr int ranks = 36;
    for (int rank = 0; rank < ranks; ++rank) {
        std::size_t faces = 0;
        for (const int axis : {0, 1, 2})
            faces +=
                faces_of_call({Collective::alltoallv, 8, true, axis, false}, rank, ranks, 1).outgoing.size();
        EXPECT_EQ(faces,
                  faces_of_call({Collective::alltoallv, 8, true, -1, false}, rank, ranks, 1).outgoing.size());
    }
}

}  // namespace
}  // namespace thalweg::sim
