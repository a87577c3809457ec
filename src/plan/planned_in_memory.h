// What runs in the memory of the one host that a communicator's ranks are on, where nobody asked for that:
// blocking exchanges and broadcasts that are tried there, and persistent exchanges, which the agent drives.
#pragma once

#include <mpi.h>

#include <memory>

#include "plan/collective_call.h"
#include "plan/communicator.h"
#include "plan/exchange_decision.h"
#include "plan/lane.h"

namespace thalweg {

// Where operations on `comm`, whose ranks are on one host, run in its memory. open: sets it up for that where
// it has not been set up; collective. Null, on all ranks: it cannot be, or something else carries them. A
// set-up that has failed is not tried again.
std::shared_ptr<Lane> open_lane_in_memory(MPI_Comm comm, Communicator& communicator);
std::shared_ptr<Lane> lane_in_memory(const Communicator& communicator);

// In MPI_Init: whether a table speaks of persistent exchanges, between all or between neighbours, of ranks of
// one host, on which every rank is. Equal on all ranks. Throws std::bad_alloc.
bool look_for_planned_rows(const World& world);
// The same of blocking collectives of neighbourhoods, which are tried; and whether one does.
void look_for_tried_rows(const World& world);
bool tries_neighbours();

// Whether a table may take a persistent exchange, for which nobody asked, between ranks of one host.
bool may_be_planned_in_memory(const CollectiveCall& call);
// Whether it does, and the memory can be had: `forethought` then knows what all ranks exchange, and by what.
// Collective, with the same answer everywhere. Pre: it may. Throws std::bad_alloc, AgreementFailed.
bool plan_in_memory(const CollectiveCall& call, const CallShape& shape, Communicator& communicator,
                    Forethought& forethought);

}  // namespace thalweg
