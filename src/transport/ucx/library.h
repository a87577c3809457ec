// libucp by address. Nothing here is linked: a NEEDED entry of ours would displace the copy that the MPI
// library brings. Includes libucp's headers, so it is seen by this folder only.
#pragma once

#include <ucp/api/ucp.h>

#include <string>

namespace thalweg::ucx {

struct Library {
#define UCX_CALL(name) decltype(&ucp_##name) name = nullptr;
#include "transport/ucx/calls.def"
#undef UCX_CALL
    const char* (*status_string)(ucs_status_t) = nullptr;
    std::string version;        // "1.20.1"
    bool loaded_by_us = false;  // else the process had it
    // Without memory hooks libucp keeps no cache of registered memory, and from 1.14 on it follows a null
    // pointer to that cache when a peer dies during a rendezvous (openucx/ucx#11467, seen in 1.20.1), unless
    // the memory was registered by its user. So we do, for all messages that may go by rendezvous.
    bool needs_registration = false;
    // From 1.17 on its thresholds may differ inside hosts and between them (openucx/ucx#9507).
    bool tells_hosts_apart = false;
    // Up to 1.15 it takes bridges for devices, those of containers too, which lead to no other host
    // (openucx/ucx#9383).
    bool takes_bridges = false;
};

// The process's libucp, or the one that the dynamic linker finds. Looked for once; null ever after where
// there is none that will do, with one sentence in `why`. When we are the ones to load it, it must leave
// signal handlers, the memory functions of libc and the environment as they are; where a version does not,
// there is none. Thread-safe.
const Library* library(std::string& why);

}  // namespace thalweg::ucx
