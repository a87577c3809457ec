#include "base/status.h"

namespace thalweg {

const char* describe(Status status) {
    switch (status) {
        case Status::ok:
            return "success";
        case Status::in_progress:
            return "not complete yet";
        case Status::declined:
            return "left to the native MPI";
        case Status::not_found:
            return "not found";
        case Status::invalid_argument:
            return "an argument is outside its accepted range";
        case Status::out_of_memory:
            return "memory could not be allocated";
        case Status::unsupported:
            return "not supported by this build, machine or transport";
        case Status::mismatch:
            return "ranks disagree about a message or a setting";
        case Status::invalid_schedule:
            return "the schedule is not valid";
        case Status::transport_failed:
            return "the transport reported a failure";
        case Status::io_failed:
            return "a file or a system call failed";
        case Status::truncated:
            return "a message was longer than its receive";
    }
    return "unknown status";
}

}  // namespace thalweg
