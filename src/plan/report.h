// The report of THALWEG_REPORT: what happened to the collectives of this job.
#pragma once

#include <string>

#include "plan/statistics.h"
#include "plan/world.h"

namespace thalweg {

// In MPI_Init: whether this world was spawned, which nobody can tell any more once the program has
// disconnected from its parent, and which folder a relative name of its report is in. Local.
void note_origin();

// In MPI_Finalize, after the gate closed: collective over the world where a report was asked for. Rank 0
// writes its own rows and the largest totals of any rank: JSON to a file, a table for people to standard
// error for "-" or where the file cannot be written. A spawned world has a file of its own beside the one
// that was asked for.
void write_report(World& world);

}  // namespace thalweg
