// Messages in pieces whose ends may give them different sizes: every one ends where its sender ends it, what
// is longer than its receive is taken off the network, and no order of the ranks stops the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "algorithms/algorithm.h"
#include "engine/group.h"
#include "engine/orderly.h"

namespace thalweg {
namespace {

using test::Bytes;
using test::Group;
using test::GroupOptions;

constexpr std::uint64_t chunk = 8;
constexpr std::uint8_t poison = 0xEE;

std::uint8_t value_of(int from, int to, std::uint64_t i) {
    return static_cast<std::uint8_t>(from * 31 + to * 7 + static_cast<int>(i) * 3 + 1);
}

// What every rank has for every rank, and what that has room for.
class Exchanges {
  public:
    explicit Exchanges(int ranks) : ranks_(ranks), exchanges_(static_cast<std::size_t>(ranks)) {}
    void add(int from, int to, std::uint64_t sent, std::uint64_t room) {
        Exchange &sender = of(from), &receiver = of(to);
        sender.outgoing.push_back({to, in_bytes_, sent});
        receiver.incoming.push_back({from, out_bytes_, room});
        messages_.push_back({from, to, sent, room, in_bytes_, out_bytes_});
        in_bytes_ += sent + 3;
        out_bytes_ += room + 3;
    }
    Exchange& of(int rank) { return exchanges_[static_cast<std::size_t>(rank)]; }

    // Runs it twice; empty, or what is wrong.
    std::string run(const Choice& choice, const GroupOptions& options) {
        Group group(ranks_, options);
        std::vector<std::unique_ptr<Execution>> executions;
        std::vector<Schedule> schedules;
        for (int rank = 0; rank < ranks_; ++rank) {
            Problem problem;
            problem.rank = rank;
            problem.size = ranks_;
            problem.exchange = &of(rank);
            schedules.push_back(build(choice, problem, Topology::single_node(ranks_)));
            executions.push_back(std::make_unique<Execution>(
                std::make_shared<const Schedule>(schedules.back()), group.channel(rank)));
            executions.back()->expect_unequal();
        }
        for (std::uint32_t number = 0; number < 2; ++number)
            if (const std::string wrong = run_once(group, executions, number); !wrong.empty()) return wrong;
        for (int rank = 0; rank < ranks_; ++rank)
            if (group.network().unexpected_bytes(rank) != 0) return "a message is left";
        return {};
    }

  private:
    struct Message {
        int from, to;
        std::uint64_t sent, room, in_at, out_at;
    };

    std::string run_once(Group& group, std::vector<std::unique_ptr<Execution>>& executions,
                         std::uint32_t number) {
        const auto ranks = static_cast<std::size_t>(ranks_);
        std::vector<Bytes> in(ranks, Bytes(in_bytes_ + 1)), out(ranks, Bytes(out_bytes_ + 1, poison));
        for (const Message& message : messages_)
            for (std::uint64_t i = 0; i < message.sent; ++i)
                in[static_cast<std::size_t>(message.from)][message.in_at + i] =
                    value_of(message.from, message.to, i);
        for (std::size_t rank = 0; rank < ranks; ++rank)
            if (failed(executions[rank]->start({in[rank].data(), out[rank].data(), {}}, number)))
                return "cannot be started";
        std::vector<Status> status(ranks, Status::in_progress);
        // Far beyond any run that ends.
        std::size_t running = ranks;
        for (int step = 0; running != 0 && step < 1000000; ++step) {
            const auto rank = static_cast<std::size_t>(group.random()() % ranks);
            if (status[rank] != Status::in_progress) continue;
            status[rank] = executions[rank]->advance();
            running -= status[rank] != Status::in_progress;
        }
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            const bool lost = std::any_of(messages_.begin(), messages_.end(), [&](const Message& message) {
                return static_cast<std::size_t>(message.to) == rank && message.sent > message.room;
            });
            if (status[rank] != (lost ? Status::truncated : Status::ok))
                return "rank " + std::to_string(rank) + " ends with: " + describe(status[rank]);
            if (const std::string wrong = compare(rank, out[rank], *executions[rank]); !wrong.empty())
                return wrong;
        }
        return {};
    }

    std::string compare(std::size_t rank, const Bytes& out, const Execution& execution) const {
        Bytes right(out.size(), poison);
        std::vector<Slice> gaps;
        for (const Message& message : messages_) {
            if (static_cast<std::size_t>(message.to) != rank) continue;
            // Of a lost one the first bytes may have come.
            const std::uint64_t came = std::min(message.sent, message.room);
            for (std::uint64_t i = 0; i < came; ++i)
                right[message.out_at + i] = message.sent > message.room
                                                ? out[message.out_at + i]
                                                : value_of(message.from, message.to, i);
            if (came < message.room)
                gaps.push_back({Buffer::out, message.out_at + came, message.room - came});
        }
        if (out != right) return "rank " + std::to_string(rank) + " has wrong bytes";
        std::vector<Slice> found(execution.gaps().begin(), execution.gaps().end());
        const auto before = [](const Slice& a, const Slice& b) { return a.offset < b.offset; };
        std::sort(found.begin(), found.end(), before);
        std::sort(gaps.begin(), gaps.end(), before);
        return found == gaps ? "" : "rank " + std::to_string(rank) + " has other gaps";
    }

    int ranks_;
    std::vector<Exchange> exchanges_;
    std::vector<Message> messages_;
    std::uint64_t in_bytes_ = 0, out_bytes_ = 0;
};

Choice pairwise(const std::string& parameters) {
    Choice choice;
    std::string why;
    EXPECT_EQ(parse_choice(Collective::alltoallv, "pairwise:" + parameters, choice, why), Status::ok) << why;
    return choice;
}

// Of all networks and limits that these messages could be stopped by.
std::vector<GroupOptions> networks() {
    std::vector<GroupOptions> all;
    for (const std::size_t eager_bytes : {std::size_t{0}, std::size_t{1} << 20})
        for (const std::uint32_t in_flight : {2u, 64u})
            for (const std::uint64_t credit_bytes : {std::uint64_t{300}, std::uint64_t{1} << 20}) {
                GroupOptions options;
                options.network.eager_bytes = eager_bytes;
                options.network.delay_polls = 3;
                options.network.seed = options.seed = all.size() + 1;
                options.limits = {in_flight, credit_bytes};
                all.push_back(options);
            }
    return all;
}

constexpr std::uint64_t sizes[] = {0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 2 * chunk + 1, 5 * chunk};

// Of all sizes and rooms of one message, those that are wanted, beside `back` bytes the other way.
void run_each(std::uint64_t back, bool (*wanted)(std::uint64_t sent, std::uint64_t room)) {
    const Choice choice = pairwise("chunk_bytes=8");
    for (const std::uint64_t sent : sizes)
        for (const std::uint64_t room : sizes) {
            if (!wanted(sent, room)) continue;
            Exchanges pair(2);
            pair.add(0, 1, sent, room);
            pair.add(1, 0, back, back);
            for (const GroupOptions& options : networks())
                ASSERT_EQ(pair.run(choice, options), "") << sent << " bytes, room for " << room;
        }
}

// Of an alltoallv nobody says that nothing comes.
TEST(pieces, any_size_meets_any_room_that_has_a_place_for_it) {
    run_each(2 * chunk, [](std::uint64_t sent, std::uint64_t room) {
        return sent <= room && (sent == 0) == (room == 0);
    });
}

TEST(pieces, one_message_of_no_bytes_follows_whole_pieces_only) {
    for (const std::uint64_t sent : sizes) {
        Exchange exchange;
        exchange.outgoing = {{1, 0, sent}};
        Problem problem;
        problem.size = 2;
        problem.exchange = &exchange;
        const Schedule schedule = build(pairwise("chunk_bytes=8"), problem, Topology::single_node(2));
        std::uint64_t bytes = 0;
        for (const Step& step : schedule.steps()) {
            EXPECT_EQ(step.full_bytes, chunk);
            bytes += step.source.bytes;
        }
        EXPECT_EQ(bytes, sent);
        EXPECT_EQ(schedule.steps().size(), sent == 0 ? 0 : sent / chunk + 1) << sent;
        exchange.sizes_agree = true;
        EXPECT_EQ(build(pairwise("chunk_bytes=8"), problem, Topology::single_node(2)).steps().size(),
                  (sent + chunk - 1) / chunk);
    }
}

TEST(pieces, a_message_longer_than_its_room_is_taken_to_its_end) {
    run_each(5 * chunk, [](std::uint64_t sent, std::uint64_t room) { return sent > room && room != 0; });
}

// Both send much and have little room: what the one still sends the other must not wait for.
TEST(pieces, two_messages_without_room_pass_each_other) {
    Exchanges pair(2);
    pair.add(0, 1, 40 * chunk, 1);
    pair.add(1, 0, 40 * chunk, 1);
    for (const GroupOptions& options : networks())
        for (const char* ahead : {"chunk_bytes=8:ahead=1", "chunk_bytes=8:ahead=2", "chunk_bytes=8:ahead=9"})
            ASSERT_EQ(pair.run(pairwise(ahead), options), "") << ahead;
}

// Several messages of a pair, of no bytes too, as neighbours have them: each keeps its numbers.
TEST(pieces, messages_of_one_pair_do_not_run_into_each_other) {
    for (const std::uint64_t sent : sizes)
        for (const std::uint64_t room : sizes) {
            Exchanges three(3);
            for (int rank = 0; rank < 3; ++rank) three.of(rank).empty_travel = true;
            for (int k = 0; k < 3; ++k) {
                three.add(0, 1, k == 1 ? sent : 3 * chunk, k == 1 ? room : 3 * chunk);
                three.add(1, 0, chunk + 1, 4 * chunk);
                three.add(2, 0, 0, 2 * chunk);
            }
            for (const GroupOptions& options : networks())
                ASSERT_EQ(three.run(pairwise("chunk_bytes=8"), options), "")
                    << sent << " bytes, room for " << room;
        }
}

TEST(pieces, random_exchanges_of_up_to_nine_ranks) {
    std::mt19937_64 random(7);
    for (int seed = 0; seed < 60; ++seed) {
        const int ranks = 2 + static_cast<int>(random() % 8);
        const bool may_be_lost = seed % 3 == 0;
        Exchanges all(ranks);
        for (int from = 0; from < ranks; ++from)
            for (int to = 0; to < ranks; ++to) {
                if (from == to || random() % 3 == 0) continue;
                const std::uint64_t sent = 1 + random() % (8 * chunk);
                const std::uint64_t most = may_be_lost ? 8 * chunk : sent;
                const std::uint64_t room =
                    random() % 4 == 0 ? 1 + random() % most : sent + random() % 3 * (random() % (6 * chunk));
                all.add(from, to, sent, may_be_lost ? room : std::max(room, sent));
            }
        const auto options = networks();
        const Choice choice = pairwise("chunk_bytes=8:ahead=" + std::to_string(1 + random() % 4));
        ASSERT_EQ(all.run(choice, options[static_cast<std::size_t>(seed) % options.size()]), "") << seed;
    }
}

// More pieces than a pair has numbers: the last number is for the rest.
TEST(pieces, the_last_number_is_for_all_that_is_left) {
    const std::uint64_t many = max_messages_per_pair * 2;
    for (const auto& [sent, room] : {std::pair{many, many}, {many, many + 5}, {many, many / 4}}) {
        Exchanges pair(2);
        pair.add(0, 1, sent, room);
        GroupOptions options;
        options.network.eager_bytes = 1 << 20;
        ASSERT_EQ(pair.run(pairwise("chunk_bytes=1"), options), "") << room;
    }
}

}  // namespace
}  // namespace thalweg
