#include "driver/cases.h"

#include "driver/nonblocking.h"

namespace thalweg::bench {

#define BENCH_CASE(name) extern const Case name##_case;
#include "driver/cases.def"

#define NONBLOCKING_CASE(name) extern const NonblockingCase name##_case;
#include "driver/cases.def"

const Case* find_case(std::string_view name) {
#define BENCH_CASE(row) \
    if (name == #row) return &row##_case;
#include "driver/cases.def"
    return nullptr;
}

const NonblockingCase* find_nonblocking_case(std::string_view name) {
#define NONBLOCKING_CASE(row) \
    if (name == #row) return &row##_case;
#include "driver/cases.def"
    return nullptr;
}

}  // namespace thalweg::bench
