// The columns of a table: every algorithm that an MPI offers, how it is asked for, and the schedule of ours
// that is the same.
#include "bench/columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "algorithms/algorithm.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

TEST(Columns, EveryNativeAlgorithmHasAColumnAndValidControls) {
    for (const char* mpi : {"mpich", "openmpi", "impi", "mpich-debian", "openmpi-debian"}) {
        const auto columns = all_columns(mpi, "bcast", {"binomial"});
        EXPECT_GE(columns.size(), 4u) << mpi;
        // MPICH 4 has other numbers for its algorithms than MPICH 5, whose are known.
        const auto natives = std::count_if(columns.begin(), columns.end(),
                                           [](const ColumnPlan& column) { return column.native; });
        EXPECT_TRUE(mpi == std::string("mpich-debian") ? natives == 2 : natives >= 7)
            << mpi << ' ' << natives;
        EXPECT_EQ(columns[0].name, native_default);
        EXPECT_EQ(columns.back().option, "binomial");
        for (std::size_t i = 3; i + 1 < columns.size(); ++i)
            EXPECT_TRUE(!columns[i].native || !columns[i].controls.empty() || !columns[i].environment.empty())
                << columns[i].name;
    }
}

TEST(Columns, EveryNativeAlgorithmThatIsAScheduleOfOursHasItsTwinOnce) {
    for (const char* mpi : {"mpich", "openmpi", "impi"}) {
        const auto columns = all_columns(mpi, "bcast", {"binomial"});
        for (const auto& native : native_rows()) {
            if (native.mpi != mpi || native.twin.empty()) continue;
            int found = 0;
            for (const auto& column : columns)
                found += !column.native && canonical(column.option) == twin_of(native);
            EXPECT_EQ(found, 1) << mpi << " " << native.name;
        }
    }
}

TEST(Columns, ThreeColumnsGetEverySample) {
    for (const auto& column : all_columns("mpich", "bcast", {"binomial"}))
        EXPECT_EQ(always_measured(column.name),
                  column.name == "native" || column.name == "native (A/A)" || column.name == "thalweg")
            << column.name;
}

TEST(Columns, TheSameAlgorithmOfOursIsAValidChoice) {
    for (const auto& native : native_rows()) {
        if (native.twin.empty()) continue;
        Choice choice;
        std::string why;
        EXPECT_EQ(parse_choice(Collective::bcast, twin_of(native), choice, why), Status::ok)
            << native.mpi << " " << native.name << ": " << why;
    }
}

TEST(Columns, ATwinHasTheParametersThatTheSettingsChange) {
    EXPECT_EQ(same_as_ours("openmpi", "bcast", "native chain"), "chain:chunk_bytes=64K");
    EXPECT_EQ(same_as_ours("openmpi-debian", "bcast", "native pipeline_16K"), "chain:chunk_bytes=16K");
    EXPECT_EQ(same_as_ours("mpich", "bcast", "native tree"), "kary:chunk_bytes=0");
    EXPECT_EQ(same_as_ours("mpich", "bcast", "native flat_pipelined_tree_64K"), "kary:chunk_bytes=64K");
    EXPECT_EQ(same_as_ours("openmpi", "bcast", "native chain_whole"), "chain:chunk_bytes=0");
    EXPECT_EQ(same_as_ours("mpich", "bcast", "native flat_pipelined_chain_16K"), "chain:chunk_bytes=16K");
    EXPECT_EQ(same_as_ours("impi", "bcast", "native shumilin"), "");
    EXPECT_EQ(same_as_ours("mpich", "bcast", "native"), "");
}

TEST(Columns, WhatOnlyADefaultRunsIsAScheduleOfOursAndNoNativeColumn) {
    const auto twins = twins_of_default("openmpi", "bcast");
    ASSERT_EQ(twins.size(), 1u);
    EXPECT_EQ(twins[0], "node_leader(intra=linear,inter=kary:fanout=3:chunk_bytes=64K)");
    int ours = 0;
    for (const auto& column : all_columns("openmpi", "bcast", {})) {
        EXPECT_NE(column.name, "native ");
        ours += !column.native && canonical(column.option) == twins[0];
    }
    EXPECT_EQ(ours, 1);
    EXPECT_TRUE(twins_of_default("mpich", "bcast").empty());
}

// Settings may name files, whose names are no UTF-8 where they are not meant to be; what a launch is told of
// a column is JSON.
TEST(Columns, NamesAreTextWhateverBytesASettingHas) {
    const auto columns = halo_columns({"UCX_CONFIG_DIR=caf\xe9"});
    EXPECT_EQ(columns.back().name, std::string(halo_parted) + " [ucx_config_dir=caf\xef\xbf\xbd]");
    for (const auto& column : columns) EXPECT_NO_THROW(nlohmann::json(column.name).dump()) << column.name;
    EXPECT_EQ(columns.back().environment, "UCX_CONFIG_DIR=caf\xe9");
}

}  // namespace
}  // namespace thalweg::bench
