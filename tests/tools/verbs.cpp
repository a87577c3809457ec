// help, --version, info and explain.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "algorithms/algorithm.h"
#include "base/options.h"
#include "shell.h"
#include "thalweg/thalweg.h"

namespace thalweg::test {
namespace {

std::string tool(const std::string& arguments) { return "'" + thalweg + "' " + arguments; }

TEST(verbs, help_lists_every_verb_and_each_has_its_own) {
    const Result help = shell(tool("help"));
    EXPECT_EQ(help.status, 0);
    for (const char* verb : {"run", "info", "explain", "bench", "lab"}) {
        EXPECT_NE(help.text.find(std::string("\n  ") + verb), std::string::npos) << verb;
        const Result own = shell(tool(std::string(verb) + " --help 2>&1"));
        EXPECT_EQ(own.status, 0) << verb;
        EXPECT_GT(own.text.size(), 100u) << verb;
        EXPECT_EQ(shell(tool("help " + std::string(verb) + " 2>&1")).text, own.text) << verb;
    }
}

TEST(verbs, version) {
    EXPECT_EQ(shell(tool("--version")).text, "thalweg " + std::to_string(THALWEG_VERSION_MAJOR) + "." +
                                                 std::to_string(THALWEG_VERSION_MINOR) + "." +
                                                 std::to_string(THALWEG_VERSION_PATCH) + "\n");
}

TEST(verbs, an_unknown_verb_is_bad_usage_and_names_the_nearest) {
    const Result result = shell(tool("rnu ./app 2>&1"));
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.text, "thalweg: there is no verb rnu; maybe run?\n");
    EXPECT_EQ(shell(tool("2>/dev/null")).status, 2);
}

TEST(verbs, what_is_unknown_is_said_at_once_and_as_a_sentence) {
    const Result bench = shell(tool("bench bcast --mpi mpitch 2>&1"));
    EXPECT_EQ(bench.status, 2);
    EXPECT_NE(bench.text.find("mpitch"), std::string::npos) << bench.text;
    EXPECT_EQ(bench.text.find("predicted"), std::string::npos) << bench.text;
    EXPECT_NE(bench.text.find("see `thalweg bench bcast --help`"), std::string::npos) << bench.text;
    // Options that help calls repeatable may be repeated: what is wrong here is the MPI library.
    for (const char* repeats : {"halo --setting A=1 --setting B=2", "halo --ours ring --ours pairwise",
                                "iallgather --ours ring --ours bruck"}) {
        const Result repeated = shell(tool(std::string("bench ") + repeats + " --mpi mpitch 2>&1"));
        EXPECT_EQ(repeated.text.find("thalweg bench: --mpi: mpitch"), 0u) << repeated.text;
    }
    const Result nothing = shell(tool("bench 2>&1"));
    EXPECT_EQ(nothing.status, 2);
    EXPECT_EQ(nothing.text, "thalweg bench: a subcommand is required; see `thalweg bench --help`\n");
    for (const char* shows : {"table", "document", "plot"}) {
        const Result missing = shell(tool(std::string("bench ") + shows + " /no/such/rows 2>&1"));
        EXPECT_EQ(missing.status, 2) << shows;
        EXPECT_EQ(missing.text, "thalweg bench: /no/such/rows does not exist\n");
        const Result folder = shell(tool(std::string("bench ") + shows + " / 2>&1"));
        EXPECT_EQ(folder.status, 2) << shows;
        EXPECT_EQ(folder.text, "thalweg bench: / cannot be read\n");
    }
    const Result run = shell(tool("run --bcast=chian /bin/true 2>&1"));
    EXPECT_EQ(run.status, 2);
    EXPECT_EQ(run.text.find("thalweg run: THALWEG_BCAST=chian is not valid: there is no algorithm \"chian\""),
              0u)
        << run.text;
}

// A result row whose settings nobody could have written.
TEST(verbs, what_nobody_expected_ends_in_a_sentence) {
    const nlohmann::json row{
        {"context", {{"hosts", 4}, {"ranks", 4}, {"settings", {{"THALWEG_LAB_RATE_BYTES_PER_S", true}}}}},
        {"collective", "bcast"},
        {"column", "thalweg"},
        {"phase", "decide"},
        {"launch", 1},
        {"bytes", 65536},
        {"seconds", {0.1}},
        {"back_to_back_seconds", nlohmann::json::array()},
        {"wrong_words", 0},
        {"late_samples", 0},
        {"algorithm", ""},
        {"reason", ""}};
    const fs::path file = fs::temp_directory_path() / fmt::format("thalweg-verbs-{}.jsonl", getpid());
    std::ofstream(file) << row.dump() << '\n';
    const Result ended = shell(tool("bench table '" + file.string() + "' 2>&1 >/dev/null"));
    fs::remove(file);
    EXPECT_EQ(ended.status, 1);
    EXPECT_EQ(ended.text.find("thalweg bench: cannot go on: type must be "), 0u) << ended.text;
    EXPECT_NE(ended.text.find("report it as a fault of Thalweg"), std::string::npos) << ended.text;
}

TEST(verbs, run_help_has_every_option_with_its_unit) {
    const std::string text = shell(tool("run --help")).text;
    for (const Option& option : options()) {
        EXPECT_NE(text.find(flag_of(option)), std::string::npos) << option.variable;
        EXPECT_NE(text.find(std::string(option.unit)), std::string::npos) << option.variable;
    }
}

TEST(verbs, info_shows_options_with_their_origin) {
    const auto info = nlohmann::json::parse(
        shell("THALWEG_CREDIT_BYTES=64K THALWEG_IN_FLIGHT=lots THALWEG_BCSAT=chain " + tool("info --json"))
            .text);
    EXPECT_EQ(info["options"].size(), option_count);
    for (const auto& option : info["options"]) {
        if (option["variable"] == "THALWEG_CREDIT_BYTES") {
            EXPECT_EQ(option["value"], "64K");
            EXPECT_EQ(option["origin"], "environment");
        } else {
            EXPECT_EQ(option["value"], option["default"]) << option["variable"];
        }
    }
    ASSERT_EQ(info["complaints"].size(), 2u);
    EXPECT_NE(info["complaints"].dump().find("maybe THALWEG_BCAST?"), std::string::npos);
    EXPECT_NE(info["complaints"].dump().find("from 2 to 4096"), std::string::npos);
}

TEST(verbs, info_takes_names_that_are_no_utf_8) {
    const Result result = shell("THALWEG_REPORT=\"$(printf 'caf\\351.json')\" " + tool("info --json 2>&1"));
    EXPECT_EQ(result.status, 0) << result.text;
    for (const auto& option : nlohmann::json::parse(result.text)["options"])
        if (option["variable"] == "THALWEG_REPORT") {
            EXPECT_EQ(option["value"], "caf\uFFFD.json");
        }
}

TEST(verbs, info_lists_every_algorithm_in_text_and_json) {
    const std::string text = shell(tool("info")).text;
    const auto info = nlohmann::json::parse(shell(tool("info --json")).text);
    EXPECT_EQ(info["algorithms"].size(), algorithms().size());
    for (const Algorithm& algorithm : algorithms())
        EXPECT_NE(text.find(std::string(name_of(algorithm.collective)) + "/" + std::string(algorithm.name)),
                  std::string::npos);
}

TEST(verbs, info_names_the_mpi_of_a_program) {
    const fs::path python = source / ".venv-mpich/bin/python";
    if (!fs::exists(python)) GTEST_SKIP() << "no MPICH wheel";
    const auto info = nlohmann::json::parse(shell(tool("info --json '" + python.string() + "'")).text);
    EXPECT_EQ(info["mpi"]["abi"], "mpich");
    EXPECT_EQ(info["mpi"]["path"], (source / ".venv-mpich/lib/libmpi.so.12").string());
    EXPECT_EQ(shell(tool("info /no/such/program 2>/dev/null")).status, 2);
}

TEST(verbs, info_counts_the_cores_that_are_left_to_it) {
    const auto machine = nlohmann::json::parse(shell("taskset -c 0 " + tool("info --json")).text)["machine"];
    EXPECT_EQ(machine["usable_cores"], 1);
    EXPECT_EQ(machine["online_cores"], std::stoi(shell("getconf _NPROCESSORS_ONLN").text));
}

TEST(verbs, info_writes_the_page_of_options) {
    EXPECT_EQ(shell(tool("info --options-markdown")).text, options_markdown());
}

// The time in seconds of a candidate, by its name's beginning.
double predicted(const nlohmann::json& explanation, const std::string& name) {
    for (const auto& candidate : explanation["candidates"])
        if (candidate["algorithm"].get<std::string>().rfind(name, 0) == 0 &&
            candidate.contains("predicted_seconds"))
            return candidate["predicted_seconds"];
    return -1;
}

TEST(explain, prices_every_algorithm_and_marks_the_choice) {
    const auto explanation =
        nlohmann::json::parse(shell(tool("explain bcast --bytes 4M --topology 'node:4 core:2' --json")).text);
    EXPECT_EQ(explanation["bytes"], 4u << 20);
    EXPECT_EQ(explanation["ranks"], 8);
    EXPECT_EQ(explanation["hosts"], 4);
    for (const Algorithm& algorithm : algorithms()) {
        if (algorithm.collective != Collective::bcast) continue;
        bool listed = false;
        for (const auto& candidate : explanation["candidates"])
            listed = listed || candidate["algorithm"].get<std::string>().rfind(algorithm.name, 0) == 0;
        EXPECT_TRUE(listed) << algorithm.name;
    }
    int chosen = 0;
    for (const auto& candidate : explanation["candidates"])
        if (candidate["chosen"]) {
            ++chosen;
            EXPECT_EQ(candidate["algorithm"], explanation["choice"]);
        }
    EXPECT_EQ(chosen, explanation["choice"] == "native" ? 0 : 1);
    EXPECT_FALSE(explanation["reason"].get<std::string>().empty());
    // A ring of four hosts moves less over a link than a root that sends everything to everybody.
    EXPECT_LT(predicted(explanation, "chain"), predicted(explanation, "linear"));
}

TEST(explain, sixteen_hosts_of_48_cores_are_priced_ranked_and_chosen_from) {
    const std::string arguments = "explain bcast --bytes 4M --topology \"node:16 core:48\"";
    const auto explanation = nlohmann::json::parse(shell(tool(arguments + " --json")).text);
    EXPECT_EQ(explanation["ranks"], 768);
    EXPECT_EQ(explanation["hosts"], 16);
    const Result said = shell(tool(arguments + " 2>&1"));
    EXPECT_EQ(said.status, 0);
    // Every candidate is a line with its price, the cheapest first, and the choice one of them, marked.
    const std::string choice = explanation["choice"];
    std::size_t at = 0, priced = 0;
    double before = 0;
    for (const auto& candidate : explanation["candidates"]) {
        const std::string name = candidate["algorithm"];
        at = said.text.find((candidate["chosen"] ? "\n* " : "\n  ") + name + " ", at);
        ASSERT_NE(at, std::string::npos) << name << " is not there in this order: " << said.text;
        if (!candidate.contains("predicted_seconds")) continue;
        const double price = candidate["predicted_seconds"];
        EXPECT_GE(price, before) << name;
        EXPECT_GE(price, 0.99 * explanation["limit_seconds"].get<double>()) << name;
        before = price;
        ++priced;
    }
    EXPECT_GE(priced, 5u);
    EXPECT_NE(said.text.find("choice: " + choice + " ("), std::string::npos) << said.text;
    EXPECT_NE(said.text.find(explanation["reason"].get<std::string>()), std::string::npos) << said.text;
    if (choice != "native") {
        EXPECT_GT(predicted(explanation, choice), 0);
    }
}

TEST(explain, a_slower_link_costs_in_proportion) {
    auto at = [](const char* rate) {
        return nlohmann::json::parse(
            shell(tool("explain bcast --bytes 64M --topology 'node:4 core:1' --latency-us 1 "
                       "--json --rate ") +
                  rate)
                .text);
    };
    const auto fast = at("10gbit"), slow = at("100mbit");
    EXPECT_NEAR(predicted(slow, "linear") / predicted(fast, "linear"), 100, 2);
    EXPECT_NEAR(slow["limit_seconds"].get<double>(), 64.0 * (1 << 20) / 12.5e6, 0.1);
}

TEST(explain, text_and_json_tell_the_same_choice) {
    const std::string arguments = "explain bcast --bytes 1M --topology 'node:8 core:1' --mpi mpich";
    const auto explanation = nlohmann::json::parse(shell(tool(arguments + " --json")).text);
    const std::string text = shell(tool(arguments)).text;
    EXPECT_NE(text.find("choice: " + explanation["choice"].get<std::string>() + " ("), std::string::npos)
        << text;
}

// Where no table speaks, blocking calls do not run the choice from the first to the last.
TEST(explain, says_which_calls_take_turns_with_the_library) {
    const auto explained = [](const std::string& arguments) {
        return nlohmann::json::parse(shell(tool("explain " + arguments + " --json")).text);
    };
    const auto takes_turns = [&](const std::string& arguments) {
        const std::string reason = explained(arguments)["reason"];
        return reason.find("take turns with the MPI library's own") != std::string::npos;
    };
    const std::string place = " --bytes 1M --topology 'node:4 core:2'";
    for (const char* collective : {"bcast", "allgather", "allreduce", "alltoallv"}) {
        EXPECT_TRUE(takes_turns(collective + place)) << collective;
        EXPECT_FALSE(takes_turns(collective + place + " --overlapped")) << collective;
    }
    EXPECT_FALSE(takes_turns("bcast" + place + " --rate 100mbit --latency-us 60")) << "a table speaks";
    EXPECT_FALSE(takes_turns("bcast" + place + " --bcast chain"));
    EXPECT_FALSE(takes_turns("alltoallv" + place + " --algorithm spread"));
    // Small ones are taken as nonblocking ones are.
    const std::string small = "alltoallv --bytes 4K --topology 'node:4 core:2'";
    EXPECT_NE(explained(small)["choice"], "native");
    EXPECT_EQ(explained(small)["choice"], explained(small + " --overlapped")["choice"]);
}

TEST(explain, whoever_advances_an_operation_sleeps_meanwhile) {
    for (const char* what : {"bcast --overlapped", "alltoallv"}) {
        const std::string arguments = fmt::format("explain {} --bytes 4M --topology node:16 --json", what);
        EXPECT_EQ(shell(tool(arguments)).text, shell(tool(arguments + " --latency-us 30")).text);
        EXPECT_NE(shell(tool(arguments)).text, shell(tool(arguments + " --latency-us 2")).text);
    }
}

TEST(explain, native_may_be_asked_for) {
    const std::string arguments = "explain bcast --bytes 1M --topology node:4 --bcast native";
    const auto explanation = nlohmann::json::parse(shell(tool(arguments + " --json")).text);
    EXPECT_EQ(explanation["choice"], "native");
    for (const auto& candidate : explanation["candidates"]) EXPECT_FALSE(candidate["chosen"]) << candidate;
    EXPECT_NE(shell(tool(arguments)).text.find("\nchoice: native (asked for)\n"), std::string::npos);
}

TEST(explain, mistakes_are_told_in_one_line_with_the_accepted_form) {
    const std::string good = "explain bcast --bytes 4M --topology 'node:4 core:2' ";
    const std::pair<std::string, std::string> cases[] = {
        {"explain bcats --bytes 4M --topology node:4", "bcast"},
        {"explain bcats", "there is no collective bcats"},
        {"explain bcast --bytes 4MB --topology node:4", "64K"},
        {"explain bcast --bytes 4M --topology 4x2", "node:"},
        {"explain bcast --bytes 4M", "--topology"},
        {good + "--rate 100", "100mbit"},
        {good + "--mpi lam", "mpich, openmpi or impi"},
        {good + "--bcast chian", "chain"},
        {good + "--tuning /no/such/table", "/no/such/table"},
    };
    for (const auto& [arguments, expected] : cases) {
        const Result result = shell(tool(arguments + " 2>&1"));
        EXPECT_EQ(result.status, 2) << arguments;
        EXPECT_NE(result.text.find(expected), std::string::npos) << result.text;
        EXPECT_EQ(std::count(result.text.begin(), result.text.end(), '\n'), 1) << result.text;
    }
}

TEST(explain, says_after_how_many_exchanges_a_plan_has_paid) {
    const auto explanation = nlohmann::json::parse(
        shell(tool("explain alltoallv --bytes 64K --pattern banded --topology 'node:4 core:2' --json")).text);
    EXPECT_EQ(explanation["pattern"], "banded");
    const double limit = explanation["limit_seconds"];
    EXPECT_GT(limit, 0);
    std::map<std::string, nlohmann::json> ways;
    for (const auto& way : explanation["ways"]) {
        EXPECT_GE(way["call_seconds"].get<double>(), limit) << way["way"];
        ways[way["way"]] = way;
    }
    ASSERT_TRUE(ways.contains("notify") && ways.contains("window per call") && ways.contains("node_leader"));
    EXPECT_FALSE(ways["window per call"].contains("init_seconds"));
    // Against its own baseline a window that is made once pays; against the native call it never does.
    EXPECT_TRUE(ways["rma_fence"]["calls_to_pay_native"].is_null());
    EXPECT_NEAR(ways["rma_fence"]["calls_to_pay_window_per_call"].get<double>(),
                ways["rma_fence"]["init_seconds"].get<double>() /
                    (ways["window per call"]["call_seconds"].get<double>() -
                     ways["rma_fence"]["call_seconds"].get<double>()),
                1e-9);
    EXPECT_NE(
        shell(tool("explain alltoallv --bytes 64K --pattern dense --topology 'node:4'")).text.find("never"),
        std::string::npos);
}

// Two links of a host carry what one of twice the rate does.
TEST(explain, what_was_seen_of_an_exchange_is_predicted_for_all_links_of_a_host) {
    const auto seen_calls = [](const std::string& links) {
        const auto explanation = nlohmann::json::parse(
            shell(
                tool("explain alltoallv --bytes 64K --pattern dense --topology node:4 --json --once-us 20000 "
                     "--small-us 100 " +
                     links))
                .text);
        for (const auto& way : explanation["ways"])
            if (way["way"] == "spread") return way["calls_to_pay_seen"].get<double>();
        return 0.0;
    };
    EXPECT_GT(seen_calls("--rate 100mbit"), 2 * seen_calls("--rate 100mbit --ports 2"));
    EXPECT_GT(seen_calls("--rate 100mbit --ports 2"), 0);
    EXPECT_DOUBLE_EQ(seen_calls("--rate 100mbit --ports 2"), seen_calls("--rate 200mbit"));
}

TEST(explain, refuses_exchanges_it_cannot_explain) {
    for (const char* words :
         {"--bytes 64K --topology 'node:4' --pattern dence", "--pattern dense --bytes x --topology 'node:4'",
          "--pattern dense --bytes 1 --topology 'node:100000'",
          "--pattern dense --bytes 1 --topology 'node:'"}) {
        const auto refused = shell(tool(std::string("explain alltoallv ") + words + " 2>&1"));
        EXPECT_EQ(refused.status, 2) << words;
        EXPECT_EQ(std::count(refused.text.begin(), refused.text.end(), '\n'), 1) << refused.text;
    }
}

TEST(explain, splits_a_halo_exchange_into_wire_and_copies) {
    const std::string arguments = "explain halo --grid 4x4x2 --cells 256 --ranks-per-host 8";
    const auto json = nlohmann::json::parse(shell(tool(arguments + " --json")).text);
    // A host has the 1 x 4 x 2 ranks of one plane: 20 faces of 512 KiB inside, 8 towards either side.
    const std::uint64_t face = 256 * 256 * 8;
    EXPECT_EQ(json["hosts"], 4);
    EXPECT_EQ(json["link_bytes"], 16 * face);
    EXPECT_EQ(json["inside_bytes_per_rank"], (std::vector<std::uint64_t>{2 * face, 3 * face}));
    EXPECT_EQ(json["outside_bytes_per_rank"], (std::vector<std::uint64_t>{face, 2 * face}));
    // The hosts are a row: three borders, which 8 messages cross either way.
    EXPECT_EQ(json["messages_between_hosts"], 2 * 3 * 8);
    EXPECT_EQ(json["messages_by_leaders"], 2 * 3);
    EXPECT_EQ(json["copied_bytes_per_host"], (20 + 32) * face);
    EXPECT_NEAR(json["wire_seconds"].get<double>(), 16.0 * face / 12e9 + 2e-6, 1e-12);
    EXPECT_NEAR(json["copies_seconds"].get<double>(), 52.0 * face / 48e9, 1e-12);
    EXPECT_EQ(json["messages"].size(), 3u);
    for (const auto& message : json["messages"]) EXPECT_EQ(message["bytes"], face);
    // What dominates follows the rates, and the protocols follow what dominates.
    const auto slow = nlohmann::json::parse(shell(tool(arguments + " --rate 100mbit --json")).text);
    EXPECT_EQ(slow["bound_by"], "wire");
    EXPECT_EQ(slow["messages"][0]["because"], "the wire takes longest");
    const auto copying = nlohmann::json::parse(shell(tool(arguments + " --copy-rate 100MB/s --json")).text);
    EXPECT_EQ(copying["bound_by"], "copies");
    EXPECT_NE(copying["messages"][0]["because"], slow["messages"][0]["because"]);
    const std::string text = shell(tool(arguments)).text;
    EXPECT_NE(text.find(slow["messages"][0]["protocol"].get<std::string>()), std::string::npos);
    EXPECT_NE(text.find("rank"), std::string::npos);
    EXPECT_NE(text.find("all ranks send 48 there"), std::string::npos) << text;
    for (const char* wrong :
         {"--grid 4x4x2", "--cells 256 --ranks-per-host 8", "--grid many --cells 256 --ranks-per-host 8",
          "--grid 4x4x2 --cells 0 --ranks-per-host 8", "--grid 4x4x2 --cells 8x8 --ranks-per-host 8",
          "--grid 4x4x2 --cells 8 --ranks-per-host 8 --points 9",
          "--grid 4x4x2 --cells 8 --ranks-per-host 8 --copy-rate fast"}) {
        const Result refused = shell(tool(std::string("explain halo ") + wrong + " 2>&1"));
        EXPECT_EQ(refused.status, 2) << wrong << refused.text;
        EXPECT_EQ(std::count(refused.text.begin(), refused.text.end(), '\n'), 1) << refused.text;
    }
}

}  // namespace
}  // namespace thalweg::test
