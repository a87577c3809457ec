/* "Device memory" that faults when the CPU touches it, for the stand-ins of drivers, which recognise and copy
 * it. */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static unsigned char* region;
static size_t region_bytes;
static unsigned long copies;
static int shared;

void* fake_alloc(size_t bytes) {
    region_bytes = (bytes + 4095) / 4096 * 4096;
    region = mmap(NULL, region_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return region;
}
unsigned long fake_copies(void) { return copies; }
/* From now on the CPU may touch it too, as an MPI library that knows the device does. */
void fake_share(void) {
    shared = 1;
    mprotect(region, region_bytes, PROT_READ | PROT_WRITE);
}

static int inside(uintptr_t address) {
    return region != NULL && address >= (uintptr_t)region && address < (uintptr_t)region + region_bytes;
}
static void move(void* to, const void* from, size_t bytes) {
    mprotect(region, region_bytes, PROT_READ | PROT_WRITE);
    memcpy(to, from, bytes);
    if (!shared) mprotect(region, region_bytes, PROT_NONE);
}
void fake_write(void* device, const void* from, size_t bytes) { move(device, from, bytes); }
void fake_read(void* to, const void* device, size_t bytes) { move(to, device, bytes); }

/* As a driver copies: not where neither end is its own. 0: done. */
static int copy(void* to, const void* from, size_t bytes) {
    if (!inside((uintptr_t)to) && !inside((uintptr_t)from)) return 1;
    ++copies;
    move(to, from, bytes);
    return 0;
}

#endif
