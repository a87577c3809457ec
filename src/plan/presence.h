// Which ranks of the job have us, found without a message that a receive of the user could match and without any
// help from ranks that do not have us: through the launcher's key-value store.
//
// Owner: interpose's wrappers announce, World::agree asks.
#pragma once

namespace thalweg {

enum class Presence {
    all,      // every rank of MPI_COMM_WORLD has us, its calls reach us: collectives of ours are safe
    some,     // at least one has not: every rank that has us learns so, and passes everything through
    unknown,  // not found out in time, or the launcher has no store we can use; `some` to be safe
};

// Before the native MPI_Init: leaves a mark in the launcher's store, which the native initialisation then spreads.
// Local.
void announce_presence();

// After the native MPI_Init, once, by every rank that has us. `timeout_seconds` bounds the wait for the others.
// All ranks that have us get the same answer, except that some may get `unknown` where others get `some`.
Presence find_presence(double timeout_seconds);

// Why the last answer was not `all`, one clause for a log line; static storage.
const char* presence_reason();

// Whether this rank's calls reach our wrappers, as far as can be told: counts as absent otherwise. Call it before
// find_presence.
void set_interception_complete(bool complete);

}  // namespace thalweg
