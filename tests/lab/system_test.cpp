#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/lab.h"

using namespace thalweg::lab;

namespace {

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

// What a child makes of its copies of the descriptors 20, 21 and `highest`.
int close_in_child(int highest) {
    if (dup2(0, 20) != 20 || dup2(0, 21) != 21 || dup2(0, highest) != highest) return 1;
    if (!close_from(21)) return 2;
    if (!is_open(0) || !is_open(20)) return 3;
    for (int fd = 21; fd <= highest; ++fd)
        if (is_open(fd)) return 4;
    return 0;
}

}  // namespace

TEST(System, AllDescriptorsFromOneOnAreClosed) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(close_in_child(200));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}
