// Error handlers of the program, called by us from inside a wrapper.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <utility>

namespace thalweg {

// The frame of this thread's outermost wrapper, 0 outside: what is called of MPI further down the stack is
// the library's own doing. Initial-exec: no call behind a read. A preloaded object has its thread-local
// storage in the static block from the start.
extern thread_local constinit std::uintptr_t outermost_frame [[gnu::tls_model("initial-exec")]];

// As long as it lives, the thread is outside all wrappers: around what may run the program's code. No mark
// stays behind where that leaves by a longjmp.
class Outside {
  public:
    Outside() : frame_(std::exchange(outermost_frame, 0)) {}
    ~Outside() { outermost_frame = frame_; }
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

  private:
    std::uintptr_t frame_;
};

// Calls the error handler of `comm` as MPI would. What that calls of MPI is the program's, and is seen as
// such; it may free the communicator, and leave by an exception or a longjmp.
void call_error_handler(MPI_Comm comm, int error);

}  // namespace thalweg
