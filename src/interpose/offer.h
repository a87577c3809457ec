// How a call that makes a request is handed on, from the arguments of every family and of Fortran. Private to
// the core object.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <new>

#include "api/entry.h"
#include "interpose/inside.h"
#include "interpose/runtime.h"
#include "plan/bypass.h"
#include "transport/mpi/host.h"

#define TYPE(handle) ((MPI_Datatype)(handle))
#define OP(handle) ((MPI_Op)(handle))
#define COMM(handle) ((MPI_Comm)(handle))
#define FRAME __builtin_frame_address(0)

namespace thalweg {

// `frame` is the wrapper's. Where nobody need ask again: thalweg_handed_on and the operation. Without a place
// for the request the library judges the call, as it does other wrong arguments: before it meets anybody.
inline int offer(const ThalwegCall& call, void* request, int* error, void* frame) {
    if (!taking.load(std::memory_order_acquire)) {
        if (!answer_probe(error)) return 0;
        if (request != nullptr) *static_cast<MPI_Request*>(request) = host()->request_null;
        return 1;
    }
    if (was_asked(call.operation, call.comm, frame) || inside(frame) || request == nullptr) return 0;
    const Inside mark(frame);
    const int answer = thalweg_entry_operation(&call, static_cast<MPI_Request*>(request), error);
    return answer == 2 ? int{thalweg_handed_on} + int{call.operation} : answer;
}

// A blocking exchange, which may be left to the native library between the calls that time it, or until it is
// asked for again.
inline int exchange_now(const ThalwegCall& call, int* error, void** trial, void* frame) {
    if (!taking.load(std::memory_order_acquire)) return answer_probe(error);
    if (was_asked(call.operation, call.comm, frame) || inside(frame)) return 0;
    const Inside mark(frame);
    return thalweg_entry_exchange(&call, error, trial);
}

// As thalweg_entry_may_take.
inline int may_take(bool blocking, MPI_Comm comm, int* error, void* frame) {
    if (inside(frame)) return 0;
    const Inside mark(frame);
    return thalweg_entry_may_take(blocking, comm, error);
}

// Of Fortran.
inline void* buffer_of(void* buffer) {
    if (is_fortran_bottom(buffer)) return MPI_BOTTOM;
    return is_fortran_in_place(buffer) ? MPI_IN_PLACE : buffer;
}
inline MPI_Datatype type_of(int type) { return host()->datatype_of_fortran(type); }
inline MPI_Op op_of(int operation) { return host()->op_of_fortran(operation); }
inline MPI_Comm comm_of(int comm) { return host()->comm_of_fortran(comm); }

// What `use` returns, of a call that needs memory of its own before it can be offered. Where there is none
// the others may be in the call already: the communicator's error handler hears of it. Behind the handler of
// the exception, because one of the program's that jumps would leave behind what was caught.
template <typename Use>
int with_memory(MPI_Comm comm, int* error, Use use) {
    try {
        return use();
    } catch (const std::bad_alloc&) {
    }
    *error = MPI_ERR_NO_MEM;
    call_error_handler(comm, *error);
    return 1;
}

inline bool asked() { return taking.load(std::memory_order_acquire); }
// What an earlier call has left behind by a longjmp is over.
inline bool fortran_asks() {
    passed_on = {};
    return asked();
}

// Of an exchange, before handles are translated.
inline bool exchange_passes_by() { return !fortran_asks() || Bypass::open(Bypass::exchanges); }

inline int offer_fortran(const ThalwegCall& call, int* request, int* error, void* frame) {
    MPI_Request made;
    if (offer(call, request == nullptr ? nullptr : &made, error, frame) != 1) {
        passed_on = {call.operation + 1, call.comm, 0};
        return 0;
    }
    if (request != nullptr && *error == MPI_SUCCESS) *request = host()->request_to_fortran(made);
    return 1;
}

inline int exchange_fortran(const ThalwegCall& call, int* error, void** trial, void* frame) {
    const bool has_failed = *trial != nullptr;
    const int answer = exchange_now(call, error, trial, frame);
    if (answer == 1 || has_failed) return answer;
    if (answer == 2) *trial = thalweg_entry_trial_of(*trial, call.comm);
    passed_on = {call.operation + 1, call.comm, 0};
    return 0;
}

}  // namespace thalweg
