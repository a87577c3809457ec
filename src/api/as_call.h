// A call as the wrappers write it down, as what plans it wants it.
#pragma once

#include "api/entry.h"
#include "plan/collective_call.h"

namespace thalweg {

Collective collective_of(const ThalwegCall& call);
CollectiveCall as_call(const ThalwegCall& call);

}  // namespace thalweg
