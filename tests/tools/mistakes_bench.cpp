// What is asked of `thalweg bench` wrongly: each is one sentence and an exit status, and nothing is lost by
// it.
#include <fmt/core.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "mistakes.h"

namespace thalweg::test {
namespace {

TEST(mistakes, what_is_no_row_is_told_in_the_words_of_nobodys_parser) {
    const fs::path file = fs::temp_directory_path() / fmt::format("thalweg-mistakes-{}.jsonl", getpid());
    for (const char* text : {"rows", "{}"}) {
        std::ofstream(file) << text << '\n';
        const Result table = shell(tool("bench table '" + file.string() + "' 2>&1"));
        refused(table, 2, " line 1 is not a result row: ");
        EXPECT_EQ(table.text.find("json.exception"), std::string::npos) << table.text;
    }
    fs::remove(file);
}

// Of more ranks per host the links carry something else than the table of both rings says.
TEST(mistakes, both_rings_have_one_rank_per_host) {
    for (const char* shape : {"--ppn 2", "--hosts 1", "--hosts 0 --ppn 8", "--small"})
        refused(shell(tool(fmt::format("bench bcast --rings {} 2>&1", shape))), 2,
                "thalweg bench: --rings: both rings run on two hosts or more, with one rank on each");
}

// What is to hold the result is looked at before the work, which may take hours.
TEST_F(Starting, a_bench_or_a_lab_asks_first_whether_its_results_have_a_place) {
    const std::string quick = "bench bcast --mpi mpich --hosts 0 --ppn 2 --bytes 64K --screen-only --out ";
    refused(shell(tool(quick + "/no/such/rows.jsonl 2>&1")), 2,
            "--out: there is no folder /no/such for rows.jsonl");
    refused(shell(tool(quick + "'" + folder.string() + "' 2>&1")), 2, folder.string() + " is a folder");
    refused(shell(tool("bench waiters --samples 1 --out /no/such/rows.jsonl 2>&1")), 2, "there is no folder");
    refused(shell(tool("lab run --json /no/such/lab.json -- /bin/true 2>&1")), 2,
            "--json: there is no folder /no/such for lab.json");
    refused(shell(tool("bench document --out /dev/full '" +
                       (source / "bench/results/small-mpich.jsonl").string() + "' 2>&1")),
            1, "/dev/full cannot be written completely");
}

// --out of what measures is appended to, that of a page is replaced.
TEST_F(Starting, a_page_does_not_replace_the_results_that_it_is_made_of) {
    const fs::path rows = folder / "rows.jsonl", about = folder / "about.md";
    fs::copy(source / "bench/results/small-mpich.jsonl", rows);
    std::ofstream(about) << "About.\n";
    const auto before = fs::file_size(rows);
    const std::string make =
        "cd '" + folder.string() + "' && " + tool("bench document --about about.md rows.jsonl ");
    refused(shell(make + "--out ./rows.jsonl 2>&1"), 2, "is one of the files to be read");
    refused(shell(make + "--out about.md 2>&1"), 2, "is one of the files to be read");
    EXPECT_EQ(fs::file_size(rows), before);
    EXPECT_EQ(fs::file_size(about), 7u);
    EXPECT_EQ(shell(make + "--out page.md 2>&1").status, 0);
}

// What measures adds to a file of results, and to no other.
TEST_F(Starting, a_file_of_something_else_is_not_added_to) {
    const std::string notes = write("notes", "of yesterday\n");
    refused(shell(tool("bench waiters --samples 1 --out '" + notes + "' 2>&1")), 2,
            "notes line 1 is not a result row");
    EXPECT_EQ(fs::file_size(notes), 13u);
}

TEST(mistakes, a_bench_without_a_place_for_temporary_files_says_so_at_once) {
    refused(shell("TMPDIR=/no/such " + tool("bench bcast --hosts 0 2>&1")), 2,
            "thalweg bench: there is no folder for temporary files: set TMPDIR");
}

// As on a full disk: no file may have a byte.
TEST(mistakes, a_bench_whose_launch_has_no_room_in_the_folder_for_temporary_files_says_so) {
    if (!fs::exists(fs::path(thalweg).parent_path() / "thalweg-bench-mpich") ||
        !fs::exists(source / ".venv-mpich/bin/mpiexec"))
        GTEST_SKIP() << "no MPICH";
    const std::string bench = "bench bcast --hosts 0 --ppn 1 --bytes 8 --screen-only 2>&1";
    const Result said = shell("trap '' XFSZ; ulimit -f 0; " + tool(bench));
    EXPECT_EQ(said.status, 1) << said.text;
    EXPECT_NE(
        said.text.find("config.json cannot be written: is there room in the folder for temporary files"),
        std::string::npos)
        << said.text;
    EXPECT_EQ(said.text.find("malformed"), std::string::npos) << said.text;
}

// Installed without what it would start, and where it would start what is not installed.
TEST_F(Starting, a_bench_that_cannot_start_its_programs_says_so_at_once) {
    fs::create_directories(folder / "bin");
    fs::copy(thalweg, folder / "bin/thalweg");
    const std::string copy = "'" + (folder / "bin/thalweg").string() + "' bench ";
    for (const char* verb :
         {"bcast --hosts 0", "ibcast --overlap --hosts 0", "alltoallv", "halo", "apps", "waiters"})
        refused(shell(copy + verb + " 2>&1"), 2,
                "is not there: `thalweg bench` measures from the folder in which");
    std::ofstream(folder / "bin/thalweg-bench-mpich") << "not asked for";
    refused(shell("cd / && " + copy + "bcast --mpi mpich --hosts 0 2>&1"), 2,
            "--hosts 0: there is no .venv-mpich/bin/mpiexec here or above");
}

// Below a home with an environment of its user's.
TEST_F(Starting, what_draws_for_an_installed_thalweg_is_not_run_by_the_environment_of_somebody_else) {
    fs::create_directories(folder / "prefix/bin");
    fs::create_directories(folder / "prefix/share/thalweg/sim");
    fs::create_directories(folder / ".venv/bin");
    fs::copy(thalweg, folder / "prefix/bin/thalweg");
    std::ofstream(folder / "prefix/share/thalweg/sim/plot.py") << "print('drawn')\n";
    write(".venv/bin/python", "#!/bin/sh\necho 'somebody else'\n");
    const Result said = shell("'" + (folder / "prefix/bin/thalweg").string() + "' sim plot rows.jsonl 2>&1");
    EXPECT_EQ(said.text, "drawn\n");
    EXPECT_EQ(said.status, 0);
}

TEST_F(Starting, a_bench_from_a_folder_with_a_quote_in_its_name_starts_its_program) {
    const fs::path bin = folder / "Bob's $(builds)/bin";
    fs::create_directories(bin);
    fs::copy(thalweg, bin / "thalweg");
    std::ofstream(bin / "thalweg-bench-waiters")
        << "#!/bin/sh\necho '{\"waiter\": \"bell\", \"exercised\": false, \"why\": \"it was started\"}'\n";
    fs::permissions(bin / "thalweg-bench-waiters", fs::perms::owner_all);
    const Result said = shell("\"" + folder.string() + "/Bob's \\$(builds)/bin/thalweg\" bench waiters 2>&1");
    EXPECT_EQ(said.status, 0) << said.text;
    EXPECT_NE(said.text.find("it was started"), std::string::npos) << said.text;
}

// Which has rows only when this program has ended.
TEST_F(Starting, a_bench_that_writes_into_a_pipe_does_not_wait_for_what_is_in_it) {
    fs::create_directories(folder / "bin");
    fs::copy(thalweg, folder / "bin/thalweg");
    write("bin/thalweg-bench-waiters", "#!/bin/sh\necho '{\"waiter\": \"bell\", \"exercised\": false}'\n");
    const Result said =
        shell("timeout 20 '" + (folder / "bin/thalweg").string() + "' bench waiters --out /dev/stdout 2>&1");
    EXPECT_EQ(said.status, 0) << said.text;
    EXPECT_NE(said.text.find("\"waiter\""), std::string::npos) << said.text;
}

// What would launch keeps what it was told to measure.
TEST_F(Starting, a_bench_measures_a_matrix_whose_name_is_no_utf_8) {
    fs::create_directories(folder / "bin");
    fs::create_directories(folder / ".venv-mpich/bin");
    fs::copy(thalweg, folder / "bin/thalweg");
    std::ofstream(folder / "bin/thalweg-bench-mpich") << "not asked for";
    const fs::path kept = folder / "config.json";
    write(".venv-mpich/bin/mpiexec",
          "#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\ncp \"$1\" '" + kept.string() + "'\n");
    write("caf\351.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n");
    const Result said =
        shell("cd '" + folder.string() + "' && THALWEG_MPI_ROOTS=$PWD bin/thalweg bench alltoallv --mpi " +
              "mpich --hosts 0 --ppn 2 --sizes 64 --columns native --pattern caf\351.mtx 2>&1");
    EXPECT_EQ(said.status, 0) << said.text;
    std::ifstream file(kept);
    const auto config = nlohmann::json::parse(file, nullptr, false);
    ASSERT_TRUE(config.is_object()) << said.text;
    EXPECT_EQ(config["points"][0]["pattern"], "caf\xef\xbf\xbd.mtx");  // as rows will have it
    EXPECT_EQ(config["points"][0]["matrix"], (std::vector<int>{0, 64, 64, 0}));
}

// What is left out of it without a word is missing in the rows of hours.
TEST(mistakes, a_list_of_a_bench_has_no_empty_element) {
    const std::pair<std::string, std::string> cases[] = {
        {"bcast --bytes 1K,,2K", "--bytes 1K,,2K"},
        {"bcast --bytes=1K,", "--bytes 1K,"},
        {"allreduce --bytes 1K, 2K", "--bytes 1K,"},
        {"alltoallv --sizes ,", "--sizes ,"},
        {"alltoallv --columns native,", "--columns native,"},
        {"alltoallv --pattern ,dense", "--pattern ,dense"},
        {"halo --cells 8,,16", "--cells 8,,16"},
        {"halo --styles native,", "--styles native,"},
        {"ibcast --overlap --compute sleep,", "--compute sleep,"},
        {"ibcast --overlap --agents ,off", "--agents ,off"},
        {"apps --app amr,,", "--app amr,,"}};
    for (const auto& [words, list] : cases)
        refused(shell(tool(fmt::format("bench {} --hosts 0 2>&1", words))), 2,
                "thalweg bench: " + list + " has an empty element: leave out the comma beside it\n");
}

TEST(mistakes, a_bench_of_no_ranks_is_refused) {
    for (const char* wrong : {"bcast --hosts -1", "bcast --ppn 0", "halo --rails 0", "alltoallv --ppn -2",
                              "iallgather --overlap --hosts 201", "apps --rate fast", "bcast --rate 0"})
        refused(shell(tool(fmt::format("bench {} 2>&1", wrong))), 2, "see `thalweg bench ");
}

// What the library refuses is not measured under its name.
TEST(mistakes, a_bench_measures_no_default_under_a_misspelt_name) {
    for (const char* wrong :
         {"alltoallv --ours sprea", "halo --ours pairwis", "bcast --ours chian",
          "bcast --ours chain:chunk_bytes=-1", "iallgather --overlap --ours rign",
          "ibcast --overlap --agents sleepy", "halo --setting shm", "halo --setting THALWEG_TRANSPORT=smh",
          "halo --setting 'UCX_TLS=tcp THALWEG_INSID=coop'"})
        refused(shell(tool(fmt::format("bench {} --hosts 0 2>&1", wrong))), 2, "see `thalweg bench ");
    refused(shell(tool("bench waiters --pause-us -1 2>&1")), 2, "--pause-us");
    refused(shell(tool("bench document --about /tmp '" +
                       (source / "bench/results/small-mpich.jsonl").string() + "' 2>&1")),
            2, "/tmp cannot be read");
    const Result empty = shell(tool("bench document --about /dev/null --out - '" +
                                    (source / "bench/results/small-mpich.jsonl").string() + "' 2>&1"));
    EXPECT_EQ(empty.status, 0) << empty.text.substr(0, 200);
    // Taken: what is wrong here is the MPI library, which is looked at last.
    for (const char* right :
         {"alltoallv --ours rma_fence --ours notify", "ibcast --overlap --agents off,core",
          "halo --setting 'UCX_TLS=tcp THALWEG_INSIDE=coop' --ours spread",
          "bcast --ours 'node_leader(intra=linear,inter=chain:chunk_bytes=12K)'"})
        EXPECT_NE(shell(tool(fmt::format("bench {} --mpi mpitch 2>&1", right))).text.find("mpitch"),
                  std::string::npos)
            << right;
}

}  // namespace
}  // namespace thalweg::test
