#include "driver/cases.h"

namespace thalweg::bench {

#define BENCH_CASE(name) extern const Case name##_case;
#include "driver/cases.def"
#undef BENCH_CASE

const Case* find_case(std::string_view name) {
#define BENCH_CASE(row) \
    if (name == #row) return &row##_case;
#include "driver/cases.def"
#undef BENCH_CASE
    return nullptr;
}

}  // namespace thalweg::bench
