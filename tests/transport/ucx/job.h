// A few processes that talk over ucx or shm without an MPI: started here, and introduced to each other
// through the process that started them (or, in a lab, through files).
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transport/composite/composite.h"
#include "transport/shm/shm.h"
#include "transport/ucx/ucx.h"

namespace thalweg::test {

using Bytes = std::vector<std::byte>;

// Ends the process with status 1 and says where.
#define REQUIRE(condition)                                                                                  \
    do {                                                                                                    \
        if (!(condition)) {                                                                                 \
            std::fprintf(stderr, "%s:%d: rank %d: not so: %s\n", __FILE__, __LINE__, job_rank, #condition); \
            std::_Exit(1);                                                                                  \
        }                                                                                                   \
    } while (false)

extern int job_rank;
// What carries the messages: "ucx", "shm", or "composite": two ranks are a host each, ranks 0 and 1, 2 and 3.
extern std::string job_carrier;
// UcxOptions::protocol.
extern std::string job_between;
// Of ucx alone: channels stand in for elements.
extern bool job_packs;

class Job {
  public:
    Job(int rank, int size, int socket, std::string folder)
        : rank_(rank), size_(size), socket_(socket), folder_(std::move(folder)) {}
    int rank() const { return rank_; }
    int size() const { return size_; }
    // What every rank gave, in the order of ranks; also a barrier. Empty for a rank that has died.
    // `meanwhile` is called again and again until all are there.
    std::vector<Bytes> exchange(const Bytes& mine, const std::function<void()>& meanwhile = {});
    void barrier(const std::function<void()>& meanwhile = {}) { exchange({}, meanwhile); }

  private:
    int rank_, size_;
    int socket_;          // to the starter; -1: exchange by files
    std::string folder_;  // for those
    int round_ = 0;
};

// A job's port, with everybody's address.
struct Node {
    // `options` says what differs from one rail, no host key, and the place in `job`; those of shm, too.
    explicit Node(Job& job, UcxOptions options = {}, ShmOptions shm_options = standard_shm);
    // A channel over `members` (process numbers; empty: all), named `name`.
    std::unique_ptr<Transport> channel(UcxChannelName name, OperationSpace space = OperationSpace::calls,
                                       const std::vector<std::uint32_t>* members = nullptr);
    // As those of the port.
    Status make_channel(const UcxGroup& group, std::unique_ptr<Transport>& made);
    Status name_channel(UcxChannelName& name);
    void give_back(UcxChannelName name);
    // Of a composite: on the same host.
    bool is_near(int process) const;

    static ShmOptions standard_shm;  // as the case's arguments say
    Job& job;
    Bytes table;
    std::vector<std::uint64_t> offsets;
    std::unique_ptr<UcxPort> port;  // null where the carrier is shm
    std::unique_ptr<ShmPort> shm;   // null where it is ucx
    std::vector<Bytes> shm_addresses;
    Junction junction;
};

// What a node's memory has carried to and from a process; and by how many messages of a protocol, 0 where it
// is none.
ShmAccount account_of(Node& node, int process);
std::uint64_t messages_by(const ShmAccount& account, const std::string& protocol);

// Exchanges empty messages with every peer. The first message of a pair needs both ends to poll; later ones
// do not. Uses operation 4294967295 of the channel.
void connect(Transport& channel);

// Polls, or sleeps on the descriptor, until `count` slots have come back. In the order in which they came.
std::vector<Slot> finish(Transport& channel, std::size_t count);
std::vector<Slot> finish_sleeping(Transport& channel, std::size_t count, int* sleeps = nullptr);
// As finish, but gives up with the first error, or with in_progress after `seconds`.
Status finish_or_fail(Transport& channel, std::size_t count, double seconds, bool sleeping);

// Bytes that depend on their place and on `seed`; and whether they are those.
Bytes pattern(std::size_t bytes, std::uint32_t seed);
bool is_pattern(const Bytes& bytes, std::uint32_t seed);

double seconds_now();
double cpu_seconds();  // of this process, all threads

using Arguments = std::map<std::string, std::string>;
std::uint64_t number(const Arguments& arguments, const std::string& name, std::uint64_t standard);

// Every case is run by all ranks; a rank that returns has passed.
using Case = void (*)(Job& job, const Arguments& arguments);
#define UCX_CASE(name) void name(Job& job, [[maybe_unused]] const Arguments& arguments)
#define UCX_CASES(CASE) \
    CASE(messages)      \
    CASE(at_once)       \
    CASE(order)         \
    CASE(operations)    \
    CASE(channels)      \
    CASE(rounds)        \
    CASE(wrong_size)    \
    CASE(puts)          \
    CASE(rails)         \
    CASE(threads)       \
    CASE(driver)        \
    CASE(sleeping)      \
    CASE(glance)        \
    CASE(bell)          \
    CASE(killed)        \
    CASE(killed_asleep) \
    CASE(left)          \
    CASE(unchanged)     \
    CASE(copies)        \
    CASE(forked)        \
    CASE(exits)         \
    CASE(many)          \
    CASE(stream)        \
    CASE(protocol)      \
    CASE(refused)       \
    CASE(refused_later) \
    CASE(arena)         \
    CASE(shuffle)       \
    CASE(nonsense)      \
    CASE(mix)           \
    CASE(even)          \
    CASE(late)          \
    CASE(both_ways)     \
    CASE(faces)         \
    CASE(held)          \
    CASE(held_no_more)  \
    CASE(given_up)      \
    CASE(greeted)       \
    CASE(recalled)      \
    CASE(secret)        \
    CASE(steered)       \
    CASE(speed)
#define UCX_DECLARE(name) UCX_CASE(name);
UCX_CASES(UCX_DECLARE)
#undef UCX_DECLARE

}  // namespace thalweg::test
