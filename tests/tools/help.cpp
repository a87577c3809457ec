// thalweg help VERB WORD: the help of what has a help of its own.
#include <string>
#include <utility>

#include "shell.h"

namespace thalweg::test {
namespace {

std::string tool(const std::string& arguments) { return "'" + thalweg + "' " + arguments + " 2>&1"; }

TEST(help, of_a_verbs_word_is_what_that_word_says_of_itself) {
    const std::pair<const char*, const char*> own[] = {{"bench bcast", "--screen-samples"},
                                                       {"bench iallgather", "--overlap"},
                                                       {"bench plot", "--out"},
                                                       {"explain halo", "--ranks-per-host"},
                                                       {"explain alltoallv", "--once-us"},
                                                       {"sim plot", "--trace"},
                                                       {"sim halo", "--cells"},
                                                       {"lab run", "--keep-env"}};
    for (const auto& [words, option] : own) {
        SCOPED_TRACE(words);
        const Result help = shell(tool(std::string("help ") + words));
        EXPECT_EQ(help.status, 0);
        EXPECT_NE(help.text.find(option), std::string::npos) << help.text;
        EXPECT_EQ(help.text, shell(tool(std::string(words) + " --help")).text);
    }
    EXPECT_NE(shell(tool("help bench bcast")).text, shell(tool("help bench")).text);
}

TEST(help, of_a_word_that_nobody_knows_is_a_mistake) {
    for (const char* words : {"bench bcsat", "explain bcsat", "sim bcsat", "lab bcsat"}) {
        SCOPED_TRACE(words);
        const Result help = shell(tool(std::string("help ") + words));
        EXPECT_EQ(help.status, 2);
        EXPECT_NE(help.text.find("there is no "), std::string::npos) << help.text;
        EXPECT_NE(help.text.find(" bcsat"), std::string::npos) << help.text;
        EXPECT_EQ(help.text.find('\n'), help.text.size() - 1) << help.text;
        EXPECT_EQ(help.text, shell(tool(words)).text);
        EXPECT_EQ(help.text, shell(tool(std::string(words) + " --help")).text);
    }
    EXPECT_EQ(shell(tool("help bench bcsat")).text,
              "thalweg bench: there is no subcommand bcsat; maybe bcast?\n");
    EXPECT_EQ(shell(tool("bench frobnicate")).text,
              "thalweg bench: there is no subcommand frobnicate; `thalweg bench --help` lists them\n");
}

// They are a program's: what predicts goes by its own options.
TEST(help, names_the_verb_whose_settings_come_from_the_environment) {
    EXPECT_NE(shell(tool("help")).text.find("settings of `thalweg run` are environment variables"),
              std::string::npos);
    const std::string question = tool("explain bcast --bytes 1M --topology 'node:4 core:1'");
    const Result plain = shell(question);
    EXPECT_EQ(plain.status, 0) << plain.text;
    EXPECT_EQ(shell("THALWEG_RATE=100mbit THALWEG_BCAST=binomial " + question).text, plain.text);
}

class Help : public Scratch {};

TEST_F(Help, starts_no_program_that_is_named_behind_a_verb) {
    const std::string mark = (folder / "started").string();
    const std::string program = write("program", "#!/bin/sh\n: >'" + mark + "'\n");
    for (const char* verb : {"run", "info"})
        for (const std::string& word : {program, std::string("--"), std::string("--help")}) {
            const Result help = shell(tool(std::string("help ") + verb + " '" + word + "'"));
            EXPECT_EQ(help.text, shell(tool(std::string(verb) + " --help")).text) << verb << ' ' << word;
            EXPECT_EQ(help.status, 0);
        }
    EXPECT_FALSE(fs::exists(mark));
}

}  // namespace
}  // namespace thalweg::test
