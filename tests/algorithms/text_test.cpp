// Choices as text, the registry's rows, and the page made from them.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "algorithms/cases.h"

namespace thalweg {
namespace {

std::string refusal(std::string_view text) {
    Choice choice = standard_choice(algorithms().front());
    const Choice before = choice;
    std::string why;
    EXPECT_EQ(parse_choice(Collective::bcast, text, choice, why), Status::invalid_argument) << text;
    EXPECT_EQ(choice, before) << text;
    return why;
}

TEST(ChoiceText, ReadsWhatItWrites) {
    for (int i = 0; i < collective_count; ++i)
        for (const Choice& choice : flat_choices(static_cast<Collective>(i)))
            EXPECT_EQ(choice_of(to_text(choice), static_cast<Collective>(i)), choice) << to_text(choice);
    for (const Algorithm& row : algorithms())
        EXPECT_EQ(choice_of(to_text(standard_choice(row)), row.collective), standard_choice(row));
    for (const Twin& twin : twins()) EXPECT_FALSE(to_text(choice_of(std::string(twin.choice))).empty());
    EXPECT_EQ(to_text(choice_of("chain:chunk_bytes=65536")), "chain:chunk_bytes=64K");
    EXPECT_EQ(to_text(choice_of("chain:chains=3:chunk_bytes=1000")), "chain:chunk_bytes=1000:chains=3");
    EXPECT_EQ(to_text(choice_of("node_leader(inter=chain:chunk_bytes=32K,intra=linear)")),
              "node_leader(intra=linear,inter=chain:chunk_bytes=32K)");
    EXPECT_EQ(to_text(choice_of("node_leader(inter=knomial:radix=2)")),
              "node_leader(intra=binomial,inter=knomial:radix=2)");
    // A part has its own collective: an allgather hands out inside hosts by a broadcast.
    EXPECT_EQ(to_text(choice_of("node_leader(intra=chain:chunk_bytes=4K,inter=bruck:ports=2)",
                                Collective::allgather)),
              "node_leader(intra=chain:chunk_bytes=4K,inter=bruck:ports=2)");
}

TEST(ChoiceText, SaysWhatItExpected) {
    EXPECT_NE(refusal("chian").find("did you mean \"chain\"?"), std::string::npos);
    EXPECT_NE(refusal("teleport").find("expected one of linear, binomial"), std::string::npos);
    EXPECT_NE(refusal("chain:chunk_byte=3").find("did you mean \"chunk_bytes\"?"), std::string::npos);
    EXPECT_NE(refusal("chain:chunk_bytes=3q").find("64K"), std::string::npos);
    EXPECT_NE(refusal("knomial:radix=1").find("from 2 to 1024"), std::string::npos);
    EXPECT_NE(refusal("linear:chunk_bytes=3").find("takes no parameters"), std::string::npos);
    EXPECT_NE(refusal("linear(intra=linear)").find("no algorithms in parentheses"), std::string::npos);
    EXPECT_NE(refusal("node_leader(outer=chain)").find("intra=ALGORITHM,inter=ALGORITHM"), std::string::npos);
    EXPECT_NE(refusal("node_leader(inter=chain").find("closing parenthesis"), std::string::npos);
    for (const char* text :
         {"", ":", "chain:", "chain:chunk_bytes", "chain:chunk_bytes=", "chain)", "chain,linear",
          "node_leader()", "node_leader(inter=)", "node_leader(inter=chain,)", " chain", "chain "})
        EXPECT_FALSE(refusal(text).empty()) << text;
    std::string deep;
    for (int i = 0; i < 10000; ++i) deep += "node_leader(inter=";
    EXPECT_NE(refusal(deep).find("too deep"), std::string::npos);
}

TEST(Registry, RowsAreComplete) {
    std::set<std::string> names;
    for (const Algorithm& row : algorithms()) {
        EXPECT_TRUE(names.insert(std::string(name_of(row.collective)) + "/" + std::string(row.name)).second);
        EXPECT_EQ(find_algorithm(row.collective, row.name), &row);
        EXPECT_TRUE(row.summary.ends_with(".")) << row.name;
        EXPECT_FALSE(row.formula.empty() || row.source.empty()) << row.name;
        for (const Parameter& parameter : row.parameters)
            EXPECT_TRUE(parameter.minimum <= parameter.standard && parameter.standard <= parameter.maximum)
                << row.name << " " << parameter.name;
        for (const Part& part : row.parts) EXPECT_NE(find_algorithm(part.collective, part.standard), nullptr);
    }
    EXPECT_EQ(find_algorithm(Collective::bcast, "teleport"), nullptr);
}

// THALWEG_WRITE_DOCS=1 writes the page instead.
TEST(Registry, DocumentationIsUpToDate) {
    const std::string path = std::string(THALWEG_SOURCE_DIR) + "/docs/algorithms.md";
    if (std::getenv("THALWEG_WRITE_DOCS")) std::ofstream(path) << algorithms_markdown();
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    EXPECT_EQ(text.str(), algorithms_markdown()) << "run this test with THALWEG_WRITE_DOCS=1";
}

}  // namespace
}  // namespace thalweg
