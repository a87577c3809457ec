// What the functions of runtime.h know about the process and the calling thread. Private to the core object.
#pragma once

#include <atomic>
#include <cstdint>

namespace thalweg {

// True while calls may be taken: the world is initialised or a session is open, and this is not a forked
// child.
extern constinit std::atomic<bool> taking;

// The frame of this thread's outermost wrapper, 0 outside. Initial-exec: no call behind a read. A preloaded
// object has its thread-local storage in the static block from the start.
extern thread_local constinit std::uintptr_t outermost_frame [[gnu::tls_model("initial-exec")]];
// Set by a call of ours that only asks whether the function called arrives here.
extern thread_local constinit bool probing [[gnu::tls_model("initial-exec")]];
extern thread_local constinit bool probe_arrived [[gnu::tls_model("initial-exec")]];

// A mark that a longjmp left behind is recognised by the stack having grown back.
inline bool inside(void* frame) {
    return outermost_frame != 0 && reinterpret_cast<std::uintptr_t>(frame) < outermost_frame;
}

// Where a call of `name` by the program would go first, if that is another object than ours; else null.
// `object` is then its file's name.
void* foreign_definition(const char* name, const char*& object);

// Whether every call that completes, starts or frees a request arrives at our wrappers. Communicates nothing.
bool completions_reach_us();

}  // namespace thalweg
