// Messages from and to elements that are no single run of memory, by way of memory that stands for them.
#include <algorithm>
#include <random>

#include "job.h"

namespace thalweg::test {

namespace {

// Elements in memory of their own, every byte of it known.
struct Field {
    std::shared_ptr<const Layout> layout;
    std::uint64_t count = 0;
    Bytes memory;
    std::byte* elements = nullptr;

    Field(Layout shape, std::uint64_t elements_of_it)
        : layout(std::make_shared<const Layout>(std::move(shape))), count(elements_of_it) {
        memory.assign(static_cast<std::size_t>(layout->upper(count) - layout->lower(count)) + 64, untouched);
        elements = memory.data() + 32 - layout->lower(count);
    }
    std::uint64_t bytes() const { return count * layout->size(); }

    static constexpr std::byte untouched{0x5a};
};

// A layout of about `bytes` bytes in all, in `count` elements. Kinds: contiguous with gaps between elements,
// long runs, short ones, irregular ones, and one single run.
constexpr std::uint32_t kinds = 5;
Field field_of(std::uint32_t kind, std::uint64_t bytes, std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto signed_of = [](std::uint64_t number) { return static_cast<std::int64_t>(number); };
    const std::uint64_t gap = random() % 3 * 40;
    switch (kind) {
        case 0:
            return {Layout::strided(1, 2048, 0, signed_of(2048 + gap)), bytes / 2048};
        case 1:
            return {Layout::strided(bytes / 4096, 2048, signed_of(2048 + gap), signed_of(bytes * 2)), 2};
        case 2:
            return {Layout::strided(bytes / 8, 8, signed_of(8 + gap), signed_of(bytes * 20)), 1};
        case 3: {
            std::vector<ByteRun> runs;
            std::int64_t at = 0;
            for (std::uint64_t left = bytes; left != 0;) {
                const std::uint64_t run = std::min<std::uint64_t>(left, 1 + random() % 5000);
                runs.push_back({at, run});
                at += signed_of(run + 1 + random() % 100);
                left -= run;
            }
            std::shuffle(runs.begin(), runs.end(), random);
            return {Layout::list(runs, at), 1};
        }
        default:
            return {Layout::contiguous(8), bytes / 8};
    }
}

}  // namespace

// With everybody at the same time, inside hosts and between them: every kind of elements meets every other
// one.
UCX_CASE(faces) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    REQUIRE(channel->capabilities().stand_ins);
    const int size = job.size();
    REQUIRE(channel->grow(2 * static_cast<Slot>(size)) == Status::ok);
    std::uint32_t operation = 0;
    for (const std::uint64_t bytes : {4096u, 16384u, 20480u, 409600u}) {
        for (std::uint32_t pair = 0; pair < kinds * kinds; ++pair, ++operation) {
            // What stands for the elements: never looked at but by the transport.
            std::vector<Bytes> stand_ins;
            std::vector<Field> sent, received;
            Slot slot = 0;
            const auto seed_of = [&](int from, int to) {
                return operation * 64 + static_cast<std::uint32_t>(from * 8 + to);
            };
            for (int peer = 0; peer < size; ++peer) {
                if (peer == job.rank()) continue;
                sent.push_back(field_of(pair % kinds, bytes, seed_of(job.rank(), peer)));
                received.push_back(field_of(pair / kinds, bytes, seed_of(peer, job.rank()) + 1));
                const Bytes data = pattern(bytes, seed_of(job.rank(), peer));
                sent.back().layout->unpack(sent.back().elements, data.data(), 0, bytes);
                for (Field* field : {&sent.back(), &received.back()}) {
                    stand_ins.emplace_back(bytes);
                    REQUIRE(channel->stand_in({stand_ins.back().data(), bytes, field->layout, field->elements,
                                               false}) == Status::ok);
                }
                std::byte* const from = stand_ins[stand_ins.size() - 2].data();
                std::byte* const to = stand_ins.back().data();
                const SendMode mode = pair % 3 == 0 ? SendMode::synchronous : SendMode::buffered;
                const MessageId id{operation, 0};
                // Half of them find their receive posted.
                if ((operation + static_cast<std::uint32_t>(peer)) % 2 == 0)
                    REQUIRE(channel->post_recv(slot++, peer, id, to, bytes) == Status::ok);
                REQUIRE(channel->post_send(slot++, peer, id, from, bytes, mode) == Status::ok);
                if ((operation + static_cast<std::uint32_t>(peer)) % 2 != 0)
                    REQUIRE(channel->post_recv(slot++, peer, id, to, bytes) == Status::ok);
            }
            finish_sleeping(*channel, slot);
            for (std::size_t i = 0, peer = 0; i < received.size(); ++i, ++peer) {
                peer += peer == static_cast<std::size_t>(job.rank());
                Field expected =
                    field_of(pair / kinds, bytes, seed_of(static_cast<int>(peer), job.rank()) + 1);
                const Bytes data = pattern(bytes, seed_of(static_cast<int>(peer), job.rank()));
                expected.layout->unpack(expected.elements, data.data(), 0, bytes);
                REQUIRE(received[i].memory == expected.memory);
            }
            for (const Bytes& stand_in : stand_ins) channel->end_stand_in(stand_in.data());
        }
    }
    job.barrier();
}

}  // namespace thalweg::test
