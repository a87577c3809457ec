#include "bench/show.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "bench/amr.h"
#include "bench/apps_table.h"
#include "bench/document.h"
#include "bench/exchange_page.h"
#include "bench/halo_overlap.h"
#include "bench/halo_pairs.h"
#include "bench/halo_table.h"
#include "bench/overlap_table.h"
#include "bench/results.h"
#include "bench/rings.h"
#include "bench/small.h"
#include "bench/table.h"
#include "bench/waiters.h"
#include "script.h"

namespace thalweg::bench {
namespace {

namespace fs = std::filesystem;

// The rows of files that were named, so that they must be there. False, and said why, where one cannot be
// read.
bool read_named(const std::vector<std::string>& files, std::vector<Row>& rows) {
    std::string why;
    std::error_code none;  // read_rows() tells of what nobody may look at
    for (const std::string& file : files)
        if (fs::status(file, none).type() == fs::file_type::not_found) why = file + " does not exist";
    if (why.empty() && read_rows(files, rows, why) && rows.empty()) why = "no results in " + files.front();
    if (!why.empty()) fmt::print(stderr, "thalweg bench: {}\n", why);
    return why.empty();
}

// "-": to standard output. False, and said why, where it cannot be written.
bool write_text(const std::string& path, const std::string& text) {
    std::FILE* file = path == "-" ? stdout : std::fopen(path.c_str(), "w");
    if (file == nullptr) {
        fmt::print(stderr, "thalweg bench: {} cannot be written\n", path);
        return false;
    }
    const bool put = std::fputs(text.c_str(), file) >= 0;
    if (file == stdout || (std::fclose(file) == 0 && put)) return true;
    fmt::print(stderr, "thalweg bench: {} cannot be written completely\n", path);
    return false;
}

}  // namespace

int show_table(const std::vector<std::string>& files, bool markdown, bool columns) {
    std::vector<Row> rows;
    if (!read_named(files, rows)) return 2;
    if (columns) fmt::print("{}\n", format_columns(rows));
    const auto hidden = summarize_overlap(rows);
    std::string others = format_small(rows, markdown) + format_waiters(rows, markdown);
    if (!hidden.empty())
        others += format_hidden(hidden, markdown) + "\n" + format_cost(hidden, markdown) + "\n" +
                  format_targets(judge(hidden), markdown);
    others += format_rings(rows, markdown) + format_windows(compare_windows(rows), markdown);
    others += format_exchange(summarize_exchange(rows), markdown);
    const auto halos = summarize_halo(rows);
    if (!halos.empty())
        others += format_halo_points(halos, markdown) + "\n" + format_halo(halos, markdown) + "\n" +
                  format_halo_judgements(judge_halo(halos), markdown);
    others += format_pairs(compare_pairs(rows), markdown);
    others += format_halo_hidden(summarize_halo_hidden(rows), markdown);
    const auto apps = summarize_apps(rows);
    if (!apps.empty())
        others += format_app_figures(apps, markdown) + "\n" + format_app_versions(apps, markdown);
    const auto meshes = summarize_amr(rows);
    if (!meshes.empty())
        others += format_amr_figures(meshes, markdown) + "\n" + format_amr_versions(meshes, markdown);
    others += wrong_words_text(rows) + below_limit_text(rows);
    const auto lines = summarize(rows);
    fmt::print("{}", others);
    if (!others.empty() && lines.empty()) return 0;
    std::string_view collective;  // each has a table of its own
    for (std::size_t begin = 0, end = 0; begin < lines.size(); begin = end) {
        while (end < lines.size() && lines[end].collective == lines[begin].collective) ++end;
        if (!collective.empty()) fmt::print("\n");
        collective = lines[begin].collective;
        if (collective != "bcast") fmt::print("{}\n\n", collective);
        fmt::print("{}", format_table({lines.begin() + static_cast<std::ptrdiff_t>(begin),
                                       lines.begin() + static_cast<std::ptrdiff_t>(end)},
                                      markdown));
    }
    std::vector<double> gains;
    int undecided = 0, slower = 0;
    for (const auto& line : lines) {
        if (line.against_default.value > 0) gains.push_back(1 / line.against_default.value);
        undecided += line.decision == Verdict::undecided;
        slower += line.decision == Verdict::slower;
    }
    fmt::print(
        "\n{} points, geometric mean of native default / Thalweg {:.2f}, {} slower than the best native, "
        "{} undecided\n",
        lines.size(), geometric_mean(gains), slower, undecided);
    return 0;
}

int write_document(const std::vector<std::string>& files, const std::string& about, const std::string& page) {
    std::vector<std::string> read = files;
    if (!about.empty()) read.push_back(about);
    for (const std::string& file : read)
        if (std::error_code none; fs::equivalent(page, file, none)) {
            fmt::print(stderr,
                       "thalweg bench: --out {} is one of the files to be read, which the page would "
                       "replace: name another\n",
                       page);
            return 2;
        }
    std::vector<Row> rows;
    if (!read_named(files, rows)) return 2;
    std::stringstream beginning;
    if (!about.empty()) {
        std::ifstream file(about);
        // Inserting nothing is a failure to a stream, but an empty file is none.
        if (file.peek() != std::ifstream::traits_type::eof()) beginning << file.rdbuf();
        if (file.fail() || beginning.fail()) {
            fmt::print(stderr, "thalweg bench: {} cannot be read\n", about);
            return 2;
        }
    }
    const bool printed = page == "-";
    std::vector<Picture> pictures;
    const std::string text = printed
                                 ? document(rows, beginning.str())
                                 : document(rows, beginning.str(), fs::path(page).stem().string(), &pictures);
    if (!write_text(page, text)) return 1;
    for (const Picture& picture : pictures) {
        const fs::path path = fs::path(page).parent_path() / picture.path;
        std::error_code none;  // without the folder the picture cannot be written
        fs::create_directories(path.parent_path(), none);
        if (!write_text(path.string(), picture.text)) return 1;
    }
    return 0;
}

int draw(const std::vector<std::string>& files, const std::string& out) {
    std::vector<Row> rows;
    if (!read_named(files, rows)) return 2;
    std::vector<std::string> words{"--out", out};
    words.insert(words.end(), files.begin(), files.end());
    return tool::run_script("bench", "bench/plot.py", std::move(words));
}

}  // namespace thalweg::bench
