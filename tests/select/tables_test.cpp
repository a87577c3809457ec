// Several tuning tables in one text: each counts for its collective, those of one in their order, and a fault
// in one of them is named.
#include <initializer_list>

#include "select/broadcast_at.h"
#include "select/neighbours.h"
#include "select/table.h"

namespace thalweg {
namespace {

std::string table_of(const std::string& collective, const std::string& rows, const std::string& more = "") {
    return R"({"collective":")" + collective + R"(",)" + more + R"("rows":[)" + rows + "]}";
}

std::string list_of(std::initializer_list<std::string> tables) {
    std::string list;
    for (const std::string& table : tables) list += (list.empty() ? "[" : ",\n ") + table;
    return list + "]";
}

TEST(Tables, EachCountsForItsCollective) {
    Selection selection{Machine::from_options(2, 12e9), "openmpi", {}, {}};
    selection.sleeps = true;
    selection.table = list_of(
        {table_of("bcast", R"({"calls":"blocking","hosts":[1,4],"bytes":[100,199],"choice":"linear"})"),
         table_of("alltoallv", R"({"calls":"overlapped","bytes":[48,95],"choice":"notify"},
                                  {"calls":"neighbours","bytes":[0,511],"choice":"notify"},
                                  {"calls":"uneven","bytes":[0,9],"choice":"notify"})")});
    std::string why;
    ASSERT_EQ(check_table(selection.table, why), Status::ok) << why;
    const Topology topology = topology_of("node:4 core:1");
    const auto at = [&](Collective collective, std::uint64_t bytes) {
        const Decision decision = decide(collective, bytes, topology, selection);
        return decision.choice ? to_text(*decision.choice) : "native";
    };
    EXPECT_EQ(at(Collective::bcast, 99), "native");
    EXPECT_EQ(at(Collective::bcast, 100), "linear");
    EXPECT_EQ(smallest_taken(Collective::bcast, selection.table), 100u);
    EXPECT_EQ(smallest_on_one_host(Collective::bcast, selection, 2), 100u);
    selection.overlapped = true;
    EXPECT_EQ(at(Collective::alltoallv, 47), "native");
    EXPECT_EQ(at(Collective::alltoallv, 48), "notify");
    EXPECT_EQ(smallest_taken(Collective::alltoallv, selection.table, true), 48u);
    EXPECT_EQ(to_text(*NeighbourSelector(topology, selection).decide(511).choice), "notify");
    const Selector selector(Collective::alltoallv, topology, selection);
    EXPECT_EQ(to_text(*selector.decide_uneven({}, 9).choice), "notify");
}

TEST(Tables, OfOneCollectiveComeInTheirOrder) {
    const std::string tables =
        list_of({table_of("bcast", R"({"choice":"linear"})", R"("latency_us":[0,10],)"),
                 table_of("allreduce", R"({"choice":"rabenseifner"})"),
                 table_of("bcast", R"({"bytes":[100,149],"choice":"binomial"})"),
                 table_of("bcast", R"({"bytes":[0,199],"choice":"native"})")});
    std::string why;
    ASSERT_EQ(check_table(tables, why), Status::ok) << why;
    const auto at = [&](double latency_us, std::uint64_t bytes) {
        Selection selection{Machine::from_options(latency_us, 125e6), "", {}, {}};
        selection.table = tables;
        const Decision decision = broadcast_at("node:4 core:1", bytes, selection);
        EXPECT_EQ(decision.reason, "tuning table");
        return decision.choice ? to_text(*decision.choice) : "native";
    };
    EXPECT_EQ(at(5, 1), "linear");
    EXPECT_EQ(at(5, 100), "linear");
    EXPECT_EQ(at(60, 99), "native");
    EXPECT_EQ(at(60, 100), "binomial");
    EXPECT_EQ(at(60, 150), "native");
}

TEST(Tables, AFaultNamesTheTableAndTheRow) {
    const auto fault = [](const std::string& json) {
        std::string why;
        std::vector<TuningTable> tables(1);
        tables[0].machine = "as before";
        EXPECT_EQ(parse_tables(json, tables, why), Status::invalid_argument) << json;
        EXPECT_TRUE(tables.size() == 1 && tables[0].machine == "as before") << json;
        EXPECT_TRUE(tables_in(json).empty()) << json;
        return why;
    };
    const std::string good = table_of("bcast", R"({"choice":"linear"})");
    EXPECT_NE(fault("[]").find("JSON object with the fields collective and rows, or a list of such"),
              std::string::npos);
    EXPECT_NE(fault("[" + good + ",\n7").find("; parse error at line 2, column "), std::string::npos);
    EXPECT_EQ(fault("[7]"), "table 1 is not an object");
    EXPECT_EQ(fault(list_of({good, "[" + good + "]"})), "table 2 is not an object");
    EXPECT_EQ(fault(list_of({good, table_of("bcats", "")})).find("table 2: \"collective\" must be one of "),
              0u);
    EXPECT_EQ(fault(list_of({table_of("bcast", "", R"("colour":"red",)"), good})),
              "table 1: unknown field \"colour\"");
    EXPECT_EQ(fault(list_of({good, good, table_of("alltoallv", R"({"choice":"spread"},7)")})),
              "table 3, row 2 is not an object");
    const std::string crossed = R"({"choice":"spread"},{"choice":"spread","bytes":[5,2]})";
    EXPECT_EQ(fault(list_of({good, table_of("alltoallv", crossed), "7"})),
              "table 2, row 2: \"bytes\" must be [low, high] with low <= high");
    // One that stands alone has no number.
    EXPECT_EQ(fault(table_of("alltoallv", crossed)), "row 2: \"bytes\" must be [low, high] with low <= high");
    EXPECT_EQ(fault(R"({"rows":[]})").find("tuning table: \"collective\""), 0u);
}

// Not even the tables in front of the fault: what a centre is told does not count counts in no part.
TEST(Tables, NoneCountsWhereOneIsFaulty) {
    Selection selection;
    selection.table = table_of("bcast", R"({"choice":"linear"})");
    EXPECT_EQ(broadcast_at("node:4 core:1", 100, selection).reason, "tuning table");
    selection.table = list_of({selection.table, "7"});
    EXPECT_EQ(broadcast_at("node:4 core:1", 100, selection).reason, "small message");
    EXPECT_EQ(smallest_taken(Collective::bcast, selection.table), smallest_taken(Collective::bcast, ""));
}

}  // namespace
}  // namespace thalweg
