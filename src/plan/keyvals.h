// The attribute keys under which our state hangs on communicators and datatypes. Never copied: a duplicate
// starts without state.
#pragma once

#include <mpi.h>

#include "base/status.h"

namespace thalweg {

struct Keyvals {
    int comm = 0;
    int type = 0;
};

// Once per process, after MPI_Init and before the gate opens.
Status make_keyvals();
const Keyvals& keyvals();

// Makes MPI_COMM_SELF call `deleted` when its attributes are deleted, which is the first thing that the
// native MPI_Finalize does. Once, right after MPI_Init: the attribute that was set first is deleted last.
void watch_self(int (*deleted)(MPI_Comm, int, void*, void*));
// MPI did so.
bool self_watched();

}  // namespace thalweg
