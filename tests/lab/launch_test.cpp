#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

#include "lab/lab.h"

using namespace thalweg::lab;

namespace {

Options four_by_two(Mpi mpi) {
    Options options;
    options.mpi = mpi;
    return options;
}

Launch plan(const Options& options, int cores = 2, const std::string& help = "/lib/help.so") {
    return plan_launch(options, {options.mpi, "/root", "/root/bin/mpiexec", "/root/lib"}, "/folder", cores,
                       help);
}

bool has(const Args& argv, const std::string& word) {
    return std::find(argv.begin(), argv.end(), word) != argv.end();
}

std::string setting(const Launch& launch, const std::string& name) {
    for (const auto& [key, value] : launch.defaults)
        if (key == name) return value;
    return "unset";
}

}  // namespace

TEST(Launch, HostFilesHoldTheOrder) {
    Options options = four_by_two(Mpi::mpich);
    options.network.hosts = 3;
    options.ppn = {3, 1, 2};
    EXPECT_EQ(plan(options).hostfile, "node0:3\nnode1:1\nnode2:2\n");
    options.cyclic = true;
    EXPECT_TRUE(has(plan(options).argv, "0,1,2,0,2,0")) << "MPICH 5: -rankmap";
    options.mpi = Mpi::impi;
    EXPECT_EQ(plan(options).hostfile, "node0:1\nnode1:1\nnode2:1\nnode0:1\nnode2:1\nnode0:1\n");
    options.mpi = Mpi::mpich_debian;
    EXPECT_THROW(plan(options), std::runtime_error) << "MPICH 4 has no rank map";
    options.mpi = Mpi::openmpi;
    EXPECT_EQ(plan(options).hostfile, "node0 slots=3\nnode1 slots=1\nnode2 slots=2\n");
    EXPECT_TRUE(has(plan(options).argv, "node")) << "--map-by node makes it cyclic";
}

TEST(Launch, MpichYieldsOnlyWhereRanksOutnumberCores) {
    const Options options = four_by_two(Mpi::mpich);
    EXPECT_TRUE(has(plan(options, 2).argv, "20"));
    EXPECT_NE(plan(options, 2).waiting.find("yields"), std::string::npos);
    EXPECT_FALSE(has(plan(options, 8).argv, "20"));
    EXPECT_EQ(plan(options, 8).waiting.find("yields"), std::string::npos);
    Options off = options;
    off.yield_help = "off";
    EXPECT_FALSE(has(plan(off, 2).argv, "20"));
    Options on = options;
    on.yield_help = "on";
    EXPECT_TRUE(has(plan(on, 8).argv, "20"));
    EXPECT_THROW(plan(on, 8, ""), std::runtime_error) << "asked for, but the library is not there";
}

// From where the user is, whatever folders THALWEG_MPI_ROOTS names.
TEST(Launch, ARelativeRootIsOneOfTheCurrentFolder) {
    char name[] = "/tmp/thalweg-roots-XXXXXX";
    const std::filesystem::path folder = mkdtemp(name), before = std::filesystem::current_path();
    std::filesystem::create_directories(folder / "mine/bin");
    std::ofstream(folder / "mine/bin/mpiexec") << "";
    std::filesystem::permissions(folder / "mine/bin/mpiexec", std::filesystem::perms::owner_all);
    setenv("THALWEG_MPI_ROOTS", "/usr:/nowhere", 1);
    std::filesystem::current_path(folder);
    const std::string root = find_mpi(Mpi::mpich, "mine").root;
    std::string why;
    try {
        find_mpi(Mpi::mpich, "yours");
    } catch (const std::exception& none) {
        why = none.what();
    }
    std::filesystem::current_path(before);
    unsetenv("THALWEG_MPI_ROOTS");
    EXPECT_EQ(root, folder / "mine");
    EXPECT_EQ(why, "--mpi-root: there is no " + (folder / "yours/bin/mpiexec").string());
    std::filesystem::remove_all(folder);
}

TEST(Launch, OpenMpiUsesEveryRailAndNoOtherNetwork) {
    Options options = four_by_two(Mpi::openmpi);
    options.network.rails = 2;
    EXPECT_EQ(setting(plan(options), "OMPI_MCA_btl_tcp_if_include"), "10.77.0.0/24,10.77.1.0/24");
    EXPECT_EQ(setting(plan(options), "OMPI_MCA_btl"), "tcp,sm,self");
    options.mpi = Mpi::openmpi_debian;
    EXPECT_EQ(setting(plan(options), "OMPI_MCA_btl"), "tcp,vader,self") << "the name before Open MPI 5";
}

TEST(Launch, OpenMpi4And5CallTheSameThingsDifferently) {
    const Launch five = plan(four_by_two(Mpi::openmpi)), four = plan(four_by_two(Mpi::openmpi_debian));
    EXPECT_EQ(five.argv, four.argv);
    EXPECT_EQ(setting(five, "OMPI_MCA_plm"), "unset");
    EXPECT_EQ(setting(four, "OMPI_MCA_plm"), "rsh");
    EXPECT_NE(setting(five, "PRTE_MCA_plm_ssh_agent"), "unset");
    EXPECT_EQ(setting(five, "PRTE_MCA_plm_ssh_agent"), setting(four, "OMPI_MCA_plm_rsh_agent"));
    EXPECT_EQ(setting(five, "PRTE_MCA_plm_ssh_no_tree_spawn"),
              setting(four, "OMPI_MCA_plm_rsh_no_tree_spawn"));
    EXPECT_EQ(setting(five, "PRTE_MCA_prte_tmpdir_base"), setting(four, "OMPI_MCA_orte_tmpdir_base"));
}

TEST(Launch, IntelUsesTcpBetweenAndSharedMemoryInsideHosts) {
    const Launch launch = plan(four_by_two(Mpi::impi));
    EXPECT_EQ(setting(launch, "FI_PROVIDER"), "tcp");
    EXPECT_EQ(setting(launch, "I_MPI_FABRICS"), "shm:ofi");
    EXPECT_EQ(setting(launch, "I_MPI_ROOT"), "/root");
}

TEST(Launch, WhatASurroundingJobLeftIsRemovedUnlessKept) {
    std::vector<std::string> texts{"PATH=/bin",
                                   "PMI_RANK=3",
                                   "PMIX_NAMESPACE=x",
                                   "THALWEG_BCAST=chain",
                                   "OMPI_COMM_WORLD_RANK=1",
                                   "OMPI_MCA_pml=ob1",
                                   "SLURM_JOB_ID=4"};
    std::vector<char*> environment;
    for (auto& text : texts) environment.push_back(text.data());
    environment.push_back(nullptr);
    EXPECT_EQ(enclosing_job_variables(environment.data(), {}),
              (Args{"PMI_RANK", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_RANK", "SLURM_JOB_ID"}));
    EXPECT_EQ(enclosing_job_variables(environment.data(), {"PMI_RANK", "SLURM_JOB_ID"}),
              (Args{"PMIX_NAMESPACE", "OMPI_COMM_WORLD_RANK"}));
}
