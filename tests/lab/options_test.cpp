#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "lab/lab.h"

using namespace thalweg::lab;

TEST(Options, RatesAreBitsPerSecondWithDecimalUnits) {
    EXPECT_EQ(parse_rate("100mbit"), 100'000'000u);
    EXPECT_EQ(parse_rate("1.5gbit"), 1'500'000'000u);
    EXPECT_EQ(parse_rate("800kbit"), 800'000u);
    EXPECT_EQ(parse_rate("100Mbit/s"), 100'000'000u) << "as everywhere else";
    EXPECT_EQ(parse_rate("12GB/s"), 96'000'000'000u);
    for (const char* wrong :
         {"", "100", "mbit", "-1mbit", "0mbit", "100 mbit", "100mbyte", "1e30gbit", "nanmbit"})
        EXPECT_THROW(parse_rate(wrong), std::runtime_error) << wrong;
}

TEST(Options, SizesAreBytesWithBinaryUnits) {
    EXPECT_EQ(parse_bytes("16kb"), 16384u);
    EXPECT_EQ(parse_bytes("16k"), 16384u);
    EXPECT_EQ(parse_bytes("4096"), 4096u);
    EXPECT_EQ(parse_bytes("1mb"), 1048576u);
    EXPECT_EQ(parse_bytes("64K"), 65536u) << "as everywhere else";
    for (const char* wrong : {"", "kb", "16q", "-1k", "0"})
        EXPECT_THROW(parse_bytes(wrong), std::runtime_error) << wrong;
}

TEST(Options, AProgramKeepsItsOwnOptions) {
    const Options options = parse_run_options({"--hosts", "3", "--rate=50mbit", "--", "app", "--hosts", "9"});
    EXPECT_EQ(options.network.hosts, 3);
    EXPECT_EQ(options.network.rate_bits_per_s, 50'000'000u);
    EXPECT_EQ(options.program, (Args{"app", "--hosts", "9"}));
    EXPECT_EQ(parse_run_options({"--ppn", "1", "app", "--ppn", "7"}).program, (Args{"app", "--ppn", "7"}));
}

TEST(Options, RaggedRanksPerHost) {
    const Options options = parse_run_options({"--hosts", "4", "--ppn", "3,1", "--", "app"});
    EXPECT_EQ(options.ppn_of(0), 3);
    EXPECT_EQ(options.ppn_of(1), 1);
    EXPECT_EQ(options.ppn_of(3), 1) << "the last number repeats";
    EXPECT_EQ(options.total_ranks(), 6);
    EXPECT_EQ(parse_run_options({"--hosts", "4", "--ppn", "2", "--ranks", "5", "--", "app"}).total_ranks(),
              5);
}

TEST(Options, MistakesAreRefused) {
    for (const Args& wrong : std::vector<Args>{{"--hosts", "0"},
                                               {"--hosts", "x"},
                                               {"--hosts"},
                                               {"--hosts", "2", "--ppn", "1,1,1"},
                                               {"--ppn", "0"},
                                               {"--ppn", "2,,1"},
                                               {"--ppn", "2,1,"},
                                               {"--ppn", ""},
                                               {"--json="},
                                               {"--json", ""},
                                               {"--mpi-root="},
                                               {"--keep-env="},
                                               {"--keep-env"},
                                               {"--json"},
                                               {"--map", "round"},
                                               {"--mpi", "lam"},
                                               {"--rails", "99"},
                                               {"--burst", "100"},
                                               {"--yield-help", "maybe"},
                                               {"--hosts", "2", "--ppn", "2", "--ranks", "5"},
                                               {"--hots", "2"}}) {
        Args with_program = wrong;
        with_program.insert(with_program.end(), {"--", "app"});
        if (wrong == Args{"--hosts"}) with_program = wrong;
        EXPECT_THROW(parse_run_options(with_program), std::runtime_error) << testing::PrintToString(wrong);
    }
}

TEST(Options, AMistakenValueIsToldWithItsOption) {
    for (const char* option :
         {"--hosts", "--ppn", "--ranks", "--rate", "--burst", "--rails", "--mpi", "--map", "--yield-help"})
        try {
            parse_run_options({option, "nonsense", "--", "app"});
            ADD_FAILURE() << option;
        } catch (const std::runtime_error& error) {
            const std::string said = error.what();
            EXPECT_EQ(said.rfind(std::string(option) + " takes ", 0), 0u) << said;
            EXPECT_NE(said.find("not \"nonsense\""), std::string::npos) << said;
        }
}
