#include "plan/set_up.h"

#include "base/log.h"
#include "plan/communicator.h"
#include "plan/requests.h"
#include "transport/mpi/error_handler.h"

namespace thalweg {

namespace {

// Equal on all ranks: of a process that has agreed on a world, or of none yet.
bool sleeps() {
    const World* const world = World::get();
    return world != nullptr && world->sleeps();
}

}  // namespace

// With naps between its tests.
int complete(MPI_Request& request) {
    const Host& mpi = *host();
    std::uint64_t began_ns = 0;
    for (int done = 0;;) {
        const int error = mpi.Test(&request, &done, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS || done) return error;
        began_ns = pause_between(began_ns);
    }
}

int combine_words(const std::uint64_t* own, std::uint64_t* all, int count, MPI_Op operation, MPI_Comm comm) {
    const Host& mpi = *host();
    if (!sleeps()) return mpi.Allreduce(own, all, count, mpi.uint64, operation, comm);
    MPI_Request request;
    const int error = mpi.Iallreduce(own, all, count, mpi.uint64, operation, comm, &request);
    return error != MPI_SUCCESS ? error : complete(request);
}

int hand_out_words(std::uint64_t* words, int count, int root, MPI_Comm comm) {
    const Host& mpi = *host();
    if (!sleeps()) return mpi.Bcast(words, count, mpi.uint64, root, comm);
    MPI_Request request;
    const int error = mpi.Ibcast(words, count, mpi.uint64, root, comm, &request);
    return error != MPI_SUCCESS ? error : complete(request);
}

void keep_early(World& world, int (*creations_arrive)(void)) {
    if (world.settings().setup != SetupSetting::early) return;
    std::uint64_t missing[1] = {creations_arrive() == 0};
    agree_on(host()->comm_world, host()->max, missing);
    if (missing[0] == 0) return;
    world.ignore_early();
    if (world.rank() == 0)
        THALWEG_LOG_AT(warn, "THALWEG_SETUP=early is ignored: a tool in front makes communicators past us");
}

int give_up_on(MPI_Comm comm, const AgreementFailed& failure) {
    THALWEG_LOG_AT(error, "MPI failed on this rank alone while ranks agreed how to go on; they cannot");
    if (Communicator* const communicator = Communicator::existing(comm))
        communicator->broken = communicator->out_of_step = true;
    call_error_handler(comm, failure.error);
    return failure.error;
}

}  // namespace thalweg
