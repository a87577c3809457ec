// One exchange over MPI windows, again and again: what this rank moves to and from which peers is given once,
// then every epoch moves the bytes that are there. No policy, and no name of an operation: plan/ decides what
// is exchanged and owns the windows.
//
// The four ways to synchronise an epoch:
//
//   fence  a collective fence opens the epoch, another one closes it
//   lock   a shared lock on all opens it; between epochs each rank holds its own window exclusively
//   pscw   post, start, complete, wait over the real peers; a message of nothing says that a peer has
//          posted, and the start comes when all have
//   get    the receiver fetches when a message of nothing says that the data is there, and says when it
//          has them; the windows stay locked shared all the time
//
// With fence and lock, which are those of Namugwanya (arXiv 2604.05099), start() and wait() block until other
// ranks have come. With pscw and get start() and test() do not wait for a peer to arrive. A thread may be
// inside one epoch at a time; each rank goes through the same number of epochs.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "transport/mpi/host.h"

namespace thalweg {

enum class EpochWay : std::uint8_t { fence, lock, pscw, get };
inline constexpr std::string_view epoch_way_names[] = {"fence", "lock", "pscw", "get"};

// start() waits for other ranks, so that no persistent request can stand for it as MPI defines one.
constexpr bool start_blocks(EpochWay way) { return way == EpochWay::fence || way == EpochWay::lock; }

// What moves between this rank and one peer, in one direction. Never with oneself, never of 0 bytes.
struct Transfer {
    int peer = 0;
    std::uint64_t offset = 0;  // from the begin of this rank's buffer for that direction
    std::uint64_t bytes = 0;
    MPI_Aint there = 0;  // where it begins in the peer's window; used by the side that reaches out
};

struct EpochPlan {
    MPI_Comm comm{};   // private: carries the messages of nothing; outlives the epochs
    MPI_Win window{};  // of displacement unit 1, over the receive buffer; way `get`: over the send buffer
    int tag = 0;       // and tag + 1: of no other exchange on `comm` at the same time
    const unsigned char* in = nullptr;
    unsigned char* out = nullptr;
    std::vector<Transfer> sends, receives;  // in the order in which they are begun; at most one per peer
    bool meets_first = false;  // way `fence`: everybody meets before the first fence, which the paper does
                               // and the standard does not ask for
};

// Every function returns an MPI error code; after an error the epoch's bytes are undefined.
class Epoch {
  public:
    virtual ~Epoch() = default;
    Epoch(const Epoch&) = delete;
    Epoch& operator=(const Epoch&) = delete;

    // Before the first and after the last epoch, on all ranks of the window. Do not wait for each other,
    // except in close() of a way that blocks.
    virtual int open() { return MPI_SUCCESS; }
    virtual int close() { return MPI_SUCCESS; }

    // The receive buffer is this epoch's from here on, the send buffer may only be read.
    virtual int start() = 0;
    // Does what can be done now. done: both buffers are the caller's again. Ways that block finish here.
    virtual int test(bool& done) = 0;
    // Blocks inside MPI until then.
    virtual int wait() = 0;
    // Between start() and the end: peers' or own bytes may be under way, which a library may move piece by
    // piece as it is called. Where only a peer's word is waited for they are not.
    virtual bool moves() const { return false; }

  protected:
    Epoch(const Host& mpi, EpochPlan plan) : mpi_(mpi), plan_(std::move(plan)) {}
    // To where the transfer lands, in pieces that an int counts.
    int put(const Transfer& transfer) const;

    const Host& mpi_;
    const EpochPlan plan_;
};

// Whether this MPI may put beside a window: MPICH before 4.1 over libucp from 1.13 on takes the begin of
// whatever memory was registered together with a window's for the window's own (pmodels/mpich#6140). Its
// version says nothing of what it runs over.
bool misplaces_windows(const Host& mpi);

// Whether this MPI has every function that the ways need, and windows that can be relied on.
bool has_windows(const Host& mpi);

// Local. Null, with an MPI error code: a request or a group could not be made. Allocates here, and never
// between start() and the end of an epoch.
std::unique_ptr<Epoch> make_epoch(const Host& mpi, EpochWay way, EpochPlan plan, int& error);

}  // namespace thalweg
