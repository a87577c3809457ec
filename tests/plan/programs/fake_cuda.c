/* A stand-in for libcuda.so.1. Attribute 2 is the kind of memory, 2 means device. */
#include "fake_device.h"

int cuPointerGetAttribute(void* data, int attribute, unsigned long long address) {
    if (!inside((uintptr_t)address)) return 1;
    if (attribute != 2) return 1;
    *(unsigned*)data = 2;
    return 0;
}
int cuMemcpy(unsigned long long to, unsigned long long from, size_t bytes) {
    return copy((void*)(uintptr_t)to, (const void*)(uintptr_t)from, bytes);
}
