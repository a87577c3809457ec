// One rank's part of an operation, from its start to the moment its data is where the program wants it. What
// it needs of the program's communicator and datatype it holds itself: both may be freed meanwhile.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/status.h"
#include "plan/lane.h"
#include "plan/payload.h"
#include "plan/plan_account.h"
#include "plan/staging.h"

namespace thalweg {

// What of a buffer belongs to one rank: `count` elements of `type`, the first one `displacement` bytes behind
// the start.
struct Segment {
    std::uint64_t count = 0;
    std::int64_t displacement = 0;
    MPI_Datatype type{};

    bool operator==(const Segment&) const = default;
};

// A buffer of the program as packed bytes in host memory: its own where it is one run of them, else staged.
class ProgramBuffer {
  public:
    ProgramBuffer() = default;
    ~ProgramBuffer();
    ProgramBuffer(const ProgramBuffer&) = delete;
    ProgramBuffer& operator=(const ProgramBuffer&) = delete;

    // To be called first, where the other ranks are in the operation whether this one has memory or not: what
    // the system has no memory to stage goes to that of last resort (plan/reserve.h), if it is not too much.
    void may_borrow() { may_borrow_ = true; }
    // Pre: bytes = count × the type's size. Errors: invalid_argument (no memory where one run of bytes is
    // expected: wrong on this rank, and so for MPI on all of them), out_of_memory, transport_failed.
    // `lasting`: beyond the program's call, so that the type may be freed meanwhile and is held where it is
    // needed later. `copied`: staged in any case.
    Status attach(void* buffer, std::uint64_t bytes, std::uint64_t count, MPI_Datatype type, bool lasting,
                  bool copied = false);
    // Of several segments, which do not overlap where they are written: `blocks` says where each is in
    // data(). Throws std::bad_alloc.
    Status attach(void* buffer, std::vector<Segment> segments, std::vector<Block>& blocks,
                  bool copied = false);
    // After that: the segments that have a peer travel from and to the program's memory itself, as messages
    // of `lane`, as far as it can do that, and are neither loaded nor stored any more; those whose peer is
    // negative stay as they are. `lasting`: in every run of a persistent operation. Throws std::bad_alloc.
    void send_in_place(Lane& lane, const std::vector<int>& peers, bool lasting);
    // The lane knows the segments no more. Pre: nothing of this buffer is under way.
    void leave(Lane& lane);
    std::byte* data() const { return data_; }
    // Some of it is packed before or unpacked after each run.
    bool staged() const { return staged_ != nullptr && !all_in_place_; }
    // Bytes [from, to) of data() between there and the program's memory, where that is not the same. Makes
    // MPI calls.
    Status load(std::uint64_t from, std::uint64_t to);
    Status load() { return load(0, bytes_); }
    // `gaps`: parts of data() at the ends of segments, which stay what they are in the program's memory.
    Status store(std::span<const Slice> gaps = {}, std::span<const Slice> more_gaps = {});
    // Frees what it holds. Makes MPI calls.
    void release();

    // Of several segments: another run from and to the same memory needs nothing of MPI.
    bool repeatable() const { return !payload_ && held_.empty() && borrowed_ == nullptr; }
    // No driver has the memory now; a later one may have been given the same addresses.
    bool on_host() const;
    // Of staging memory that its runs may touch, in bytes: pages that stay while it does.
    std::uint64_t touched_bytes() const { return staged_ == nullptr ? 0 : bytes_ - untouched_bytes_; }

  private:
    Status hold(MPI_Datatype& type);
    Status stage();
    void give_stage_back();
    std::byte* elements_of(const Segment& segment) const;
    template <typename Move>
    Status each_segment(std::uint64_t from, std::uint64_t to, Move move);

    Staging no_staging_;
    std::optional<Payload> payload_;  // of one segment
    void* buffer_ = nullptr;
    std::vector<Segment> segments_;  // of several, where they are staged
    // How their elements lie; null: MPI packs them, or a driver copies them, and their type is held.
    std::vector<std::shared_ptr<const Layout>> layouts_;
    std::vector<Block> blocks_;
    std::vector<bool> in_place_;  // of several: travels by itself; empty: none does
    bool all_in_place_ = false;
    struct Held {
        MPI_Datatype original, own;
    };
    std::vector<Held> held_;
    std::byte* data_ = nullptr;
    std::byte* staged_ = nullptr;
    bool may_borrow_ = false;
    std::unique_ptr<std::byte[]> borrowed_;  // what is staged then
    const void* asked_at_ = nullptr;         // whose memory it is was asked of this address
    std::uint64_t bytes_ = 0;
    std::uint64_t untouched_bytes_ = 0;  // of what is staged: what is not packed on its way between hosts
};

struct ExchangeKey;
class PlanRequest;

class Ongoing {
  public:
    // One schedule of the operation, on the bytes from `begin`.
    struct Part {
        std::unique_ptr<Run> run;
        std::uint64_t begin = 0;
        std::uint32_t number = 0;  // of the operation on the lane, where it has one of its own
    };
    struct Options {
        std::shared_ptr<Lane> lane;
        std::shared_ptr<CommunicatorRecord> record;
        Tally* tally = nullptr;  // in `record`
        WaitPolicy policy = WaitPolicy::spin;
        std::uint64_t bytes = 0;
        // Of the buffer that is both: bytes of it that are needed at the start, and whether it is written.
        std::uint64_t loads_from = 0, loads_to = 0;
        bool stores = false;
        bool persistent = false;
        bool numbered = false;  // its parts have numbers of their own; else the lane counts
        // Nobody advances it but calls that complete requests, or ask after them; a poll waits for nobody.
        bool unattended = false;
        Reducer reducer = {};
        std::shared_ptr<PlanAccount> account = {};  // of a persistent one; may be null
        std::shared_ptr<PlanRequest> request = {};  // of a persistent one that has been promised its own
        // What it may be used for again; null: it is not.
        std::shared_ptr<const ExchangeKey> kept_as = {};
    };
    // finish() has been called, or the lane has failed, before it is destroyed.
    explicit Ongoing(Options options) : options_(std::move(options)) {}
    ~Ongoing();
    Ongoing(const Ongoing&) = delete;
    Ongoing& operator=(const Ongoing&) = delete;

    // To be completed before it is started.
    Options& options() { return options_; }
    // What is only read, where the operation has that; and what is written, or both.
    ProgramBuffer& input() { return input_; }
    ProgramBuffer& buffer() { return buffer_; }
    std::vector<Part>& parts() { return parts_; }

    // Its messages are the transport's to expect until it is released (Transport::expect): so that starts of
    // a persistent one take no memory. Pre: it has its parts.
    void expect_messages();
    // Starts it. Nonblocking: once; persistent: again and again, each time after finish(). What goes wrong
    // here finish() says as well.
    Status start();
    // Starts it and waits for it, without the agent: then finish() may be called.
    void run();
    // Loads only. False: finish() may be called.
    bool pending() const;
    // Drives it for a poll; never blocks.
    void help();
    // Blocks until it is not pending, or the clock has passed until_ns. False: it is pending. `goes_on`: as
    // of DrivenChannel::wait.
    bool wait(std::uint64_t until_ns = DrivenChannel::forever_ns, bool goes_on = false);
    // Whether both are driven on one lane.
    bool shares_lane(const Ongoing& other) const { return options_.lane == other.options_.lane; }
    // Puts the data in its place and gives back what the run does not need any more; the MPI error code of
    // what went wrong. Pre: started and not pending. Makes MPI calls. By one thread.
    int finish();
    // Gives back everything. Pre: not pending. Makes MPI calls.
    void release();
    // Keeps for its lane's next calls what one that is repeated can use again; else destroys it. Pre:
    // finish() was called. Makes MPI calls.
    static void retire(std::unique_ptr<Ongoing> ongoing);
    // One that was kept, on its lane again. False: its memory is not what it was.
    bool resume(std::shared_ptr<Lane> lane);
    // One that was kept and is not needed: `lane`, whose it was, forgets its memory and has its runs again.
    void leave(Lane& lane);
    // Memory that goes with it while it is kept, in bytes.
    std::uint64_t footprint_bytes() const;

  private:
    bool repeatable() const;
    void load();
    Status store();
    std::uint32_t number_of(const Part& part);
    Bindings bindings_of(const Part& part);
    template <typename Visit>
    void for_receives(Visit visit);
    void forgo_messages();
    // `waited`: how, in a call that waits; else null.
    void count_call(std::uint64_t since_ns, bool starts, const WaitStatistics* waited);

    Options options_;
    ProgramBuffer input_, buffer_;
    std::vector<Part> parts_;
    Status status_ = Status::ok;
    bool expects_ = false;
    std::atomic<std::uint64_t> run_ns_{0};  // of this run, in calls of ours
};

}  // namespace thalweg
