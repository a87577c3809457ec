// What the simulator shows of calls that take turns with the library's own in production.
#include <gtest/gtest.h>

#include <utility>

#include "built_in.h"
#include "select/select.h"
#include "sim/rows.h"

namespace thalweg::sim {
namespace {

// On a network that is known, where no table speaks: from some size on the schedule of the model's choice.
TEST(Rows, AMediumMessageThatIsTriedIsChosenAsInProduction) {
    for (const auto& [collective, bytes] :
         {std::pair{Collective::bcast, 16u << 10}, {Collective::allgather, 4u << 10}}) {
        Request request;
        request.collective = collective;
        request.machine = machine_of("dane");
        request.ranks = {16};
        request.per_host = 4;
        request.bytes = {bytes, bytes - 1};
        request.mapping = "block";
        request.columns = {"auto"};
        request.family = "mpich";
        request.most_seconds = 60;
        request.most_memory = std::uint64_t{4} << 30;
        const Topology topology = mapped(request.machine, "block", 16, 4);
        const Selection asked = selection_of(request, collective, topology, false);
        EXPECT_TRUE(asked.tries_model);
        EXPECT_FALSE(asked.unknown);
        Selection produced;
        produced.machine = request.machine.model();
        produced.family = "mpich";
        produced.tries_model = true;
        const Decision decision = decide(collective, bytes, topology, produced);
        ASSERT_TRUE(decision.choice && decision.tried) << decision.reason;
        std::string why;
        const std::vector<Row> rows = answer(
            request, [](const std::string&) {}, why);
        ASSERT_EQ(rows.size(), 2u) << why;
        EXPECT_EQ(rows[0].algorithm, to_text(*decision.choice));
        EXPECT_EQ(rows[0].reason, decision.reason);
        EXPECT_EQ(rows[0].family, "");
        EXPECT_TRUE(rows[0].simulated);
        EXPECT_EQ(rows[1].reason, "left to mpich: small message");
    }
}

}  // namespace
}  // namespace thalweg::sim
