// Communicators that sessions make, and those that are made of them. Nothing orders what a program does on
// one with its MPI_Init: one thread may call collectives while another initialises the world, and a
// nonblocking one may be started in front of MPI_Init on one rank and behind it on another. What a rank
// counts from MPI_Init on, for what all ranks decide alike, would be other numbers on other ranks.
//
// So the ranks agree in MPI_Init whether any of them had begun to make such a communicator. If so, they and
// whatever is made of them are the native library's on all ranks, for good: they have a mark, which their
// descendants inherit. Where they are the library's, so is what is merged of two groups, whoever they are:
// ranks that met by MPI_Comm_accept do not know what the others are.
//
// Else all of them are begun behind MPI_Init, on every rank, and are as any other but for one thing: they may
// live longer than the world. What does not block may be started in front of MPI_Finalize on one rank and
// behind it on another, and be completed behind it, and a plan may be started there, when nothing of ours
// advances it any more. So that is the native library's, where any rank of the communicator knows of the
// mark: they ask one another as they set it up. Any thread.
#pragma once

#include <mpi.h>

namespace thalweg {

class SessionCommunicators {
  public:
    // Around the native call that makes one: begins() says whether the ranks already agree, or have agreed,
    // which made() is told. Where they still do, made() waits until they have: they are all in MPI_Init then,
    // and wait for nobody else.
    static bool begins();
    static void made(bool begun_late, MPI_Comm comm);
    // `comm` was made of `parent`'s ranks, on some of them at least. MPI_Comm_dup and its like need not say
    // so.
    static void descends(MPI_Comm parent, MPI_Comm comm);
    // Both: one load where there is none.
    static bool are_native(MPI_Comm comm);
    // On this rank: of two groups that met, only one may know.
    static bool may_outlive_world(MPI_Comm comm);

    // In MPI_Init, when all ranks are in it: whether this one had begun to make any. Once.
    static bool close();
    // Whether one of the ranks had. Once; before it this rank's are the native library's.
    static void settle(bool any_rank);
    // MPI_Init is over on this rank, whatever came of it.
    static void end_of_init();
    // No session is open, nor the world: what comes is of a library that begins anew.
    static void begin_anew();
};

}  // namespace thalweg
