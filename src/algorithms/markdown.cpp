#include <initializer_list>

#include "algorithms/algorithm.h"
#include "base/text.h"

namespace thalweg {
namespace {

std::string value_text(const Parameter& parameter, std::uint64_t value) {
    return parameter.name.ends_with("_bytes") ? bytes_text(value) : std::to_string(value);
}

std::string cat(std::initializer_list<std::string_view> parts) {
    std::string text;
    for (std::string_view part : parts) text += part;
    return text;
}

std::string describe(const Algorithm& row) {
    std::string text =
        cat({"### ", row.name, "\n\n", row.summary, "\n\n- Price: ", row.formula, "\n- Source: ", row.source,
             "\n- File: `src/algorithms/", name_of(row.collective), "/", row.name,
             ".cpp`\n- Standard form: `", to_text(standard_choice(row)), "`\n"});
    if (!row.parameters.empty())
        text += "\n| parameter | standard | accepted | meaning |\n|---|---|---|---|\n";
    for (const Parameter& parameter : row.parameters)
        text += cat({"| `", parameter.name, "` | ", value_text(parameter, parameter.standard), " | ",
                     value_text(parameter, parameter.minimum), " … ",
                     value_text(parameter, parameter.maximum), " | ", parameter.text, " |\n"});
    if (!row.parts.empty()) text += "\n| part | collective | standard |\n|---|---|---|\n";
    for (const Part& part : row.parts)
        text += cat({"| `", part.name, "` | ", name_of(part.collective), " | ", part.standard, " |\n"});
    return text + "\n";
}

}  // namespace

std::string algorithms_markdown() {
    std::string text =
        "# Algorithms\n\n"
        "<!-- Made from src/algorithms/algorithms.def and natives.def; a test compares. Do not edit. -->\n\n"
        "An algorithm is asked for as `NAME[(PART=CHOICE,…)][:PARAMETER=VALUE…]`, for example\n"
        "`THALWEG_BCAST=chain:chunk_bytes=64K` or\n"
        "`THALWEG_BCAST=node_leader(intra=linear,inter=chain:chunk_bytes=32K)`.\n\n"
        "In prices, n is the message or the vector in bytes, m what one rank contributes, p the number of "
        "ranks, h of\n"
        "hosts, c = `chunk_bytes`, α the latency of a message, β the time of a byte and γ the time to "
        "combine "
        "one, for\n"
        "ranks that send k = `ports` messages and receive k at a time (one where there is no such "
        "parameter). "
        "What a\n"
        "schedule really moves is proved for every algorithm: its messages, bytes, rounds and redundant "
        "bytes "
        "are\n"
        "compared with its claim.\n\n";
    for (int i = 0; i < collective_count; ++i) {
        const auto collective = static_cast<Collective>(i);
        text += cat({"## ", name_of(collective), "\n\n"});
        for (const Algorithm& row : algorithms())
            if (row.collective == collective) text += describe(row);
    }
    text +=
        "## The native libraries' broadcasts as ours\n\n"
        "With these the bench runs another library's algorithm on our engine, so that a gain splits into the "
        "part of\n"
        "the algorithm and the part of the waiting. The names are those of the libraries' own controls\n"
        "(`MPIR_CVAR_BCAST_INTRA_ALGORITHM`, `coll_tuned_bcast_algorithm`, `I_MPI_ADJUST_BCAST`).\n\n"
        "| library | its name | ours | how ours differs |\n|---|---|---|---|\n";
    for (const Twin& twin : twins())
        text += cat({"| ", twin.family, " | ", twin.native, " | `", twin.choice, "` | ",
                     twin.differs.empty() ? "–" : twin.differs, " |\n"});
    return text;
}

}  // namespace thalweg
