#include "plan/device.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>
#include <mutex>

namespace thalweg {

namespace {

// The little of the drivers' stable C interfaces that we need.
constexpr int cuda_context_of_pointer = 1, cuda_memory_type = 2;
constexpr unsigned cuda_memory_host = 1;
constexpr int hip_copy_default = 4;

struct Drivers {
    int (*cuda_attribute)(void* data, int attribute, unsigned long long address) = nullptr;
    int (*cuda_copy)(unsigned long long to, unsigned long long from, std::size_t bytes) = nullptr;
    int (*cuda_current)(void** context) = nullptr;
    int (*cuda_push)(void* context) = nullptr;
    int (*cuda_pop)(void** context) = nullptr;
    int (*hip_attributes)(void* attributes, const void* address) = nullptr;
    int (*hip_copy)(void* to, const void* from, std::size_t bytes, int direction) = nullptr;
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
            look_up(cuda, "cuCtxGetCurrent", drivers.cuda_current);
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

Status copy(Memory kind, void* to, const void* from, std::size_t bytes) {
    if (kind == Memory::host) {
        std::memcpy(to, from, bytes);
        return Status::ok;
    }
    if (kind == Memory::hip)
        return drivers.hip_copy(to, from, bytes, hip_copy_default) == 0 ? Status::ok
                                                                        : Status::transport_failed;
    // A thread that never used CUDA has no current context; the memory knows its own.
    void* context = nullptr;
    bool pushed = false;
    if (drivers.cuda_current != nullptr && drivers.cuda_push != nullptr && drivers.cuda_pop != nullptr &&
        (drivers.cuda_current(&context) != 0 || context == nullptr)) {
        for (const void* address : {static_cast<const void*>(to), from})
            if (!pushed &&
                drivers.cuda_attribute(&context, cuda_context_of_pointer, cuda_address(address)) == 0 &&
                context != nullptr)
                pushed = drivers.cuda_push(context) == 0;
    }
    const int error = drivers.cuda_copy(cuda_address(to), cuda_address(from), bytes);
    if (pushed) drivers.cuda_pop(&context);
    return error == 0 ? Status::ok : Status::transport_failed;
}

}  // namespace thalweg
