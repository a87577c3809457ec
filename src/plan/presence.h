// Which ranks of the job have us, found without a message that a receive of the user could match and without
// any help from ranks that do not have us: through the launcher's key-value store (launcher_store.h).
//
// A rank leaves its word there before the barrier inside the native MPI_Init; afterwards a word is there or
// will never be. So nobody waits for anybody, and no answer depends on time. Each rank reads the words of its
// own circle, the children of one node of a tree and that node; in a job no larger than a circle that is all.
// In a larger one the circles that are complete tell each other over communicators of their own (never over
// the world, whose other ranks would have to take part).
#pragma once

#include <cstdint>

namespace thalweg {

enum class Presence {
    all,      // every rank of MPI_COMM_WORLD has us, in this version, and its calls reach us
    some,     // at least one has not: every rank that has us learns so
    unknown,  // the launcher has no store that we can use; every rank that has us gets this answer
};

// What to do in the last case: believe the user that all ranks have us. The first message between ranks then
// hangs if one has not.
enum class WithoutStore { pass_through, assume_all };

// Before the native MPI_Init or MPI_Session_init, whichever is first: the barrier may be inside either.
// Local; does nothing after the first call.
void announce_presence();

// Before announce_presence(): this rank leaves no word in a store of the launcher that it would come too late
// for. `why` is static, one clause. PMIx is not concerned: there the word goes with the library's own,
// whenever that is.
void stay_absent(const char* why);

// Inside the native MPI_Init, before it commits to PMIx: does the same where announce_presence() found no
// store, and nothing at any other time. Local.
void announce_while_committing();

// After the native MPI_Init or MPI_Session_init, at once: ends what announce_presence() began beside it.
// Local.
void settle_presence();

// After the native MPI_Init, once, by every rank that has us. `all`, `some` and `unknown` are the same on all
// of them, and only `all` allows anything collective. A store that worked before and fails now, and a
// rank that does not answer the others within agreement_ns_standard, end with an MPI error on the world:
// the others may rely on this rank. Without a store it is the user's word that
// counts, if `without_store` says so; it must be the same on all ranks.
Presence find_presence(WithoutStore without_store = WithoutStore::pass_through);

// Whether this rank is the one to tell the user, after an answer that was not `all`: one rank of a small job,
// a few of a large one.
bool presence_speaks();

// Why the last answer was not `all`, one clause for a log line; static storage.
const char* presence_reason();

// Whether this rank's calls reach our wrappers, as far as that can be told; a rank whose calls do not counts
// as absent. Call it before find_presence.
void set_interception_complete(bool complete);

// Whether the calls with large counts have wrappers here: those are in an object of their own. Call it before
// World::agree(), which leaves every call to the MPI library where only some ranks have them.
void set_large_forms_wrapped(bool wrapped);
bool large_forms_wrapped();

// Children per node of the tree; small numbers let a test see a tree with few ranks.
inline constexpr int circle_width_standard = 32;
void set_circle_width(int width);

// How long ranks wait for one that has left its word; a test has less time.
inline constexpr std::uint64_t agreement_ns_standard = 30'000'000'000;
void set_agreement_ns(std::uint64_t limit_ns);

}  // namespace thalweg
