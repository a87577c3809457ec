// What the functions of runtime.h know about the process and the calling thread. Private to the core object.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/log.h"
#include "transport/mpi/error_handler.h"

namespace thalweg {

// True while calls may be taken: the world is initialised or a session is open, and this is not a forked
// child.
extern constinit std::atomic<bool> taking;

// Set by a call of ours that only asks whether the function called arrives here.
extern thread_local constinit bool probing [[gnu::tls_model("initial-exec")]];
extern thread_local constinit bool probe_arrived [[gnu::tls_model("initial-exec")]];

// Of a wrapper while no calls are taken: 1 where this one only asks whether it arrives, and *error is what to
// return.
inline int answer_probe(int* error) {
    if (!probing) return 0;
    probe_arrived = true;
    *error = MPI_SUCCESS;
    return 1;
}

// A mark that a longjmp out of the native library left behind is recognised by the stack having grown back.
inline bool inside(void* frame) {
    return outermost_frame != 0 && reinterpret_cast<std::uintptr_t>(frame) < outermost_frame;
}

// Marks the thread as inside a wrapper, as thalweg_enter() does, until the wrapper returns or is unwound.
class Inside {
  public:
    explicit Inside(void* frame) { outermost_frame = reinterpret_cast<std::uintptr_t>(frame); }
    ~Inside() { outermost_frame = 0; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
};

// A call from Fortran that was asked about and is passed on to a native binding that calls the C function:
// that is the same call, and the first one there, before any error handler can run. What a handler calls
// meanwhile, or after it has left by a longjmp, is another. Elsewhere the mark has no frame and does nothing.
// Which bindings call the C function is known by the family (wrappers/fortran.py). A library of the MPICH
// family that was built to call PMPI's instead would leave the mark to the first such call of a handler's.
struct PassedOn {
    int operation;  // ThalwegOperation + 1; 0: none
    MPI_Comm comm;
    std::uintptr_t frame;  // of the Fortran wrapper while it is in such a native call, else 0
};
extern thread_local constinit PassedOn passed_on [[gnu::tls_model("initial-exec")]];
constexpr int blocking_broadcast = 1000;  // beyond every ThalwegOperation

// Of a C wrapper, asked before inside(): the first call further down the stack is that of the binding.
inline bool was_asked(int operation, MPI_Comm comm, void* frame) {
    if (__builtin_expect(passed_on.frame == 0, 1)) return false;
    const PassedOn call = std::exchange(passed_on, PassedOn{});
    return reinterpret_cast<std::uintptr_t>(frame) < call.frame && call.operation == operation + 1 &&
           call.comm == comm;
}

// Where a call of `name` by the program would go first, if that is another object than ours; else null.
// `object` is then its file's name.
void* foreign_definition(const char* name, const char*& object);

// Calls the definition of `name` that the program would reach, where it is not ours, and sees whether the
// wrapper is asked. The call has no effect.
template <typename Function, typename... Arguments>
bool arrives(const char* name, Arguments... arguments) {
    const char* object = nullptr;
    void* const first = foreign_definition(name, object);
    if (first == nullptr) return true;
    probe_arrived = false;
    probing = true;
    reinterpret_cast<Function*>(first)(arguments...);
    probing = false;
    if (!probe_arrived)
        THALWEG_LOG_AT(info, "%s stands in front and does not pass %s on; what needs it is left to MPI",
                       object, name);
    return probe_arrived;
}

// Whether every blocking collective that we may take, or in which a communicator may be set up, arrives at
// our wrappers: a profiling tool in front of us may answer one with its PMPI_ twin, and then this rank must
// not be counted on. Communicates nothing.
bool collectives_reach_us();
// The same of the blocking collectives of neighbours, and of whatever makes a request of a collective.
bool neighbours_reach_us();
bool makers_reach_us();
// Which makers of persistent alltoalls have a wrapper here, a bit each: their objects may not be here.
unsigned planners_wrapped();
// And of the blocking forms with large counts; whether those have a wrapper here.
bool large_forms_reach_us();
bool wraps_large_forms();
// Whether every call that makes a communicator arrives at our wrappers. Those that a tool in front hands to
// the library make one of this process alone, which is freed.
int creations_reach_us();
// Whether every call that completes, starts or frees a request arrives at our wrappers. Communicates nothing.
bool completions_reach_us();
// The same of those that ask after several, which not every library has.
bool questions_reach_us();
// The same of both in Fortran, as far as no wrapper in C would see them: blocking collectives; and what
// makes, completes, starts or frees requests.
bool fortran_collectives_reach_us();
bool fortran_requests_reach_us();
// Whether nobody calls what we wrap by Fortran's names without an underscore, which we do not wrap, where no
// wrapper in C would see that. Else all calls are the library's: whoever calls so may make, complete or free
// what others call in C.
bool nobody_calls_past_us();
// Whether no program here goes on after others have failed. Else all calls are the library's: who waits in
// one of ours does not hear that a rank revokes the communicator.
bool nobody_recovers();

}  // namespace thalweg
