// What the rows of alltoallvs say about plans.
#include "model/exchange.h"

#include <gtest/gtest.h>

#include <map>

#include "bench/columns.h"
#include "bench/exchange_page.h"
#include "bench/table.h"
#include "launch_row.h"

namespace thalweg::bench {
namespace {

Row row(std::string_view column, double seconds, std::uint64_t launch = 1) {
    const MeasuredOn on{
        .mpi = "openmpi", .shape = "4x1", .hosts = 4, .ranks = 4, .settings = lab_link("1e6", "0", "0.001")};
    Row made =
        launch_row(on, "alltoallv", exchange_phase, column, launch, 1024, std::vector<double>(5, seconds));
    made.exchange = {{"pattern", "dense"}, {"link_bytes", 3000.0}, {"neighbours", 3}};
    return made;
}

Row plan(std::string_view column, double seconds, double init, double free) {
    Row made = row(column, seconds);
    made.exchange["init_seconds"] = std::vector<double>(3, init);
    made.exchange["free_seconds"] = std::vector<double>(3, free);
    return made;
}

TEST(Exchange, LimitIsOfTheBusiestLink) {
    EXPECT_DOUBLE_EQ(necessary_link_bytes(row(native_default, 1)), 3000);
    EXPECT_DOUBLE_EQ(limit_seconds(row(native_default, 1)), 3e-3 + 1e-3);
}

TEST(Exchange, PlansPayAgainstWhatTheyTookTurnsWith) {
    const std::vector<Row> rows{row(native_default, 10e-3), row(window_per_call, 30e-3),
                                plan(automatic_plan, 8e-3, 5e-3, 1e-3), plan("rma_fence", 12e-3, 9e-3, 9e-3)};
    const auto lines = summarize_exchange(rows);
    ASSERT_EQ(lines.size(), 4u);
    const auto find = [&](std::string_view column) {
        for (const auto& line : lines)
            if (line.column == column) return line;
        return ExchangeLine();
    };
    const ExchangeLine ours = find(automatic_plan), fence = find("rma_fence");
    EXPECT_NEAR(ours.against_native.calls, 3.0, 1e-9);  // (5 + 1) / (10 - 8)
    EXPECT_NEAR(ours.against_window.calls, 6.0 / 22, 1e-9);
    EXPECT_NEAR(ours.of_native.value, 0.8, 1e-9);
    EXPECT_NEAR(ours.of_limit(), 2.0, 1e-9);
    EXPECT_EQ(fence.against_native.calls, never);
    EXPECT_NEAR(fence.against_window.calls, 1.0, 1e-9);
    EXPECT_FALSE(find(native_default).is_plan());
    const std::string text = format_exchange(lines, false);
    EXPECT_NE(text.find("never"), std::string::npos);
    EXPECT_NE(text.find("3.0 [3.0, 3.0]"), std::string::npos);
}

// MPI_Alltoallv_init is the best native call of one launch, MPI_Alltoallv that of another one; A/A counts as
// neither, however fast it was.
TEST(Exchange, PlansPayAgainstTheBestNativeCallToo) {
    std::vector<Row> rows{row(native_default, 10e-3),       row(native_again, 1e-3),
                          plan(native_plan, 9e-3, 1e-3, 0), plan(automatic_plan, 8e-3, 5e-3, 1e-3),
                          row(native_default, 12e-3, 2),    plan("thalweg init spread", 8e-3, 5e-3, 1e-3)};
    rows.back().launch = 2;
    const auto lines = summarize_exchange(rows);
    const auto find = [&](std::string_view column) {
        for (const auto& line : lines)
            if (line.column == column) return line;
        return ExchangeLine();
    };
    const ExchangeLine ours = find(automatic_plan), spread = find("thalweg init spread");
    EXPECT_EQ(ours.best_native, native_plan);
    EXPECT_NEAR(ours.against_native.calls, 3.0, 1e-9);
    EXPECT_NEAR(ours.against_best.calls, 6.0, 1e-9);  // (5 + 1) / (9 - 8)
    EXPECT_EQ(spread.best_native, native_default);
    EXPECT_NEAR(spread.against_best.calls, 1.5, 1e-9);  // (5 + 1) / (12 - 8)
    EXPECT_FALSE(find(native_plan).pays_best()) << "against itself";
    EXPECT_TRUE(find(native_plan).pays_native());
    // No window took turns with any of them.
    EXPECT_FALSE(ours.pays_window());
    const std::string text = format_exchange(lines, true);
    EXPECT_NE(text.find("| 6.0 [6.0, 6.0] (native init) "), std::string::npos) << text;
    EXPECT_NE(text.find("| 1.5 [1.5, 1.5] "), std::string::npos) << text;
    EXPECT_EQ(text.find("never    |"), std::string::npos) << text;  // of the window, the last column
}

TEST(Exchange, TheReductionStandsBesideItsCeiling) {
    Row once = row(window_per_call, 20e-3);
    once.exchange["set_up_seconds"] = std::vector<double>(5, 10e-3);
    const auto lines =
        compare_windows({once, row(window_kept, 11e-3), plan("rma_fence", 12e-3, 8e-3, 0.8e-3)});
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NEAR(lines[0].reduction, 0.4, 1e-9);
    EXPECT_NEAR(lines[0].set_up, 0.5, 1e-9);
    EXPECT_NEAR(lines[0].kept_saves, 0.45, 1e-9);
    EXPECT_NEAR(lines[0].ceiling(), 0.5, 1e-9);
    EXPECT_NEAR(lines[0].of_ceiling(), 0.8, 1e-9);
    EXPECT_NEAR(lines[0].pays.calls, 1.1, 1e-9);
    EXPECT_NEAR(lines[0].kept_seconds, 11e-3, 1e-9);
}

// What a new window puts off until it is used is no set-up that can be timed, but keeping the window saves
// it.
TEST(Exchange, TheCeilingHasWhatIsPutOff) {
    Row once = row(window_per_call, 20e-3);
    once.exchange["set_up_seconds"] = std::vector<double>(5, 1e-3);
    const auto lines = compare_windows({once, row(window_kept, 12e-3), plan("rma_fence", 10e-3, 8e-3, 0)});
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NEAR(lines[0].ceiling(), 0.4, 1e-9);
    EXPECT_NEAR(lines[0].of_ceiling(), 1.25, 1e-9);
}

// What is measured again: where the interval is too wide to say.
TEST(Exchange, UndecidedPointsAreThoseOfTheChoices) {
    const auto spread = [](Row made, std::uint64_t bytes, double least, double most) {
        made.bytes = bytes;
        made.seconds.clear();
        for (int i = 0; i < 30; ++i) made.seconds.push_back(least + (most - least) * i / 29);
        return made;
    };
    const Row native = row(native_default, 1e-3), ours = row(automatic, 1e-3), fixed = row("rma_get", 1e-3);
    const auto lines =
        summarize_exchange({spread(native, 1024, 1e-3, 3e-3), spread(ours, 1024, 1.1e-3, 3.3e-3),
                            spread(fixed, 1024, 1.1e-3, 3.3e-3), spread(native, 2048, 1e-3, 1.01e-3),
                            spread(ours, 2048, 1e-3, 1.01e-3), spread(fixed, 2048, 0.5e-3, 3e-3),
                            spread(native, 4096, 1e-3, 1.01e-3), spread(ours, 4096, 2e-3, 2.01e-3)});
    ASSERT_EQ(lines.size(), 8u);
    const auto points = undecided_points(lines);
    ASSERT_EQ(points.size(), 1u);
    EXPECT_EQ(points.begin()->second, 1024u);
    // Also beside calls that are not the fastest of the library's.
    const Row planned = row(native_plan, 1e-3);
    EXPECT_EQ(undecided_points(
                  summarize_exchange({spread(native, 1024, 1e-3, 3e-3), spread(ours, 1024, 1.1e-3, 3.3e-3),
                                      spread(planned, 1024, 0.5e-3, 0.51e-3)}))
                  .size(),
              1u);
}

// 1 MB/s without burst; a small call takes 100 µs, of which pairwise needs 7 once and 1.8 each time.
TEST(Exchange, PredictionsAreMadeOfOtherCallsThanTheMeasured) {
    const auto at = [](Row made, std::uint64_t bytes, double link_bytes) {
        made.bytes = bytes;
        made.exchange["link_bytes"] = link_bytes;
        return made;
    };
    Row gains = plan("thalweg init pairwise", 51.5e-3, 0.4e-3, 0), loses = plan("rma_get", 110e-3, 1e-3, 0);
    gains.algorithm = "pairwise";
    std::vector<Row> rows{row(native_default, 1e-4),
                          at(row(native_again, 1e-4), 1024, 0),
                          at(row(native_default, 53e-3), 16384, 50e3),
                          at(row(native_again, 52e-3), 16384, 50e3),
                          at(gains, 16384, 50e3),
                          at(loses, 16384, 50e3),
                          at(plan(native_plan, 53e-3, 1e-4, 0), 16384, 50e3)};
    const auto find = [&](std::string_view column) {
        for (const auto& line : summarize_exchange(rows))
            if (line.column == column && line.bytes == 16384) return line;
        return ExchangeLine();
    };
    const double wire = 50e-3 * (1 + 66.0 / 3028);
    EXPECT_NEAR(find("thalweg init pairwise").predicted_calls, 7e-4 / (52e-3 - wire - 1.8e-4), 1e-6);
    EXPECT_EQ(find("thalweg init pairwise").foresight, Foresight::differs);  // 0.27 measured
    EXPECT_EQ(find("rma_get").predicted_calls, never);
    EXPECT_EQ(find("rma_get").foresight, Foresight::both_never);
    EXPECT_EQ(find(native_plan).foresight, Foresight::undecided);
    EXPECT_EQ(find(native_default).foresight, Foresight::unknown);
    const ForesightCount count = count_foresight(summarize_exchange(rows));
    EXPECT_EQ(count.agree(), 1u);
    EXPECT_EQ(count.decided(), 2u);
    EXPECT_EQ(count.undecided, 1u);
    EXPECT_NE(foresight_text(summarize_exchange(rows)).find("1 of 2 plans (50.0 %)"), std::string::npos);
    const std::string text = format_exchange(summarize_exchange(rows), true);
    EXPECT_NE(text.find("| NOT "), std::string::npos) << text;
    EXPECT_NE(text.find("| both never "), std::string::npos) << text;
    // A line for each column that has a prediction, and one for all of them.
    const std::string counts = format_foresight(summarize_exchange(rows), true);
    EXPECT_NE(counts.find("| all "), std::string::npos) << counts;
    EXPECT_NE(counts.find("| 1 of 2 "), std::string::npos) << counts;
    EXPECT_EQ(counts.find("(A/A)"), std::string::npos) << counts;
    EXPECT_EQ(format_foresight({}, true), "");
    // Two such links need half the time.
    for (Row& each : rows) each.context["rails"] = 2;
    EXPECT_NEAR(find("thalweg init pairwise").predicted_calls, 7e-4 / (52e-3 - wire / 2 - 1.8e-4), 1e-6);
    EXPECT_NEAR(find(native_default).limit_seconds, 25e-3 + 1e-3, 1e-9);
    // What the bytes of the small call take is no part of it.
    rows[1].exchange["link_bytes"] = 1e3;
    rows[1].seconds.assign(5, 1e-4 + 0.5e-3 * (1 + 66.0 / 3028));
    EXPECT_NEAR(find("thalweg init pairwise").predicted_calls, 7e-4 / (52e-3 - wire / 2 - 1.8e-4), 1e-6);
    // Without a small size nothing is known of what a plan costs.
    rows.erase(rows.begin(), rows.begin() + 2);
    EXPECT_EQ(find("rma_get").foresight, Foresight::unknown);
}

TEST(Exchange, APredictionIsJudgedWhereTheGainIsDecided) {
    const auto measured = [](double calls, double gain_low, double gain_high) {
        BreakEven pays;
        pays.calls = pays.low = pays.high = calls;
        pays.gain_low = gain_low, pays.gain_high = gain_high;
        return pays;
    };
    EXPECT_EQ(foresight_of(4, measured(3, 1e-3, 2e-3)), Foresight::within_two);
    EXPECT_EQ(foresight_of(6, measured(3, 1e-3, 2e-3)), Foresight::within_two);
    EXPECT_EQ(foresight_of(6.1, measured(3, 1e-3, 2e-3)), Foresight::differs);
    EXPECT_EQ(foresight_of(1.4, measured(3, 1e-3, 2e-3)), Foresight::differs);
    EXPECT_EQ(foresight_of(never, measured(3, 1e-3, 2e-3)), Foresight::differs);
    EXPECT_EQ(foresight_of(3, measured(never, -2e-3, -1e-3)), Foresight::differs);
    EXPECT_EQ(foresight_of(never, measured(never, -2e-3, -1e-3)), Foresight::both_never);
    // Zero may be gained: neither a hit nor a miss.
    EXPECT_EQ(foresight_of(3, measured(3, -1e-3, 2e-3)), Foresight::undecided);
    EXPECT_EQ(foresight_of(never, measured(never, -2e-3, 1e-3)), Foresight::undecided);
}

// By what it ran, and where it ran nothing of ours by the native call.
TEST(Exchange, AColumnIsPredictedByWhatItRan) {
    const auto predicted = [](const char* algorithm) {
        Row init = plan(automatic_plan, 51e-3, 0.4e-3, 0);
        init.algorithm = algorithm;
        Row again = row(native_again, 60e-3), native = row(native_default, 60e-3);
        for (Row* large : {&again, &native, &init})
            large->bytes = 16384, large->exchange["link_bytes"] = 50e3;
        Row small = row(native_again, 1e-4 + wire_seconds(500, 1e6, 0));
        small.exchange["link_bytes"] = 500;
        for (const auto& line : summarize_exchange({small, native, again, init}))
            if (line.column == automatic_plan) return line.predicted_calls;
        return -1.0;
    };
    const ExchangeSeen seen{60e-3, 1e-4, 16384, 50e3, 1e6, 0};
    EXPECT_NEAR(predicted("node_leader"), forecast_plan("node_leader", seen)->calls, 1e-9);
    EXPECT_NEAR(predicted("spread"), forecast_plan("spread", seen)->calls, 1e-9);
    EXPECT_GT(predicted("node_leader"), predicted("spread"));
    EXPECT_EQ(predicted(""), never);
}

// What forecast_plan() has of two-sided plans, against all that was measured where it was fitted: hosts of
// one rank. A call costs some small calls more than the wire; making and freeing a plan so many of them.
TEST(Exchange, ForecastsAreWhatTheRowsSay) {
    std::vector<Row> rows;
    std::string why;
    for (const char* mpi : {"mpich", "openmpi", "impi"})
        ASSERT_TRUE(read_rows({std::string(THALWEG_RESULTS "/alltoallv-") + mpi + "-4x1.jsonl"}, rows, why))
            << why;
    // By MPI, of exchanges that cost little but their messages, as often as they were measured.
    std::map<std::string, std::vector<const Row*>> small_rows;
    for (const Row& row : rows)
        if (row.column == native_again && row.exchange.value("pattern", "") == "dense" && row.bytes <= 1024)
            small_rows[row.context.value("mpi_name", "")].push_back(&row);
    // The machine is quicker on some days: that of the launch that is the nearest.
    const auto small_seconds = [&](const Row& row) {
        const auto apart = [&](const Row* small) {
            return std::max(small->launch, row.launch) - std::min(small->launch, row.launch);
        };
        const auto& known = small_rows.at(row.context.value("mpi_name", ""));
        const Row* const nearest = *std::min_element(
            known.begin(), known.end(), [&](const Row* a, const Row* b) { return apart(a) < apart(b); });
        return median(nearest->seconds);
    };
    std::map<std::string, std::vector<double>> off, inits;
    for (const Row& row : rows) {
        const std::string way = row.algorithm.substr(0, row.algorithm.find(':'));
        if (!row.column.starts_with(automatic_plan) || way.empty() || row.seconds.empty()) continue;
        const double small = small_seconds(row);
        const auto forecast = forecast_plan(row.algorithm, {1, small, row.bytes, necessary_link_bytes(row),
                                                            setting(row, "THALWEG_LAB_RATE_BYTES_PER_S"),
                                                            setting(row, "THALWEG_LAB_BURST_BYTES")});
        ASSERT_TRUE(forecast) << row.column;
        if (row.bytes >= 16 << 10 && row.bytes <= 64 << 10)
            off[way].push_back(median(row.seconds) / forecast->call_seconds - 1);
        const auto init = row.exchange["init_seconds"].get<std::vector<double>>(),
                   free = row.exchange["free_seconds"].get<std::vector<double>>();
        inits[way].push_back((median(init) + median(free)) / forecast->init_seconds);
    }
    for (const char* way : {"spread", "pairwise", "node_leader"}) {
        SCOPED_TRACE(way);
        ASSERT_GE(off[way].size(), 9u);
        EXPECT_NEAR(median(off[way]), 0, 0.02);
        EXPECT_GT(median(inits[way]), 0.75);
        EXPECT_LT(median(inits[way]), 1.3);
    }
}

TEST(Exchange, OtherLaunchesAreNoBaseline) {
    Row old = row(window_per_call, 20e-3, 7);
    EXPECT_TRUE(compare_windows({old, plan("rma_fence", 12e-3, 1e-3, 1e-3)}).empty());
    const auto lines =
        summarize_exchange({row(native_default, 1e-3, 7), plan(automatic_plan, 2e-3, 1e-3, 0)});
    for (const auto& line : lines) EXPECT_EQ(line.against_native.calls, never);
}

TEST(Exchange, AColumnThatCannotBeHadSaysWhy) {
    Row refused = row("thalweg init notify", 0);
    refused.seconds.clear();
    refused.stopped = "refused";
    const std::string text = format_exchange(summarize_exchange({refused}), true);
    EXPECT_NE(text.find("refused"), std::string::npos);
}

}  // namespace
}  // namespace thalweg::bench
