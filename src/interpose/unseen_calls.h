/* Calls that our optional objects would see, had they been loaded. */
#ifndef THALWEG_INTERPOSE_UNSEEN_CALLS_H
#define THALWEG_INTERPOSE_UNSEEN_CALLS_H

namespace thalweg {

// Whether this process may have opened a session that did not reach us: some object of it other than an MPI
// library calls MPI_Session_init, and the preload object with that name is not loaded. Programs that look the
// name up at run time are not recognised. Milliseconds at most.
bool may_open_sessions_unseen();
// The same of the younger forms of MPI_Request_get_status: a program that asks by these alone, until its
// operation is complete, asks for ever where nobody completes ours for it.
bool may_ask_unseen();
// Whether some object of this process calls what we wrap by Fortran's names without an underscore, which no
// object of ours has. A library in C that has such a function of its own, and calls that, does not count.
bool may_call_by_plain_names();
// Whether some object of this process calls MPIX_Comm_revoke, or what it is called in other versions and in
// Fortran.
bool may_revoke_communicators();

}  // namespace thalweg

#endif
