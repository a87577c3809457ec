// How often any thread of the test program has yielded: it has the C library's place in that (wait.cpp).
#pragma once

#include <atomic>

namespace thalweg::test {

extern std::atomic<int> yields;

}  // namespace thalweg::test
