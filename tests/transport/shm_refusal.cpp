// What a report says where the system copies between no two processes.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "transport/shm/refusal.h"

namespace thalweg::shm {
namespace {

TEST(Refusal, NamesTheRuleThatForbidsRanksToCopyFromEachOther) {
    const std::string path = testing::TempDir() + "thalweg_ptrace_scope";
    for (const char* scope : {"0", "1", "2", "3"}) {
        std::FILE* const file = std::fopen(path.c_str(), "w");
        ASSERT_NE(file, nullptr);
        std::fprintf(file, "%s\n", scope);
        std::fclose(file);
        const std::string said = why_rings_only(path.c_str());
        EXPECT_EQ(said.rfind("rings only: process_vm_readv is refused", 0), 0u) << said;
        const std::string rule = std::string("kernel.yama.ptrace_scope is ") + scope;
        EXPECT_EQ(said.find(rule) != std::string::npos, *scope != '0') << said;
    }
    std::remove(path.c_str());
    EXPECT_STREQ(why_rings_only(path.c_str()), "rings only: process_vm_readv is refused");
}

}  // namespace
}  // namespace thalweg::shm
