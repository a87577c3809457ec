// Signals are the program's, and for its threads: ours take none.
#pragma once

#include <signal.h>

#include <cerrno>
#include <ctime>
#include <initializer_list>

namespace thalweg {

// As long as it lives, the calling thread takes no signals, but for those that tell of what it has just done
// itself; and a thread that is made meanwhile takes none for good, because it inherits the mask. Those few
// stay open: one that is blocked ends the process, whatever handler the program has, and a handler may mend a
// fault, as where a program tracks which pages are written. It runs on the stack of the thread that faults.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t blocked;
        sigfillset(&blocked);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&blocked, fault);
        pthread_sigmask(SIG_SETMASK, &blocked, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    sigset_t before_;
};

// As long as it lives, what the calling thread writes to a pipe that nobody reads any more, or beyond the
// limit on the size of files, fails with an error and no signal: for words of ours no program ends. `errno`
// stays what it is when this ends.
class WriteSignalsBlocked {
  public:
    WriteSignalsBlocked() {
        sigset_t pending;
        sigpending(&pending);
        sigemptyset(&raised_);
        // What waits already is the program's.
        for (const int each : {SIGPIPE, SIGXFSZ})
            if (sigismember(&pending, each) == 0) sigaddset(&raised_, each);
        pthread_sigmask(SIG_BLOCK, &raised_, &before_);
    }
    ~WriteSignalsBlocked() {
        const int error = errno;
        const timespec now = {};
        while (sigtimedwait(&raised_, nullptr, &now) > 0 || errno == EINTR) {
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        errno = error;
    }
    WriteSignalsBlocked(const WriteSignalsBlocked&) = delete;
    WriteSignalsBlocked& operator=(const WriteSignalsBlocked&) = delete;

  private:
    sigset_t raised_, before_;
};

}  // namespace thalweg
