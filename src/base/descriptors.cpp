#include "base/descriptors.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace thalweg {

std::uint64_t descriptors_left() {
    rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    std::uint64_t used = 0;
    std::error_code error;
    for (std::filesystem::directory_iterator open("/proc/self/fd", error), none; !error && open != none;
         open.increment(error))
        ++used;
    if (error) return error == std::errc::too_many_files_open ? 0 : UINT64_MAX;
    return limit.rlim_cur - std::min<std::uint64_t>(used, limit.rlim_cur);
}

}  // namespace thalweg
