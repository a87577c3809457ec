// The attribute keys under which our state hangs on communicators and datatypes. Never copied: a duplicate
// starts without state.
#pragma once

#include "base/status.h"

namespace thalweg {

struct Keyvals {
    int comm = 0;
    int type = 0;
};

// Once per process, after MPI_Init and before the gate opens.
Status make_keyvals();
const Keyvals& keyvals();

}  // namespace thalweg
