// What `thalweg run` passes on, and what it refuses.
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "../cpu_time.h"
#include "base/options.h"
#include "elf_file.h"
#include "environment.h"
#include "shell.h"

namespace thalweg::test {
namespace {

const std::string run = "'" + thalweg + "' run ";

TEST(run, the_exit_status_is_the_programs) {
    EXPECT_EQ(shell(run + "/bin/sh -c 'exit 0' 2>/dev/null").status, 0);
    EXPECT_EQ(shell(run + "/bin/sh -c 'exit 7' 2>/dev/null").status, 7);
    EXPECT_EQ(shell(run + "-- /bin/sh -c 'exit 7' 2>/dev/null").status, 7);
}

TEST(run, a_signal_ends_the_program_as_it_would_without) {
    const Result result = shell("exec " + run + "/bin/sh -c 'kill -TERM $$' 2>/dev/null");
    EXPECT_EQ(result.status, 128 + 15);
}

TEST(run, the_process_is_the_program) {  // no parent of ours that would have to forward signals
    const Result result =
        shell("sh -c 'echo $$; exec " + thalweg + " run /bin/sh -c \"echo \\$\\$\"' 2>/dev/null");
    const std::size_t line = result.text.find('\n');
    EXPECT_EQ(result.text.substr(0, line), result.text.substr(line + 1, result.text.size() - line - 2));
}

TEST(run, arguments_reach_the_program_untouched) {
    EXPECT_EQ(shell(run + "printf '[%s]' 'a b' '' -x --log=debug -- --bcast y 2>/dev/null").text,
              "[a b][][-x][--log=debug][--][--bcast][y]");
    EXPECT_EQ(shell(run + "-- printf '[%s]' -- --dry-run 2>/dev/null").text, "[--][--dry-run]");
}

TEST(run, a_script_that_can_be_read_only_once_is_left_to_the_shell) {
    const std::string piped = "printf 'echo one\\necho two\\n' | timeout 10 ";
    EXPECT_EQ(shell(piped + run + "sh /dev/stdin 2>/dev/null").text, "one\ntwo\n");
    EXPECT_EQ(shell("bash -c \"" + run + "bash <(echo echo one) 2>/dev/null\"").text, "one\n");
}

TEST(run, flags_become_the_variables_of_the_same_rows) {
    const Result result = shell(
        run +
        "--bcast chain:chunk_bytes=64K --credit-bytes=2M --log error env 2>/dev/null | grep ^THALWEG | sort");
    EXPECT_EQ(result.text,
              "THALWEG_BCAST=chain:chunk_bytes=64K\nTHALWEG_CREDIT_BYTES=2M\nTHALWEG_LOG=error\n");
}

TEST(run, what_cannot_be_started_is_told_once_with_the_status_of_a_shell) {
    const Result missing = shell(run + "no-such-program 2>&1");
    EXPECT_EQ(missing.status, 127);
    EXPECT_EQ(missing.text, "thalweg run: cannot start no-such-program: No such file or directory\n");
    const Result folder = shell(run + "/tmp 2>&1");
    EXPECT_EQ(folder.status, 126);
    EXPECT_EQ(folder.text, "thalweg run: cannot start /tmp: Permission denied\n");
}

// Of thousands that would say the same.
TEST(run, one_rank_speaks_for_all_whoever_started_them) {
    for (const char* variable : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID",
                                 "ALPS_APP_PE", "FLUX_TASK_RANK", "MV2_COMM_WORLD_RANK", "PMI_ID"}) {
        const auto said = [&](const char* rank) {
            return shell(fmt::format("env -i PATH=/nowhere {}={} {}/bin/true 2>&1", variable, rank, run))
                .text;
        };
        EXPECT_NE(said("0").find("no MPI library found in what /bin/true would load"), std::string::npos)
            << variable;
        EXPECT_EQ(said("3"), "") << variable;
    }
}

TEST(run, misspelt_flags_are_refused_with_the_nearest) {
    const Result result = shell(run + "--bcst chain /bin/true 2>&1");
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.text, "thalweg run: --bcst is not an option; maybe --bcast?\n");
}

TEST(run, malformed_values_are_refused_with_the_accepted_form) {
    const Result size = shell(run + "--credit-bytes 64KB /bin/true 2>&1");
    EXPECT_EQ(size.status, 2);
    EXPECT_NE(size.text.find("from 4K to 1G"), std::string::npos) << size.text;
    const Result algorithm = shell(run + "--bcast chian /bin/true 2>&1");
    EXPECT_EQ(algorithm.status, 2);
    EXPECT_NE(algorithm.text.find("chain"), std::string::npos) << algorithm.text;
    const Result place = shell(run + "--topology 'nodes 4' /bin/true 2>&1");
    EXPECT_EQ(place.status, 2);
    EXPECT_NE(place.text.find("node:"), std::string::npos) << place.text;
    const Result native = shell(run + "--bcast NATIVE /bin/true 2>&1");
    EXPECT_EQ(native.status, 2);
    EXPECT_NE(native.text.find("expected one of linear, "), std::string::npos) << native.text;
    EXPECT_NE(native.text.find(", or auto or native\n"), std::string::npos) << native.text;
    for (const Result& result : {size, algorithm, place, native})
        EXPECT_EQ(std::count(result.text.begin(), result.text.end(), '\n'), 1) << result.text;
}

TEST(run, a_missing_program_is_bad_usage) {
    EXPECT_EQ(shell(run + "2>/dev/null").status, 2);
    EXPECT_EQ(shell(run + "-- 2>/dev/null").status, 2);
}

class Preload : public Scratch {
  protected:
    void SetUp() override {
        const Compiler compiler = any_compiler();
        if (compiler.command.empty()) GTEST_SKIP() << "no MPI compiler";
        ASSERT_EQ(shell("cd '" + folder.string() + "' && " + compiler.command + " " +
                        (programs / "bcast.c").string() + " -o app")
                      .status,
                  0);
        ours = (home / ("libthalweg-" + compiler.abi)).string();
    }
    std::string ours;
};

TEST_F(Preload, what_the_user_preloads_is_kept_behind_ours) {
    const std::string preload =
        field(decide("./app", "LD_PRELOAD=/lib/x86_64-linux-gnu/libm.so.6"), "LD_PRELOAD");
    EXPECT_EQ(preload.rfind(ours, 0), 0u) << preload;
    EXPECT_EQ(preload.substr(preload.rfind(':')), ":/lib/x86_64-linux-gnu/libm.so.6");
}

TEST_F(Preload, an_outer_run_is_replaced_and_not_doubled) {
    const std::string once = field(decide("./app"), "LD_PRELOAD");
    EXPECT_EQ(field(decide("./app", "LD_PRELOAD=" + once), "LD_PRELOAD"), once);
    const std::string lab = "/usr/lib/thalweg/liblabwait.so";
    EXPECT_EQ(field(decide("./app", "LD_PRELOAD=" + lab), "LD_PRELOAD"), once + ":" + lab);
}

TEST_F(Preload, the_mpi_may_be_named) {
    const std::string found = field(decide("./app"), "mpi");
    const std::string decision = decide("/bin/true", "THALWEG_MPI_LIBRARY='" + found + "'");
    EXPECT_EQ(fs::weakly_canonical(field(decision, "mpi")), fs::weakly_canonical(found)) << decision;
    EXPECT_EQ(field(decision, "decision").substr(0, 9), "intercept") << decision;
    EXPECT_EQ(decision.find("MPI_Init inside"), std::string::npos) << decision;
    const std::string refused = decide("./app", "THALWEG_MPI_LIBRARY=/lib/x86_64-linux-gnu/libm.so.6");
    EXPECT_NE(refused.find("/libm.so.6, which is no MPI library"), std::string::npos) << refused;
    EXPECT_EQ(field(refused, "decision").substr(0, 9), "unchanged") << refused;
    const std::string missing = decide("./app", "THALWEG_MPI_LIBRARY=libmpi.so.12");
    EXPECT_NE(missing.find("libmpi.so.12, which cannot be read: No such file"), std::string::npos) << missing;
}

TEST_F(Preload, the_mpi_that_is_named_is_the_one_that_is_told) {
    const std::string found = field(decide("./app"), "mpi");
    const auto told = [](const std::string& library, const std::string& program) {
        const std::string command = "THALWEG_MPI_LIBRARY='" + library + "' '" + thalweg + "' info --json ";
        return nlohmann::json::parse(shell(command + program).text);
    };
    for (const char* program : {"", "/bin/true"}) {
        EXPECT_EQ(told(found, program)["mpi"]["via"], "THALWEG_MPI_LIBRARY") << program;
        EXPECT_TRUE(told("/no/libmpi.so", program)["mpi"].is_null()) << program;
        EXPECT_EQ(told("/no/libmpi.so", program)["mpi_text"],
                  "THALWEG_MPI_LIBRARY names /no/libmpi.so, which cannot be read: No such file or directory");
    }
}

TEST_F(Preload, off_leaves_nothing_of_ours) {
    const std::string once = field(decide("./app"), "LD_PRELOAD");
    const std::string decision =
        decide("./app", "THALWEG=off LD_PRELOAD=" + once + ":/lib/x86_64-linux-gnu/libm.so.6");
    EXPECT_EQ(field(decision, "LD_PRELOAD"), "/lib/x86_64-linux-gnu/libm.so.6") << decision;
    EXPECT_EQ(field(decision, "decision").substr(0, 9), "unchanged");
}

TEST_F(Preload, a_missing_build_is_named_and_the_program_runs) {
    const Result result =
        shell("cd '" + folder.string() + "' && THALWEG_HOME=/nowhere " + run + "--dry-run ./app 2>&1");
    EXPECT_NE(result.text.find(".so is not in /nowhere"), std::string::npos) << result.text;
    EXPECT_EQ(field(result.text, "LD_PRELOAD"), "");
    const std::string told = shell("THALWEG_HOME=/nowhere '" + thalweg + "' info").text;
    for (const char* abi : {"mpich", "ompi", "abi"})
        EXPECT_NE(told.find(fmt::format("\n  {:<8}not in /nowhere\n", abi)), std::string::npos) << told;
}

TEST_F(Preload, a_path_that_ld_preload_cannot_carry_is_told) {
    fs::copy(home, folder / "with space");
    const Result result =
        shell("cd '" + folder.string() + "' && " + run + "--home 'with space' --dry-run ./app 2>&1");
    EXPECT_NE(result.text.find("space or a colon"), std::string::npos) << result.text;
    EXPECT_EQ(field(result.text, "LD_PRELOAD"), "");
    // What the sentence says to do.
    EXPECT_NE(result.text.find("set THALWEG_HOME to a link to its folder"), std::string::npos) << result.text;
    fs::create_directory_symlink("with space", folder / "without");
    const Result linked =
        shell("cd '" + folder.string() + "' && " + run + "--home without --dry-run ./app 2>&1");
    EXPECT_EQ(field(linked.text, "LD_PRELOAD").rfind((folder / "without/libthalweg-").string(), 0), 0u)
        << linked.text;
}

TEST_F(Preload, a_program_with_an_init_of_its_own_is_told_of) {
    const std::string build = any_compiler().command + " " + (programs / "own_init.c").string() + " -o own";
    ASSERT_EQ(shell("cd '" + folder.string() + "' && " + build).status, 0);
    const Result result = shell("cd '" + folder.string() + "' && " + run + "./own 2>&1");
    EXPECT_EQ(result.status, 0) << result.text;
    EXPECT_EQ(result.text.rfind("thalweg: ./own has an MPI_Init inside", 0), 0u) << result.text;
    EXPECT_EQ(shell("cd '" + folder.string() + "' && " + run + "./app 2>&1").text, "");
}

TEST_F(Preload, a_program_with_address_sanitizer_runs) {
    const std::string build =
        any_compiler().command + " -fsanitize=address " + (programs / "bcast.c").string();
    if (shell("cd '" + folder.string() + "' && " + build + " -o checked 2>/dev/null").status != 0)
        GTEST_SKIP() << "no runtime of AddressSanitizer";
    const std::string there = "cd '" + folder.string() + "' && ASAN_OPTIONS=detect_leaks=0 ";
    const Result result = shell(there + run + "./checked 2>&1");
    EXPECT_EQ(result.status, 0) << result.text;
    EXPECT_EQ(shell(there + run + "env 2>/dev/null | grep ^ASAN; true").text, "ASAN_OPTIONS=detect_leaks=0\n")
        << "where nothing is preloaded";
    EXPECT_EQ(shell(there + run + "env A=1 sh -c 'echo $ASAN_OPTIONS; exit; ./checked' 2>/dev/null").text,
              "verify_asan_link_order=0:detect_leaks=0\n");
}

// Its loader would refuse what is preloaded, and the program with it.
TEST_F(Preload, a_program_with_an_older_c_library_of_its_own_runs_unchanged) {
    const auto own = tool::ElfFile::open(thalweg);
    ASSERT_NE(own, nullptr);
    const std::string loader(tool::base_of(own->interpreter()));
    write("older.map", "OLD_1 { global: older; local: *; };\n");
    write("newer.map", "OLD_1 { global: older; local: *; };\nNEW_2 { global: newer; } OLD_1;\n");
    write("library.c", "void older(void) {}\nvoid newer(void) {}\n");
    write("object.c", "void older(void);\nvoid newer(void);\nvoid both(void) { older(); newer(); }\n");
    std::string build = "cd '" + folder.string() + "'";
    for (const std::string age : {"older", "newer"})
        build += " && mkdir " + age + " && gcc -shared -fPIC -nostdlib -Wl,-soname,libc.so.6 library.c -o " +
                 age + "/libc.so.6 -Wl,--version-script=" + age + ".map";
    build += " && rm -f " + ours + ".so && gcc -shared -fPIC -nostdlib object.c newer/libc.so.6 -o " + ours +
             ".so";
    for (const std::string age : {"older", "newer", "empty"})
        build += " && " + any_compiler().command + " " + (programs / "bcast.c").string() + " -o with_" + age +
                 " '-Wl,--dynamic-linker=" + (folder / age / loader).string() + "'";
    const Result built = shell(build + " 2>&1");
    ASSERT_EQ(built.status, 0) << built.text;
    for (const char* program : {"./with_newer", "./with_empty", "./app"})
        EXPECT_EQ(field(decide(program), "LD_PRELOAD").rfind(ours, 0), 0u) << decide(program);
    const std::string refused = decide("./with_older");
    EXPECT_EQ(field(refused, "LD_PRELOAD"), "") << refused;
    EXPECT_NE(refused.find("/older/libc.so.6 lacks NEW_2 for " + ours + ".so; it runs unchanged"),
              std::string::npos)
        << refused;
}

// For such the loader ignores LD_PRELOAD (ld.so(8), secure-execution mode).
TEST_F(Preload, a_program_with_rights_by_its_file_is_told_to_run_unchanged) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give a program to somebody else";
    const fs::path app = folder / "app";
    const auto unchanged = [&](const std::string& before) {
        const std::string decision = decide(before + " ./app");
        EXPECT_EQ(field(decision, "LD_PRELOAD").empty(),
                  decision.find("rights by its file") != std::string::npos)
            << decision;
        return field(decision, "LD_PRELOAD").empty();
    };
    EXPECT_FALSE(unchanged(""));
    const std::string library = field(decide("./app"), "mpi");
    ASSERT_EQ(chmod(app.c_str(), 04755), 0);
    EXPECT_FALSE(unchanged("")) << "root's, and root starts it";
    ASSERT_EQ(chown(app.c_str(), 1, 1), 0);  // which takes the bit
    EXPECT_FALSE(unchanged(""));
    ASSERT_EQ(chmod(app.c_str(), 04755), 0);
    EXPECT_TRUE(unchanged(""));
    EXPECT_TRUE(unchanged("env A=1"));
    const std::string named = decide("./app", "THALWEG_MPI_LIBRARY='" + library + "'");
    EXPECT_NE(named.find("/app has rights by its file"), std::string::npos) << named;
    ASSERT_EQ(chmod(app.c_str(), 02755), 0);
    EXPECT_TRUE(unchanged(""));
    ASSERT_EQ(chmod(app.c_str(), 02745), 0);
    EXPECT_FALSE(unchanged("")) << "a lock, not a right";
}

TEST_F(Preload, a_program_that_cannot_be_read_is_said_to_be_one) {
    const std::string nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups ";
    const fs::path app = folder / "app";
    ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
    ASSERT_EQ(chmod(app.c_str(), 0711), 0);
    if (geteuid() != 0 || shell(nobody + run + "true >/dev/null 2>&1").status != 0 ||
        shell(nobody + "test -x " + app.string()).status != 0)
        GTEST_SKIP() << "nobody else can be asked to start it";
    const Result result = shell(nobody + run + "--dry-run " + app.string() + " 2>&1");
    EXPECT_NE(result.text.find("may be run but not read"), std::string::npos) << result.text;
}

TEST_F(Preload, relative_names_become_absolute) {
    const Result result =
        shell("cd '" + folder.string() + "' && " + run + "--home objects --dry-run ./app 2>&1");
    EXPECT_EQ(field(result.text, "LD_PRELOAD").substr(0, 1), "/") << result.text;
}

TEST_F(Preload, a_folder_that_is_gone_keeps_no_program_from_running) {
    const std::string gone = "mkdir '" + (folder / "gone").string() + "' && cd '" +
                             (folder / "gone").string() + "' && rmdir \"$PWD\" && " + run +
                             "--home objects --dry-run '";
    const Result result = shell(gone + (folder / "app").string() + "' 2>&1");
    EXPECT_EQ(result.status, 0) << result.text;
    EXPECT_NE(result.text.find(".so is not in objects; install it"), std::string::npos) << result.text;
}

TEST_F(Preload, only_one_rank_speaks) {
    EXPECT_EQ(shell("OMPI_COMM_WORLD_RANK=3 THALWEG=on PATH=/nowhere " + run + "/bin/true 2>&1").text, "");
    EXPECT_NE(shell("OMPI_COMM_WORLD_RANK=0 THALWEG=on PATH=/nowhere " + run + "/bin/true 2>&1").text, "");
}

// 10,000 ranks start it at once: it must not weigh. 5 ms of a processor more than any other program that is
// started takes.
TEST(run, starting_costs_little) {
    std::vector<double> with, without;
    auto timed = [](const std::string& command) {
        const double start = children_cpu_seconds();
        EXPECT_EQ(shell(command).status, 0);
        return children_cpu_seconds() - start;
    };
    for (int i = 0; i < 100; ++i) {
        without.push_back(timed("exec /bin/true"));
        with.push_back(timed("exec " + run + "/bin/true 2>/dev/null"));
    }
    auto median = [](std::vector<double> values) {
        std::nth_element(values.begin(), values.begin() + 50, values.end());
        return values[50];
    };
    RecordProperty("median_us", static_cast<int>(median(with) * 1e6));
    EXPECT_LT(median(with) - median(without), 0.005);
}

}  // namespace
}  // namespace thalweg::test
