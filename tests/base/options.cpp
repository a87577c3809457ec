#include "base/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "directions.h"

namespace thalweg {
namespace {

Settings read(std::vector<const char*> environment, std::vector<Complaint>& complaints,
              OptionCheck check = nullptr) {
    environment.push_back(nullptr);
    return Settings::from_environment(environment.data(), complaints, check);
}

TEST(options, every_default_is_what_its_row_says_and_is_accepted) {
    const Settings settings;
    for (std::size_t i = 0; i < option_count; ++i) {
        const Option& option = options()[i];
        EXPECT_EQ(settings.value_text(i), option.standard) << option.variable;
        Settings copy;
        std::string why;
        EXPECT_EQ(copy.set(option.variable, option.standard, Origin::environment, why), Status::ok) << why;
    }
}

TEST(options, names_are_unique_and_flags_follow_from_them) {
    std::set<std::string> variables, flags;
    for (const Option& option : options()) {
        EXPECT_EQ(option.variable.substr(0, 7), "THALWEG");
        EXPECT_TRUE(variables.emplace(option.variable).second) << option.variable;
        EXPECT_TRUE(flags.insert(flag_of(option)).second) << flag_of(option);
        EXPECT_NE(option.text.back(), '.') << option.variable;
    }
    EXPECT_EQ(flag_of(options()[index_of::bcast_min_bytes]), "--bcast-min-bytes");
    EXPECT_EQ(flag_of(options()[index_of::enabled]), "--thalweg");
}

TEST(options, words_of_a_row_follow_the_order_of_its_enum) {
    Settings settings;
    std::string why;
    ASSERT_EQ(settings.set("THALWEG", "off", Origin::environment, why), Status::ok);
    EXPECT_EQ(settings.enabled, Switch::off);
    ASSERT_EQ(settings.set("THALWEG_LOG", "debug", Origin::environment, why), Status::ok);
    EXPECT_EQ(settings.log, LogLevel::debug);
    ASSERT_EQ(settings.set("THALWEG_WAIT", "Sleep", Origin::environment, why), Status::ok);
    EXPECT_EQ(settings.wait, WaitSetting::sleep);
    ASSERT_EQ(settings.set("THALWEG_TRANSPORT", "mpi", Origin::environment, why), Status::ok);
    EXPECT_EQ(settings.transport, TransportSetting::mpi);
    ASSERT_EQ(settings.set("THALWEG_PRESENCE", "assume", Origin::environment, why), Status::ok);
    EXPECT_EQ(settings.presence, PresenceSetting::assume);
    ASSERT_EQ(settings.set("THALWEG_AGENT", "sibling", Origin::environment, why), Status::ok);
    EXPECT_EQ(settings.agent, AgentSetting::sibling);
    ASSERT_EQ(settings.set("THALWEG_INSIDE", "cma_put", Origin::environment, why), Status::ok);
    EXPECT_EQ(settings.inside, InsideSetting::cma_put);
    ASSERT_EQ(settings.set("THALWEG_INSIDE", "direct", Origin::environment, why), Status::ok);
    EXPECT_EQ(settings.inside, InsideSetting::direct);
    ASSERT_EQ(settings.set("THALWEG_BETWEEN", "get", Origin::environment, why), Status::ok);
    EXPECT_EQ(settings.between, BetweenSetting::get);
}

TEST(options, a_number_of_more_digits_than_a_double_holds_is_refused) {
    const std::string digits = "1." + std::string(400, '0');
    Settings settings;
    std::string why;
    EXPECT_EQ(settings.set("THALWEG_LATENCY_US", digits, Origin::environment, why), Status::invalid_argument);
    EXPECT_EQ(settings.set("THALWEG_RATE", digits + "mbit", Origin::environment, why),
              Status::invalid_argument);
    EXPECT_EQ(settings.latency_us, 0);
    EXPECT_EQ(settings.rate, 0);
}

TEST(options, environment_is_read_with_units_and_remembers_the_origin) {
    std::vector<Complaint> complaints;
    const Settings settings =
        read({"PATH=/bin", "THALWEG_CREDIT_BYTES=64K", "THALWEG_RATE=100mbit", "THALWEG_LATENCY_US=2.5",
              "THALWEG_BCAST=chain:chunk_bytes=64K", "THALWEG_REPORT=-", "THALWEGS=mine"},
             complaints);
    EXPECT_TRUE(complaints.empty());
    EXPECT_EQ(settings.credit_bytes, 65536u);
    EXPECT_DOUBLE_EQ(settings.rate, 12.5e6);
    EXPECT_DOUBLE_EQ(settings.latency_us, 2.5);
    EXPECT_EQ(settings.bcast.view(), "chain:chunk_bytes=64K");
    EXPECT_EQ(settings.report.view(), "-");
    EXPECT_EQ(settings.origin[index_of::rate], Origin::environment);
    EXPECT_EQ(settings.origin[index_of::in_flight], Origin::standard);
}

TEST(options, unknown_name_is_reported_with_the_nearest_real_one) {
    std::vector<Complaint> complaints;
    read({"THALWEG_BCSAT=chain", "THALWEG_QUANTUM_FOAM=1"}, complaints);
    ASSERT_EQ(complaints.size(), 2u);
    EXPECT_EQ(complaints[0].level, LogLevel::warn);
    EXPECT_NE(complaints[0].sentence.find("THALWEG_BCSAT is not an option; maybe THALWEG_BCAST?"),
              std::string::npos)
        << complaints[0].sentence;
    EXPECT_EQ(complaints[1].sentence.find("maybe"), std::string::npos) << complaints[1].sentence;
    // Names that other readers understand.
    complaints.clear();
    read({"THALWEG_LAB_PPN=2", "THALWEG_UCX_TLS=tcp", "THALWEG_MPI_ROOTS=/opt"}, complaints);
    EXPECT_TRUE(complaints.empty());
}

// In the environment of every job that a module was loaded for, and of whoever builds.
TEST(options, names_of_an_installation_and_of_its_build_are_no_misspelt_options) {
    std::vector<Complaint> complaints;
    read({"THALWEG_ROOT=/apps/thalweg", "THALWEG_DIR=/apps/thalweg", "THALWEG_VERSION=0.1", "THALWEG_JOBS=2",
          "THALWEG_PYTHON=python3", "THALWEG_FUZZ_SECONDS=9"},
         complaints);
    EXPECT_TRUE(complaints.empty()) << complaints[0].sentence;
    read({"THALWEG_ROOTS=/apps/thalweg"}, complaints);
    EXPECT_EQ(complaints.size(), 1u);
}

TEST(options, malformed_value_is_refused_with_the_accepted_form_and_the_default_stays) {
    struct Case {
        const char* entry;
        const char* expected;
    };
    const Case cases[] = {
        {"THALWEG_CREDIT_BYTES=64KB", "64K"},
        {"THALWEG_CREDIT_BYTES=1", "from 4K to 1G"},
        {"THALWEG_CREDIT_BYTES=2G", "from 4K to 1G"},
        {"THALWEG_IN_FLIGHT=-3", "from 2 to 4096"},
        {"THALWEG_LOG=loud", "error, warn, info or debug"},
        {"THALWEG=maybe", "off or on"},
        {"THALWEG_RATE=100", "100mbit"},
        {"THALWEG_LATENCY_US=2us", "microseconds"},
    };
    for (const Case& c : cases) {
        std::vector<Complaint> complaints;
        const Settings settings = read({c.entry}, complaints);
        ASSERT_EQ(complaints.size(), 1u) << c.entry;
        EXPECT_NE(complaints[0].sentence.find(c.expected), std::string::npos) << complaints[0].sentence;
        for (std::size_t i = 0; i < option_count; ++i)
            EXPECT_EQ(settings.value_text(i), options()[i].standard);
    }
}

TEST(options, text_that_does_not_fit_is_refused) {
    Settings settings;
    std::string why;
    const std::string longest(settings.tuning.data.size() - 1, 'x');
    EXPECT_EQ(settings.set("THALWEG_TUNING", longest, Origin::program, why), Status::ok);
    EXPECT_EQ(settings.tuning.view(), longest);
    EXPECT_EQ(settings.set("THALWEG_TUNING", longest + "x", Origin::program, why), Status::invalid_argument);
    EXPECT_EQ(settings.tuning.view(), longest);
}

TEST(options, algorithms_are_judged_by_whoever_knows_them) {
    const OptionCheck check = [](const Option& option, std::string_view value, std::string& why) {
        why = "there is no such algorithm for " + std::string(option.field);
        return value == "chain";
    };
    Settings settings;
    std::string why;
    EXPECT_EQ(settings.set("THALWEG_BCAST", "auto", Origin::program, why, check), Status::ok);
    EXPECT_EQ(settings.set("THALWEG_BCAST", "native", Origin::program, why, check), Status::ok);
    EXPECT_EQ(settings.set("THALWEG_BCAST", "chain", Origin::program, why, check), Status::ok);
    EXPECT_EQ(settings.set("THALWEG_BCAST", "chian", Origin::program, why, check), Status::invalid_argument);
    EXPECT_EQ(why, "THALWEG_BCAST=chian is not valid: there is no such algorithm for bcast");
    EXPECT_EQ(settings.bcast.view(), "chain");
    EXPECT_EQ(settings.set("THALWEG_BCAST", "", Origin::program, why, check), Status::ok);
    EXPECT_EQ(settings.bcast.view(), "auto");
    EXPECT_EQ(settings.origin[index_of::bcast], Origin::standard);
}

TEST(options, ranks_adopt_what_is_agreed_and_keep_what_is_local) {
    std::vector<Complaint> complaints;
    const Settings rank0 = read({"THALWEG_BCAST=chain", "THALWEG_RATE=100mbit", "THALWEG_WAIT=sleep",
                                 "THALWEG_CREDIT_BYTES=64K", "THALWEG_TOPOLOGY=node:2", "THALWEG_LOG=debug"},
                                complaints);
    Settings other = read({"THALWEG_LOG=error", "THALWEG_BCAST=chain", "THALWEG_REPORT=mine"}, complaints);
    std::vector<std::string_view> differing;
    ASSERT_EQ(other.adopt(rank0.to_blob(), differing), Status::ok);
    std::sort(differing.begin(), differing.end());
    EXPECT_EQ(differing,
              (std::vector<std::string_view>{"THALWEG_CREDIT_BYTES", "THALWEG_RATE", "THALWEG_REPORT",
                                             "THALWEG_TOPOLOGY", "THALWEG_WAIT"}));
    for (std::size_t i = 0; i < option_count; ++i)
        if (options()[i].scope == Scope::agreed) EXPECT_EQ(other.value_text(i), rank0.value_text(i));
    EXPECT_EQ(other.log, LogLevel::error);
    EXPECT_EQ(other.origin[index_of::rate], Origin::rank0);
}

// Of the text, which the ranks compare, the last digits are missing.
TEST(options, ranks_adopt_what_differs_in_digits_that_are_not_told) {
    std::vector<Complaint> complaints;
    const Settings rank0 = read({"THALWEG_RATE=10gbit"}, complaints);
    Settings other = read({"THALWEG_RATE=10.0000004gbit"}, complaints);
    ASSERT_NE(other.rate, rank0.rate);
    std::vector<std::string_view> differing;
    ASSERT_EQ(other.adopt(rank0.to_blob(), differing), Status::ok);
    EXPECT_TRUE(differing.empty());
    EXPECT_EQ(other.rate, rank0.rate);
    EXPECT_EQ(other.origin[index_of::rate], Origin::environment);
}

TEST(options, numbers_are_read_alike_in_every_direction_of_rounding) {
    Settings settings;
    std::string why;
    test::in_each_direction([&](int) {
        EXPECT_EQ(settings.set("THALWEG_RATE", "0.7gbit", Origin::program, why), Status::ok);
        EXPECT_EQ(settings.set("THALWEG_LATENCY_US", "12.1", Origin::program, why), Status::ok);
        EXPECT_EQ(settings.rate, 87.5e6);
        EXPECT_EQ(settings.latency_us, 12.1);
        EXPECT_EQ(settings.value_text(index_of::rate), "700mbit");
        EXPECT_EQ(settings.value_text(index_of::latency_us), "12.1");
    });
}

TEST(options, a_blob_of_another_build_changes_nothing) {
    Settings settings;
    SettingsBlob blob = settings.to_blob();
    blob.settings.in_flight = 2;
    blob.options_digest += 1;
    std::vector<std::string_view> differing;
    EXPECT_EQ(settings.adopt(blob, differing), Status::mismatch);
    EXPECT_EQ(settings.in_flight, 64u);
    EXPECT_TRUE(differing.empty());
}

TEST(options, the_page_in_docs_is_made_from_the_rows) {
    std::ifstream file(THALWEG_SOURCE_DIR "/docs/options.md");
    ASSERT_TRUE(file) << "docs/options.md is missing; write it with: thalweg info --options-markdown";
    std::stringstream content;
    content << file.rdbuf();
    EXPECT_EQ(content.str(), options_markdown()) << "write it again with: thalweg info --options-markdown";
}

}  // namespace
}  // namespace thalweg
