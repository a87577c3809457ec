#include "plan/device.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <initializer_list>
#include <mutex>

namespace thalweg {

namespace {

// The little of the drivers' stable C interfaces that we need.
constexpr int cuda_context_of_pointer = 1, cuda_memory_type = 2, cuda_device_of_pointer = 9,
              cuda_range_begin = 11, cuda_range_bytes = 12;
constexpr unsigned cuda_memory_host = 1;
constexpr unsigned cuda_memory_device = 2;
constexpr int hip_copy_default = 4;
constexpr std::int64_t widest_stride = INT32_MAX;  // of a driver's copy of rows, in bytes

// CUDA_MEMCPY2D of cuda.h.
struct CudaPlace {
    std::size_t x_bytes = 0, y = 0;
    unsigned kind = 0;
    const void* host = nullptr;
    unsigned long long device = 0;
    void* array = nullptr;
    std::size_t stride = 0;
};
struct CudaRows {
    CudaPlace from, to;
    std::size_t bytes = 0, count = 0;
};

struct Drivers {
    int (*cuda_attribute)(void* data, int attribute, unsigned long long address) = nullptr;
    int (*cuda_copy)(unsigned long long to, unsigned long long from, std::size_t bytes) = nullptr;
    int (*cuda_copy_rows)(const CudaRows* rows) = nullptr;
    int (*cuda_current)(void** context) = nullptr;
    int (*cuda_retain)(void** context, int device) = nullptr;
    int (*cuda_release)(int device) = nullptr;
    int (*cuda_push)(void* context) = nullptr;
    int (*cuda_pop)(void** context) = nullptr;
    int (*cuda_synchronize)(void* stream) = nullptr;
    int (*hip_attributes)(void* attributes, const void* address) = nullptr;
    int (*hip_copy)(void* to, const void* from, std::size_t bytes, int direction) = nullptr;
    int (*hip_copy_rows)(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
                         std::size_t bytes, std::size_t count, int direction) = nullptr;
    int (*hip_range)(void** begin, std::size_t* bytes, void* address) = nullptr;
    int (*hip_synchronize)(void* stream) = nullptr;
};

Drivers drivers;
std::atomic<bool> cuda_ready{false}, hip_ready{false};
constinit std::mutex probe_mutex;
// How many objects had been loaded when the drivers were last looked for.
std::atomic<unsigned long long> seen_loads{0};

int read_loads(dl_phdr_info* info, std::size_t, void* loads) {
    *static_cast<unsigned long long*>(loads) = info->dlpi_adds;
    return 1;
}

template <typename Function>
void look_up(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
}

void probe(unsigned long long loads) {
    std::lock_guard lock(probe_mutex);
    if (!cuda_ready.load(std::memory_order_relaxed)) {
        if (void* const cuda = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY)) {
            look_up(cuda, "cuPointerGetAttribute", drivers.cuda_attribute);
            look_up(cuda, "cuMemcpy", drivers.cuda_copy);
            look_up(cuda, "cuMemcpy2DUnaligned_v2", drivers.cuda_copy_rows);
            look_up(cuda, "cuStreamSynchronize", drivers.cuda_synchronize);
            look_up(cuda, "cuCtxGetCurrent", drivers.cuda_current);
            look_up(cuda, "cuDevicePrimaryCtxRetain", drivers.cuda_retain);
            look_up(cuda, "cuDevicePrimaryCtxRelease_v2", drivers.cuda_release);
            look_up(cuda, "cuCtxPushCurrent_v2", drivers.cuda_push);
            look_up(cuda, "cuCtxPopCurrent_v2", drivers.cuda_pop);
            // Release: whoever sees the flag sees the addresses.
            if (drivers.cuda_attribute && drivers.cuda_copy)
                cuda_ready.store(true, std::memory_order_release);
        }
    }
    if (!hip_ready.load(std::memory_order_relaxed)) {
        for (const char* name :
             {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}) {
            void* const hip = dlopen(name, RTLD_NOLOAD | RTLD_LAZY);
            if (hip == nullptr) continue;
            look_up(hip, "hipPointerGetAttributes", drivers.hip_attributes);
            look_up(hip, "hipMemcpy", drivers.hip_copy);
            look_up(hip, "hipMemcpy2D", drivers.hip_copy_rows);
            look_up(hip, "hipMemGetAddressRange", drivers.hip_range);
            look_up(hip, "hipStreamSynchronize", drivers.hip_synchronize);
            if (drivers.hip_attributes && drivers.hip_copy) hip_ready.store(true, std::memory_order_release);
            break;
        }
    }
    dlerror();
    seen_loads.store(loads, std::memory_order_release);
}

unsigned long long cuda_address(const void* address) {
    return static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(address));
}

// A thread that never used CUDA has no current context: for as long as this lives it has that of the memory,
// or, where memory belongs to none (a pool's), that which the runtime has for its device.
class CudaContext {
  public:
    explicit CudaContext(std::initializer_list<const void*> memory) {
        void* context = nullptr;
        if (drivers.cuda_current == nullptr || drivers.cuda_push == nullptr || drivers.cuda_pop == nullptr ||
            (drivers.cuda_current(&context) == 0 && context != nullptr))
            return;
        for (const void* address : memory) {
            if (drivers.cuda_attribute(&context, cuda_context_of_pointer, cuda_address(address)) != 0)
                context = nullptr;
            int device = 0;
            if (context == nullptr && drivers.cuda_retain != nullptr && drivers.cuda_release != nullptr &&
                drivers.cuda_attribute(&device, cuda_device_of_pointer, cuda_address(address)) == 0 &&
                drivers.cuda_retain(&context, device) == 0)
                retained_ = device;
            if (context == nullptr) continue;
            pushed_ = drivers.cuda_push(context) == 0;
            return;
        }
    }
    ~CudaContext() {
        void* context = nullptr;
        if (pushed_) drivers.cuda_pop(&context);
        if (retained_ >= 0) drivers.cuda_release(retained_);
    }
    CudaContext(const CudaContext&) = delete;
    CudaContext& operator=(const CudaContext&) = delete;

  private:
    bool pushed_ = false;
    int retained_ = -1;
};

}  // namespace

Memory memory_of(const void* address) {
    unsigned long long loads = 0;
    dl_iterate_phdr(read_loads, &loads);
    if (loads != seen_loads.load(std::memory_order_acquire)) probe(loads);
    if (cuda_ready.load(std::memory_order_acquire)) {
        unsigned type = 0;
        if (drivers.cuda_attribute(&type, cuda_memory_type, cuda_address(address)) == 0 && type != 0 &&
            type != cuda_memory_host)
            return Memory::cuda;
    }
    if (hip_ready.load(std::memory_order_acquire)) {
        // Larger than the structure of any version; its first member is the kind of memory. 0 is unregistered
        // host memory since ROCm 6 and registered before; 1 is the host's in one and the device's in the
        // other, so all but 0 go through the driver's copy, which is right for both.
        alignas(16) unsigned char attributes[512] = {};
        int type = 0;
        if (drivers.hip_attributes(attributes, address) == 0) {
            std::memcpy(&type, attributes, sizeof type);
            if (type != 0) return Memory::hip;
        }
    }
    return Memory::host;
}

bool copies_at_once(Memory kind, std::uint64_t bytes, std::int64_t stride) {
    const bool copies = kind == Memory::cuda ? drivers.cuda_copy_rows != nullptr
                                             : kind == Memory::hip && drivers.hip_copy_rows != nullptr &&
                                                   drivers.hip_range != nullptr;
    return copies && stride >= static_cast<std::int64_t>(bytes) && stride <= widest_stride;
}

namespace {

bool copy(Memory kind, void* to, const void* from, std::size_t bytes) {
    if (kind == Memory::hip) return drivers.hip_copy(to, from, bytes, hip_copy_default) == 0;
    const CudaContext context({to, from});
    return drivers.cuda_copy(cuda_address(to), cuda_address(from), bytes) == 0;
}

// How many of the rows one copy may take: rows that a datatype names by addresses may lie anywhere, in host
// memory too.
std::uint64_t in_one_allocation(Memory kind, const Rows& rows) {
    const auto first = reinterpret_cast<std::uintptr_t>(rows.first);
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    if (kind == Memory::cuda) {
        unsigned long long address = 0;
        if (drivers.cuda_attribute(&address, cuda_range_begin, first) != 0 ||
            drivers.cuda_attribute(&bytes, cuda_range_bytes, first) != 0)
            return 1;
        begin = static_cast<std::uintptr_t>(address);
    } else {
        void* address = nullptr;
        if (drivers.hip_range(&address, &bytes, rows.first) != 0) return 1;
        begin = reinterpret_cast<std::uintptr_t>(address);
    }
    if (begin > first || first - begin > bytes || bytes - (first - begin) < rows.bytes) return 1;
    const std::uint64_t left = bytes - (first - begin) - rows.bytes;
    return std::min(rows.count, left / static_cast<std::uint64_t>(rows.stride) + 1);
}

CudaPlace on_device(const Rows& rows) {
    CudaPlace place;
    place.kind = cuda_memory_device;
    place.device = cuda_address(rows.first);
    place.stride = static_cast<std::size_t>(rows.stride);
    return place;
}

CudaPlace on_host(const void* packed, const Rows& rows) {
    CudaPlace place;
    place.kind = cuda_memory_host;
    place.host = packed;
    place.stride = rows.bytes;
    return place;
}

bool cuda_copy_rows(const CudaPlace& from, const CudaPlace& to, const Rows& rows) {
    const CudaContext context({rows.first});
    const CudaRows copied{from, to, rows.bytes, rows.count};
    return drivers.cuda_copy_rows(&copied) == 0;
}

// Part by part: `one` has a row, `several` the rows of one allocation, both how far they lie in the packed
// form.
template <class One, class Several>
Status each_part(Memory kind, Rows rows, One one, Several several) {
    const bool at_once = copies_at_once(kind, rows.bytes, rows.stride);
    for (std::uint64_t offset = 0; rows.count > 0;) {
        Rows part = rows;
        part.count = at_once && rows.count > 1 ? in_one_allocation(kind, rows) : 1;
        if (!(part.count == 1 ? one(part.first, offset) : several(part, offset)))
            return Status::transport_failed;
        offset += part.count * part.bytes;
        rows.first += static_cast<std::int64_t>(part.count) * rows.stride;
        rows.count -= part.count;
    }
    return Status::ok;
}

}  // namespace

Status pack_rows(Memory kind, std::byte* packed, const Rows& rows) {
    return each_part(
        kind, rows,
        [&](const std::byte* row, std::uint64_t offset) {
            return copy(kind, packed + offset, row, rows.bytes);
        },
        [&](const Rows& part, std::uint64_t offset) {
            if (kind == Memory::cuda)
                return cuda_copy_rows(on_device(part), on_host(packed + offset, part), part);
            return drivers.hip_copy_rows(packed + offset, part.bytes, part.first,
                                         static_cast<std::size_t>(part.stride), part.bytes, part.count,
                                         hip_copy_default) == 0;
        });
}

Status unpack_rows(Memory kind, const Rows& rows, const std::byte* packed) {
    return each_part(
        kind, rows,
        [&](std::byte* row, std::uint64_t offset) { return copy(kind, row, packed + offset, rows.bytes); },
        [&](const Rows& part, std::uint64_t offset) {
            if (kind == Memory::cuda)
                return cuda_copy_rows(on_host(packed + offset, part), on_device(part), part);
            return drivers.hip_copy_rows(part.first, static_cast<std::size_t>(part.stride), packed + offset,
                                         part.bytes, part.bytes, part.count, hip_copy_default) == 0;
        });
}

// A copy from pageable memory comes back when that may be changed; its last bytes may still be on their way,
// and only what follows in the default stream waits for them.
Status settle(Memory kind, const void* address) {
    bool done = true;
    if (kind == Memory::hip) {
        done = drivers.hip_synchronize == nullptr || drivers.hip_synchronize(nullptr) == 0;
    } else if (kind == Memory::cuda && drivers.cuda_synchronize != nullptr) {
        const CudaContext context({address});
        done = drivers.cuda_synchronize(nullptr) == 0;
    }
    return done ? Status::ok : Status::transport_failed;
}

}  // namespace thalweg
