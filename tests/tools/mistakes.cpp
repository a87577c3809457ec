// What people and machines do wrong: each is one sentence and an exit status, and nothing is lost by it.
#include "mistakes.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace thalweg::test {
namespace {

TEST(mistakes, what_a_full_disk_does_not_take_is_said) {
    const std::string sentence = "could not be written to standard output";
    for (const char* verb : {"--version", "help", "info", "info --json", "info --options-markdown",
                             "explain bcast --bytes 4M --topology node:4", "run --dry-run /bin/true",
                             "explain halo --grid 4x4x2 --cells 256 --ranks-per-host 8",
                             "explain alltoallv --pattern banded --bytes 64K --topology node:4 --json"}) {
        SCOPED_TRACE(verb);
        refused(shell(tool(verb) + std::string(" 2>&1 >/dev/full")), 1, sentence);
        refused(shell(tool(verb) + std::string(" 2>&1 >&-")), 1, sentence);
    }
    if (!fs::exists(fs::path(thalweg).parent_path() / "thalweg-sim")) GTEST_SKIP() << "no SimGrid";
    for (const char* verb : {"sim bcast --ranks 8 --bytes 1K", "sim bcast --ranks 8 --bytes 1K --json"})
        refused(shell(tool(verb) + std::string(" 2>&1 >/dev/full")), 1, sentence);
}

TEST(mistakes, sizes_that_the_model_cannot_count_are_refused) {
    for (const char* collective :
         {"bcast", "allgather", "allreduce", "alltoallv", "alltoallv --pattern dense"})
        for (const char* bytes : {"18446744073709551615", "4194304T"})
            for (const char* place : {"node:2", "node:3 core:1,200,7", "node:5 core:3 map:cyclic"}) {
                SCOPED_TRACE(fmt::format("{} {} {}", collective, bytes, place));
                refused(shell(tool(fmt::format("explain {} --bytes {} --topology '{}' 2>&1", collective,
                                               bytes, place))),
                        2, "longer than the model can count");
            }
    refused(shell(tool("explain alltoallv --pattern dense --bytes 1K --topology node:4 --once-us nan 2>&1")),
            2, "--once-us: nan is no number from");
}

// The matrix of all pairs alone has 128 MiB.
TEST(mistakes, memory_that_does_not_suffice_is_no_fault_of_thalwegs) {
    refused(shell("ulimit -v 100000; " +
                  tool("explain alltoallv --pattern dense --bytes 1M --topology node:4096 2>&1")),
            1, "thalweg explain: this needs more memory than there is");
}

// Nothing follows from one of the two.
TEST(mistakes, what_an_exchange_was_seen_to_take_is_told_by_two_options) {
    const std::string exchange = "explain alltoallv --pattern dense --bytes 1K --topology node:4 ";
    refused(shell(tool(exchange + "--once-us 900 2>&1")), 2, "--small-us");
    refused(shell(tool(exchange + "--small-us 90 2>&1")), 2, "--once-us");
    EXPECT_EQ(shell(tool(exchange + "--once-us 900 --small-us 90 2>&1")).status, 0);
}

// No prediction is shorter than what the wire needs, at any size and place that is taken.
TEST(mistakes, predictions_stay_plausible_at_the_edges) {
    int explained = 0;
    for (const char* collective : {"bcast", "allgather", "allreduce", "alltoallv"})
        for (const char* place : {"node:1", "node:1 core:2", "node:3 core:1,200,7", "node:65536"})
            for (const char* bytes : {"0", "1", "1M", "64G", "1T"}) {
                const Result said = shell(tool(fmt::format(
                    "explain {} --bytes {} --topology '{}' --json 2>/dev/null", collective, bytes, place)));
                if (said.status == 2) continue;  // refused
                ++explained;
                const auto explanation = nlohmann::json::parse(said.text);
                const double limit = explanation["limit_seconds"];
                EXPECT_TRUE(std::isfinite(limit) && limit < 1e7);
                for (const auto& candidate : explanation["candidates"])
                    if (candidate.contains("predicted_seconds")) {
                        EXPECT_GE(candidate["predicted_seconds"].get<double>(), 0.99 * limit)
                            << collective << ' ' << place << ' ' << bytes << candidate;
                        EXPECT_LT(candidate["predicted_seconds"].get<double>(), 1e7);
                    }
            }
    EXPECT_GE(explained, 48);
}

TEST(mistakes, barriers_have_no_bytes) {
    refused(shell(tool("explain barrier --bytes 1M --topology node:4 2>&1")), 2,
            "--bytes is not of barrier: leave it out");
    const auto barrier = nlohmann::json::parse(shell(tool("explain barrier --topology node:4 --json")).text);
    EXPECT_EQ(barrier["bytes"], 0);
    EXPECT_EQ(barrier["candidates"][0]["messages"], 8);
    refused(shell(tool("explain bcast --topology node:4 2>&1")), 2, "--bytes is missing: a size");
}

// Of 1024 hosts with 64 ranks some candidates' messages are too many to be counted while somebody waits.
TEST(mistakes, many_ranks_are_explained_while_somebody_waits) {
    for (const char* collective : {"allgather --bytes 1M", "allreduce --bytes 1M", "bcast --bytes 1G"}) {
        const Result said = shell(fmt::format(
            "timeout 60 '{}' explain {} --topology 'node:1024 core:64' --json", thalweg, collective));
        ASSERT_EQ(said.status, 0) << collective;
        EXPECT_EQ(nlohmann::json::parse(said.text)["ranks"], 65536);
    }
    const Result nothing = shell("timeout 3 " + tool("explain bcast --bytes 0 --topology node:65536"));
    EXPECT_EQ(nothing.status, 0);
}

TEST(mistakes, an_option_without_a_value_does_not_take_the_program_for_it) {
    const std::string quiet = " 2>/dev/null";
    EXPECT_EQ(shell(tool("run --report= /bin/echo hi") + quiet).text, "hi\n");
    EXPECT_EQ(shell(tool("run --report= --log= -- /bin/echo --log= hi") + quiet).text, "--log= hi\n");
    EXPECT_EQ(shell(tool("run --log error --report= /bin/echo --report= hi") + quiet).text, "--report= hi\n");
    refused(shell(tool("explain bcast --bytes= --topology node:4 2>&1")), 2, "--bytes has no value");
    EXPECT_EQ(shell(tool("bench bcast --mpi= 2>&1")).text.find("thalweg bench: --mpi: "), 0u);
}

// Of all but the settings of `thalweg run`. Results that were to go nowhere would be measured for hours.
TEST(mistakes, an_empty_value_is_no_value) {
    const std::string exchange = "explain bcast --bytes 4M --topology node:4 ";
    const std::string halo = "explain halo --grid 4x4x2 --cells 256 --ranks-per-host 8 ";
    const std::pair<std::string, std::string> cases[] = {
        {"lab run --json= -- /bin/true", "--json"},
        {"lab run --mpi-root '' -- /bin/true", "--mpi-root"},
        {"bench waiters --samples 1 --out=", "--out"},
        {"bench plot --out '' /no/such/rows", "--out"},
        {"bench document --about= /no/such/rows", "--about"},
        {exchange + "--mpi=", "--mpi"},
        {exchange + "--tuning ''", "--tuning"},
        {exchange + "--algorithm=", "--algorithm"},
        {halo + "--rate=", "--rate"},
        {"sim plot --out= rows.jsonl", "--out"},
        {"sim bcast --ranks 4 --bytes 4K --rate ''", "--rate"},
        {"sim bcast --ranks 4 --bytes 4K --algorithm chain --trace ''", "--trace"},
        {"sim bcast --ranks 4 --bytes 4K --tuning ''", "--tuning"},
        {"sim bcast --ranks 4 --bytes 4K --machine ''", "--machine"}};
    for (const auto& [words, option] : cases) {
        SCOPED_TRACE(words);
        refused(shell(tool(words + " 2>&1")), 2, option + " has no value: give it one, or leave it out");
    }
}

// Named in their order, and with the option that was meant.
TEST(mistakes, words_that_nothing_takes_are_named_as_they_were_written) {
    const std::string exchange = "explain bcast --bytes 4M --topology node:4 ";
    const std::pair<std::string, std::string> cases[] = {
        {exchange + "--latncy-us 3", "thalweg explain: --latncy-us is not an option; maybe --latency-us?\n"},
        {exchange + "--latncy-us=3", "thalweg explain: --latncy-us is not an option; maybe --latency-us?\n"},
        {exchange + "one two", "thalweg explain: one two were not expected; see `thalweg explain --help`\n"},
        {exchange + "one", "thalweg explain: one was not expected; see `thalweg explain --help`\n"},
        {"bench bcast --hsts 4", "thalweg bench: --hsts is not an option; maybe --hosts?\n"},
        {"bench --hosts 4 bcast",
         "thalweg bench: --hosts is an option of bcast: write it behind that word\n"},
        {"bench --hosts=4 bcast",
         "thalweg bench: --hosts is an option of bcast: write it behind that word\n"},
        {"run --log", "thalweg run: --log needs a value; see `thalweg run --help`\n"},
        {"run --log info --log debug /bin/true",
         "thalweg run: --log is given 2 times: give it once; see `thalweg run --help`\n"},
        {"bench table ''", "thalweg bench: FILE is empty: a variable that should name it may not be set\n"},
        {"run ''", "thalweg run: PROGRAM is empty: a variable that should name it may not be set\n"},
        {"run -- ''", "thalweg run: PROGRAM is empty: a variable that should name it may not be set\n"},
        {"info /etc/passwd",
         "thalweg info: /etc/passwd is a file that cannot be started: make it executable (chmod +x) or name "
         "another\n"}};
    for (const auto& [words, sentence] : cases) {
        SCOPED_TRACE(words);
        refused(shell(tool(words + " 2>&1")), 2, sentence);
    }
}

// The largest number that there is has 309 digits.
TEST(mistakes, a_seed_that_is_no_number_is_told_of_in_a_line) {
    for (const char* seed : {"x", "-1"}) {
        const Result said = shell(tool(fmt::format("sim bcast --ranks 8 --bytes 1K --seed={} 2>&1", seed)));
        refused(said, 2,
                fmt::format(
                    "--seed: {} is not valid: expected a whole number such as 64; see `thalweg sim --help`",
                    seed));
        EXPECT_LT(said.text.size(), 120u);
    }
}

TEST(mistakes, an_option_that_takes_no_value_is_given_none) {
    refused(shell(tool("run --dry-run= /bin/true 2>&1")), 2, "thalweg run: --dry-run takes no value; see");
    refused(shell(tool("info --json= 2>&1")), 2, "--json takes no value");
    refused(shell(tool("bench bcast --screen-only= --hosts 0 2>&1")), 2, "--screen-only takes no value");
    for (const char* flag : {"--force", "--quiet", "--calibrate"})
        refused(shell(tool(fmt::format("lab run {}=no 2>&1", flag))), 2,
                fmt::format("{} takes no value", flag));
    refused(shell(tool("run --dry-rnu= /bin/true 2>&1")), 2, "--dry-rnu= is not an option; maybe --dry-run?");
    EXPECT_EQ(shell(tool("run /bin/echo --dry-run= 2>/dev/null")).text, "--dry-run=\n");
}

// Each element of a vector is counted: together they are beyond the model, and 2,048 beyond 64 bits.
TEST_F(Starting, a_matrix_whose_messages_the_model_cannot_count_is_refused) {
    for (const int columns : {20, 100, 2047, 2048, 2049}) {
        SCOPED_TRACE(columns);
        std::string matrix = "%%MatrixMarket matrix coordinate pattern general\n";
        matrix += fmt::format("5000 5000 {}\n", columns);
        for (int column = 1; column <= columns; ++column) matrix += fmt::format("5000 {}\n", column);
        const std::string explain =
            tool("explain alltoallv --topology node:2 --pattern '" + write("far.mtx", matrix) + "' --bytes ");
        refused(shell(explain + "8192T 2>&1"), 2,
                columns < 2048 ? "with --pattern " : "more bytes than 64 bits can count");
        EXPECT_EQ(shell(explain + "1T 2>&1").status, 0);
    }
}

// What ends otherwise is taken for the name of a pattern, whatever is in it.
TEST_F(Starting, how_the_name_of_a_matrix_has_to_end_is_said) {
    const std::string matrix =
        write("matrix.mm", "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n");
    refused(shell(tool("explain alltoallv --topology node:2 --bytes 1K --pattern '" + matrix + "' 2>&1")), 2,
            "or a Matrix Market file, FILE.mtx");
}

TEST_F(Starting, a_matrix_whose_name_is_no_utf_8_is_explained_in_json) {
    const std::string matrix =
        write("caf\351.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n");
    const Result said =
        shell(tool("explain alltoallv --topology node:2 --bytes 1K --json --pattern '" + matrix + "' 2>&1"));
    EXPECT_EQ(said.status, 0) << said.text;
    EXPECT_TRUE(nlohmann::json::accept(said.text)) << said.text;
}

TEST_F(Starting, a_dry_run_of_what_cannot_be_started_fails_as_the_run_would) {
    write("program", "true\n");
    fs::permissions(folder / "program", fs::perms::owner_read);
    const std::string there = "cd '" + folder.string() + "' && PATH=$PWD:/bin:/usr/bin ";
    for (const char* program :
         {"no-such-program", "./no-such-program", "/tmp", "./program", "program", "objects", "./program/x"}) {
        SCOPED_TRACE(program);
        const Result run = shell(there + tool(fmt::format("run --thalweg off {} 2>&1", program)));
        const Result dry = shell(there + tool(fmt::format("run --thalweg off --dry-run {} 2>&1", program)));
        EXPECT_NE(run.status, 0);
        EXPECT_EQ(run.status, dry.status);
        EXPECT_EQ(run.text, dry.text);
    }
}

TEST_F(Starting, a_script_whose_interpreter_is_missing_is_not_called_missing_itself) {
    write("script", "#!/no/such/shell -e\ntrue\n");
    write("from windows", "#!/bin/sh\r\ntrue\r\n");
    const std::string run = "cd '" + folder.string() + "' && " + tool("run --thalweg off ");
    refused(shell(run + "./script 2>&1"), 127,
            "its first line names /no/such/shell, which cannot be started");
    refused(shell(run + "'./from windows' 2>&1"), 127, "names /bin/sh and ends with a carriage return");
}

TEST_F(Starting, a_folder_is_no_tuning_table) {
    const std::string explain = tool("explain bcast --bytes 4M --topology node:4 --tuning '");
    refused(shell(explain + folder.string() + "' 2>&1"), 2,
            "cannot read the tuning table " + folder.string());
    refused(shell(explain + write("empty", "") + "' 2>&1"), 2, "a tuning table is a JSON object");
    const std::string faulty =
        R"([{"collective": "bcast", "rows": []}, {"collective": "alltoallv", "rows": [{}]}])";
    refused(shell(explain + write("list.json", faulty) + "' 2>&1"), 2,
            "list.json: table 2, row 1: \"choice\" must be native or an algorithm");
}

TEST_F(Starting, a_tuning_table_that_would_not_count_is_told_of_before_the_job) {
    const auto complaints = [](const std::string& table) {
        const std::string before = "THALWEG_TUNING='" + table + "' ";
        return nlohmann::json::parse(shell(before + tool("info --json")).text)["complaints"].dump();
    };
    EXPECT_EQ(complaints("/no/table.json"),
              R"(["THALWEG_TUNING: /no/table.json cannot be read; the built-in tables count"])");
    EXPECT_NE(complaints(folder.string()).find(" cannot be read; the built-in"), std::string::npos);
    EXPECT_NE(complaints(write("half.json", R"({"collective": "bcast", "rows": [)")).find("parse error"),
              std::string::npos);
    const std::string none = R"({"collective": "bcast", "rows": []})";
    const std::string second = write("second.json", "[" + none + ", {\"rows\": []}]");
    EXPECT_EQ(complaints(second).find("[\"THALWEG_TUNING: " + second + ": table 2: "), 0u);
    EXPECT_EQ(complaints(write("both.json", "[" + none + ", " + none + "]")), "[]");
    EXPECT_EQ(complaints(write("whole.json", R"({"collective": "bcast", "rows": []})")), "[]");
    EXPECT_EQ(complaints(""), "[]");
}

// As one in a folder that may not be entered.
TEST_F(Starting, a_file_that_cannot_be_looked_at_is_no_fault_of_thalwegs) {
    fs::create_symlink("loop.json", folder / "loop.json");
    const std::string loop = "'" + (folder / "loop.json").string() + "' 2>&1";
    for (const char* shows : {"table", "document", "plot"})
        refused(shell(tool(fmt::format("bench {} {}", shows, loop))), 2, "loop.json cannot be read");
    refused(shell(tool("sim bcast --ranks 4 --bytes 4K --machine " + loop)), 2, "--machine: cannot read ");
}

// As sizes are: 0160 would be the 112 cores that a host has, 0300 a lab of 192 hosts.
TEST(mistakes, numbers_that_begin_with_a_zero_are_decimal) {
    const std::string halo = "explain halo --grid 4x4 --cells 64 --ranks-per-host ";
    for (const char* number : {"8", "10"}) {
        const Result plain = shell(tool(halo + number));
        EXPECT_EQ(plain.status, 0);
        for (const char* zeros : {"0", "00"})
            EXPECT_EQ(shell(tool(halo + zeros + number + " 2>&1")).text, plain.text);
    }
    const std::string exchange = "explain bcast --bytes 4M --topology node:4 --ports ";
    EXPECT_EQ(shell(tool(exchange + "010 2>&1")).text, shell(tool(exchange + "10")).text);
    refused(shell(tool("bench bcast --hosts 0300 2>&1")), 2, "--hosts: Value 300 not in range 0 to 200");
    refused(shell(tool("bench bcast --hosts 0 --ppn 000 2>&1")), 2, "--ppn: Value 0 not in range 1 to ");
    refused(shell(tool("sim bcast --ranks 4 --bytes 1K --per-host 0160 2>&1")), 2,
            "--per-host 160: a host of dane has 112 cores");
}

// Else a file of that name is written, what the next option asks for is not done, and the program is started.
TEST_F(Starting, the_next_option_is_no_value) {
    const std::pair<std::string, std::string> cases[] = {
        {"run --report --dry-run /bin/echo started", "thalweg run: --report needs a value; see"},
        {"run --report -- /bin/echo started", "thalweg run: --report needs a value; see"},
        {"bench bcast --out --force --hosts 0", "thalweg bench: --out needs a value; see"},
        {"bench document --out --about rows.jsonl", "thalweg bench: --out needs a value; see"},
        {"explain bcast --bytes --topology node:4", "thalweg explain: --bytes needs a value; see"},
        {"explain halo --grid --cells=8 --ranks-per-host 2",
         "thalweg explain halo: --grid needs a value; see"},
        {"sim bcast --ranks --bytes 4", "thalweg sim: --ranks needs a value; see"},
        {"sim bcast --ranks 4 --bytes 4 --algorithm chain --trace --json",
         "thalweg sim: --trace needs a value; see"},
        {"sim bcast --ranks 4 --bytes 4 --algorithm", "thalweg sim: --algorithm needs a value; see"},
        {"lab run --json --force -- /bin/echo started", "--json needs a value"}};
    const auto files = [this] { return std::distance(fs::directory_iterator(folder), {}); };
    const auto before = files();
    for (const auto& [words, sentence] : cases) {
        SCOPED_TRACE(words);
        refused(shell("cd '" + folder.string() + "' && " + tool(words + " 2>&1")), 2, sentence);
        EXPECT_EQ(files(), before);
    }
    // A program's words are its own, and what is no option may be a value.
    EXPECT_EQ(shell(tool("run /bin/echo --report --dry-run 2>/dev/null")).text, "--report --dry-run\n");
    EXPECT_EQ(shell(tool("run --log error /bin/echo --log --bcast 2>/dev/null")).text, "--log --bcast\n");
    refused(shell(tool("run --bcast --chain /bin/true 2>&1")), 2, "THALWEG_BCAST=--chain is not valid");
}

// Else it would be the value, and the program be started all the same.
TEST(mistakes, what_separates_the_program_is_no_value_of_a_lab) {
    for (const char* option : {"--json", "--keep-env", "--mpi-root"})
        refused(shell(tool(fmt::format("lab run {} -- /bin/true 2>&1", option))), 2,
                fmt::format("{} needs a value", option));
}

TEST(mistakes, a_name_that_is_empty_is_told_of) {
    for (const char* words : {"''", "help ''"})
        refused(shell(tool(std::string(words) + " 2>&1")), 2,
                "thalweg: the verb is empty: a variable that should name it may not be set");
    refused(shell(tool("info '' 2>&1")), 2,
            "thalweg info: PROGRAM is empty: a variable that should name it may not be set");
}

// They have options of their own.
TEST(mistakes, the_help_of_an_exchange_and_of_a_halo_is_the_one_that_is_advised) {
    refused(shell(tool("explain alltoallv --pattern dense --bytes 1K --topology node:4 --overlapped 2>&1")),
            2, "--overlapped is not an option; see `thalweg explain alltoallv --help`");
    refused(shell(tool("explain halo --grid 4x4 --cells 8 --ranks-per-host 2 --tuning x 2>&1")), 2,
            "--tuning is not an option; see `thalweg explain halo --help`");
}

// Each has options of its own, and those that have no value do not take the name for one.
TEST(mistakes, options_may_stand_before_what_is_explained) {
    const std::pair<std::string, std::string> cases[] = {
        {"--bytes 4M --topology node:4 --overlapped --json ", "bcast"},
        {"--topology=node:4 ", "barrier"},
        {"--pattern banded --bytes 4K --topology node:4 --ports 2 --json ", "alltoallv"},
        {"--overlapped --bytes=4K --topology node:4 ", "alltoallv"},
        {"--grid 4x4 --cells 64 --ranks-per-host 4 ", "halo"},
        {"--periodic --grid 4x4 --cells 64 --ranks-per-host 4 --json ", "halo"},
        {"--help ", "halo"},
        {"-h ", "alltoallv"}};
    for (const auto& [options, operation] : cases) {
        SCOPED_TRACE(options + operation);
        const Result last = shell(tool("explain " + operation + " " + options + " 2>&1"));
        EXPECT_EQ(last.status, 0) << last.text;
        const Result first = shell(tool("explain " + options + operation + " 2>&1"));
        EXPECT_EQ(first.status, 0) << first.text;
        EXPECT_EQ(first.text, last.text);
    }
    EXPECT_EQ(shell(tool("explain alltoallv -h")).text, shell(tool("explain alltoallv --help")).text);
    refused(shell(tool("explain --grid 4x4 halo 2>&1")), 2,
            "--cells is required; see `thalweg explain halo --help`");
    refused(shell(tool("explain --tuning halo bcast --bytes 1K --topology node:4 2>&1")), 2,
            "cannot read the tuning table halo");
    refused(shell(tool("explain --bytes 4M --topology node:4 bcst 2>&1")), 2, "there is no collective bcst");
    for (const char* words : {"--out curve.png plot rows.jsonl", "--json plot", "--quiet plot rows.jsonl"})
        refused(shell(tool(fmt::format("sim {} 2>&1", words))), 2,
                "thalweg sim: plot is not of a simulation: write it first, `thalweg sim plot");
}

TEST(mistakes, a_lab_knows_its_verbs) {
    refused(shell(tool("lab rnu -- /bin/true 2>&1")), 2,
            "there is no verb rnu; `thalweg lab --help` lists them");
    for (const char* verb : {"check", "list", "clean"})
        refused(shell(tool(fmt::format("lab {} --all 2>&1", verb))), 2, "takes no --all");
    const Result help = shell(tool("lab run --hosts 4 --help 2>&1"));
    EXPECT_EQ(help.status, 0);
    EXPECT_EQ(help.text, shell(tool("lab run --help")).text);
    for (const char* lab : {"''", "none", "12x", "-1", "0", "4294967297"})
        refused(shell(tool(fmt::format("lab exec --lab {} 0 -- true 2>&1", lab))), 2,
                "--lab takes the PID of a running lab, not ");
    refused(shell(tool("lab exec 4294967296 -- true 2>&1")), 2, "there is no host 4294967296");
}

}  // namespace
}  // namespace thalweg::test
