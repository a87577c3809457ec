// The command lines of the programs.
#include "common/options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conjugate_gradient/options.h"
#include "radix_sort/options.h"

namespace thalweg::apps {
namespace {

template <class Options>
CommandLine::Answer read(Options& options, std::vector<std::string> words) {
    CommandLine line("what it is about", "program");
    options.add_to(line.app());
    words.insert(words.begin(), "program");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    return line.parse(static_cast<int>(argv.size()), argv.data());
}

// In octal 010 would be eight, and 08 none.
TEST(options, numbers_that_begin_with_a_zero_are_decimal) {
    SortOptions sort;
    EXPECT_EQ(read(sort, {"--keys", "010,064K,0", "--digit-bits", "08", "--seed", "0070", "--pieces",
                          "016,09", "--warm-up", "00"})
                  .kind,
              CommandLine::Answer::Kind::options);
    EXPECT_EQ(sort.keys, (std::vector<std::uint64_t>{10, 64 << 10, 0}));
    EXPECT_EQ(sort.digit_bits, 8);
    EXPECT_EQ(sort.seed, 70u);
    EXPECT_EQ(sort.common.pieces, (std::vector<int>{16, 9}));
    EXPECT_EQ(sort.common.warm_up, 0);
    GradientOptions gradient;
    EXPECT_EQ(read(gradient, {"--n", "0100", "--shift", "010.5"}).kind, CommandLine::Answer::Kind::options);
    EXPECT_EQ(gradient.n, std::vector<std::int64_t>{100});
    EXPECT_EQ(gradient.shift, 10.5);
}

// CLI11 would measure without it.
TEST(options, a_list_has_no_empty_element) {
    for (const char* list : {"64,,128", "64,", ",64", ",", ",,"}) {
        SortOptions sort;
        const auto apart = read(sort, {"--repeat", "2", "--pieces", list});
        EXPECT_EQ(apart.kind, CommandLine::Answer::Kind::mistake) << list;
        EXPECT_EQ(apart.text,
                  "--pieces " + std::string(list) + " has an empty element: leave out the comma beside it");
        EXPECT_EQ(read(sort, {"--keys=1K", std::string("--pieces=") + list}).text, apart.text);
        EXPECT_EQ(read(sort, {"--pieces", "4", list}).text, apart.text);
    }
    SortOptions sort;
    EXPECT_EQ(read(sort, {"--pieces", "64,128", "--json", "a,,b"}).kind, CommandLine::Answer::Kind::options);
}

// Else it is a file's name, and what it asks for is not done.
TEST(options, the_next_option_is_no_value) {
    SortOptions sort;
    const auto answer = read(sort, {"--json", "--repeat", "2"});
    EXPECT_EQ(answer.kind, CommandLine::Answer::Kind::mistake);
    EXPECT_EQ(answer.text, "--json needs a value");
    EXPECT_EQ(read(sort, {"--damage", "--repeat", "2"}).kind, CommandLine::Answer::Kind::options);
}

}  // namespace
}  // namespace thalweg::apps
