// What carries messages past the MPI library: libucp between hosts, and the memory of the host inside it.
// Each is opened once in a process, for the first communicator that wants it, and learns the ranks' addresses
// from there.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "plan/world.h"
#include "transport/mpi/rank_map.h"
#include "transport/shm/shm.h"

namespace thalweg {

class Topology;
class UcxPort;

class Ports {
  public:
    // Local. Null where it cannot be used (account() says why), or was closed already. `rails`: the devices
    // that all ranks found alike, or null; read during the call only.
    static UcxPort* open_ucx(const World& world, const std::vector<std::string>* rails);
    static ShmPort* open_shm(const World& world);
    // Null until it was opened, and after close(). One load.
    static UcxPort* ucx();
    static ShmPort* shm();

    // Whether the port has the addresses of all ranks of a communicator of `size`, or of those on this rank's
    // host; `places` are their ranks in the world. Local.
    static bool knows_all(const UcxPort& port, const RankMap& places, int size);
    // Whether this process may still open what connections to all of them take. Local; says why not.
    static bool has_room_for(const UcxPort& port, const RankMap& places, int size);
    static bool knows_neighbours(MPI_Comm comm, const ShmPort& port, const RankMap& places,
                                 const Topology& topology);
    // Tells every rank of `comm` the address of every other (address_book.h); maps the memory of every rank
    // on this host, one small allgather. Collective over `comm`, with an answer of each rank's own: whether
    // all went well here. Throws std::bad_alloc.
    static bool exchange_addresses(MPI_Comm comm, UcxPort& port, const RankMap& places,
                                   const Topology& topology);
    static bool meet_neighbours(MPI_Comm comm, ShmPort& port, const RankMap& places,
                                const Topology& topology);
    // Whether the memory of this host serves so many, and this process may still open and map what that
    // takes. Local; why_not_shm of account() says why not.
    static bool has_room_for_neighbours(MPI_Comm comm, const ShmPort& port, const RankMap& places,
                                        const Topology& topology);
    // Whether libucp finds a way to the next rank on another host and, where messages `inside` are its as
    // well, to the next one on this host. A job's environment may name devices or transports that are not
    // here; each rank finds that with its next ones, whichever these are. Local. Pre: it knows all ranks.
    static bool reaches_others(MPI_Comm comm, UcxPort& port, const RankMap& places, const Topology& topology,
                               bool inside);
    // From now on open_ucx() gives none, with this reason where there is none yet. What uses it goes on.
    static void forgo_ucx(const char* why);

    // What THALWEG_INSIDE says now becomes effective, where the memory of the host is in use. Any thread.
    static void obey(const World& world);

    // For good; no lane may be left.
    static void close();

    // For the report. Empty where there is none.
    struct Account {
        std::string libucp;     // its version and rails
        std::string addresses;  // how many it has been told of, and whose memory has them
        std::string why_not_libucp;
        // Of messages inside the host: what they go through, or why not; how those of each peer went.
        std::string shm, why_not_shm;
        std::vector<ShmAccount> shm_peers;
    };
    static Account account();
};

}  // namespace thalweg
