// What the kernel counted on a link is compared with what the schedule says that it sends.
#include "bench/proof.h"

#include <gtest/gtest.h>

#include "bench/results.h"

namespace thalweg::bench {
namespace {

Row row() {
    Row row;
    row.collective = "bcast";
    row.column = "thalweg";
    row.phase = "decide";
    row.bytes = 1 << 20;
    row.seconds = {1};
    return row;
}

TEST(Proof, ALinearBroadcastLeavesTheRootsHostOncePerRemoteRank) {
    LinkClaim claim;
    std::string why;
    ASSERT_TRUE(link_claim("linear", 4, 2, 0, 1000000, claim, why)) << why;
    EXPECT_EQ(claim.tx_bytes, 6u * 1000000);
    EXPECT_EQ(claim.messages, 6u);
}

TEST(Proof, OtherCollectivesSendWhatTheirSchedulesSay) {
    LinkClaim claim;
    std::string why;
    ASSERT_TRUE(link_claim("ring", 4, 1, 0, 100000, claim, why, Collective::allgather)) << why;
    EXPECT_EQ(claim.tx_bytes, 3u * 100000);
    ASSERT_TRUE(link_claim("ring:chunk_bytes=0", 4, 1, 0, 800000, claim, why, Collective::allreduce)) << why;
    EXPECT_EQ(claim.tx_bytes, 6u * 200000);
    EXPECT_FALSE(link_claim("binomial", 4, 1, 0, 100000, claim, why, Collective::allgather));
    // A small block is counted where enough of them cross.
    Row counted = row();
    counted.collective = "allgather";
    counted.algorithm = "ring";
    counted.bytes = 32768;
    ASSERT_TRUE(link_claim("ring", 4, 1, 0, counted.bytes, claim, why, Collective::allgather));
    counted.tx_bytes = expected_tx_bytes(claim).low;
    EXPECT_EQ(prove(counted, 4, 1), Proof::agrees);
    counted.tx_bytes *= 0.5;
    EXPECT_EQ(prove(counted, 4, 1), Proof::differs);
    counted.bytes = 1024;
    EXPECT_EQ(prove(counted, 4, 1), Proof::not_counted);
}

TEST(Proof, ACounterThatDisagreesIsSeen) {
    Row counted = row();
    counted.algorithm = "linear";
    LinkClaim claim;
    std::string why;
    ASSERT_TRUE(link_claim("linear", 4, 2, 0, counted.bytes, claim, why));
    counted.tx_bytes = expected_tx_bytes(claim).low;
    EXPECT_EQ(prove(counted, 4, 2), Proof::agrees);
    counted.tx_bytes = expected_tx_bytes(claim).low * 0.8;
    EXPECT_EQ(prove(counted, 4, 2), Proof::differs);
    counted.tx_bytes = expected_tx_bytes(claim).high * 1.2;
    EXPECT_EQ(prove(counted, 4, 2), Proof::differs);
    counted.tx_bytes = -1;
    EXPECT_EQ(prove(counted, 4, 2), Proof::not_counted);
}

}  // namespace
}  // namespace thalweg::bench
