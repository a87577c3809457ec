// The engine over MPI itself, without the preload objects: `mpiexec -n P test_mpi_transport_X CASE
// [arguments]`. Rank 0 prints what failed; the exit status says so too.
#include <mpi.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "algorithms/algorithm.h"
#include "engine/random_schedules.h"
#include "transport/mpi/host.h"
#include "transport/mpi/mpi_transport.h"
#include "transport/require.h"
#include "transport/saboteur/saboteur.h"

namespace thalweg {
namespace {

using test::Bytes;
using test::fail;
using test::Memory;
using test::RandomGroup;

// A channel of its own over all ranks, made with a private communicator as plan/ does.
struct World {
    int rank = 0, size = 1;
    MPI_Comm comm = MPI_COMM_NULL;
    std::unique_ptr<MpiTransport> mpi;
    std::unique_ptr<Transport> saboteur;
    std::shared_ptr<Channel> channel;
    std::uint32_t operation = 0;
    WaitStatistics statistics;

    explicit World(const Limits& limits = {}, Slot slots = 256) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm);
        int error = 0;
        mpi = MpiTransport::make(comm, slots, error);
        REQUIRE(mpi, "make: MPI error %d", error);
        rank = mpi->rank();
        size = mpi->size();
        Transport* transport = mpi.get();
        if (const auto options = saboteur_options_from_environment()) {
            saboteur = make_saboteur(*mpi, *options);
            transport = saboteur.get();
        }
        channel = make_channel(*transport, limits);
    }
    ~World() { MPI_Comm_free(&comm); }

    Status run(Execution& execution, const Bindings& bindings, WaitPolicy policy) {
        const Status status = execution.start(bindings, operation++);
        return status == Status::ok ? wait(execution, policy, statistics) : status;
    }
};

WaitPolicy policy_of(std::uint64_t number) { return number % 4 == 0 ? WaitPolicy::spin : WaitPolicy::sleep; }

// Every rank plays the whole group's list, so it knows what its own memory must hold.
void random_schedules() {
    for (std::uint32_t in_flight : {2u, 64u}) {
        Limits limits;
        limits.in_flight = in_flight;
        limits.credit_bytes = in_flight == 2 ? 4096 : 1 << 20;
        World world(limits, in_flight);
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            const std::uint64_t largest_bytes = seed % 5 == 0 ? 300'000 : 400;
            const RandomGroup random = RandomGroup::make(world.size, 40, largest_bytes, seed);
            Execution execution(random.build()[world.rank], world.channel);
            for (int run = 0; run < 2; ++run) {
                Memory memory = random.fill(seed + 1000 * run);
                Memory expected = memory;
                random.play(expected);
                const Bindings bindings{memory.in[world.rank].data(),
                                        memory.out[world.rank].data(),
                                        {&RandomGroup::combine, nullptr, 1}};
                const Status status = world.run(execution, bindings, policy_of(seed));
                REQUIRE(status == Status::ok, "seed %d: %s", static_cast<int>(seed), describe(status));
                REQUIRE(memory.out[world.rank] == expected.out[world.rank],
                        "seed %d: rank %d has wrong bytes", static_cast<int>(seed), world.rank);
            }
        }
    }
}

// Every broadcast of the registry, with its standard parameters, at sizes around its chunks. (What the engine
// does with the other collectives is tested without MPI; a transport sees messages alone.)
void registered_algorithms() {
    World world;
    for (const Algorithm& algorithm : algorithms()) {
        if (algorithm.collective != Collective::bcast) continue;
        for (std::uint64_t bytes : {0ull, 1ull, 4099ull, 300'001ull}) {
            Problem problem{world.rank, world.size, world.size / 2, bytes};
            const Topology topology = Topology::single_node(world.size);
            const Choice choice = standard_choice(algorithm);
            if (!algorithm.refuse(problem, topology, choice).empty()) continue;
            auto schedule = std::make_shared<const Schedule>(algorithm.build(problem, topology, choice));
            Execution execution(schedule, world.channel);
            Bytes data(bytes + 1), expected(bytes + 1);
            for (std::uint64_t i = 0; i < bytes; ++i)
                expected[i] = static_cast<std::uint8_t>(i * 2654435761u >> 13);
            data.back() = expected.back() = 0x5a;
            for (std::uint64_t i = 0; i < bytes; ++i)
                data[i] = world.rank == problem.root ? expected[i] : ~expected[i];
            const Status status = world.run(execution, {nullptr, data.data(), {}}, policy_of(bytes));
            REQUIRE(status == Status::ok, "%.*s: %s", static_cast<int>(algorithm.name.size()),
                    algorithm.name.data(), describe(status));
            REQUIRE(data == expected, "%.*s: wrong bytes at %d bytes",
                    static_cast<int>(algorithm.name.size()), algorithm.name.data(), static_cast<int>(bytes));
        }
    }
}

std::shared_ptr<const Schedule> star(const World& world, int root, std::uint64_t bytes) {
    Builder builder(world.rank, world.size);
    for (int rank = 0; rank < world.size; ++rank) {
        if (rank != root && world.rank == root) builder.send(rank, {Buffer::out, 0, bytes});
        if (rank != root && world.rank == rank) builder.recv(root, {Buffer::out, 0, bytes});
    }
    return std::make_shared<const Schedule>(std::move(builder).finish());
}

// Bytes no two neighbourhoods of which are alike, so that damage and displacement show; the same on all
// ranks.
Bytes noise(std::size_t bytes, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Bytes data(bytes);
    test::draw(data, random);
    return data;
}

// Rank 1 is in a large MPI_Send to rank 0 before it joins; rank 0 waits for it in ours and must move that
// message.
void stuck_sender() {
    // What arrives is 1 MiB: as root, rank 0 would be done at once with a message that is sent eagerly.
    constexpr std::size_t joined_bytes = 1 << 20;
    World world;
    REQUIRE(world.size == 2, "2 ranks, please");
    std::uint64_t seed = 0;
    for (WaitPolicy policy : {WaitPolicy::spin, WaitPolicy::sleep}) {
        for (int bytes : {1 << 16, 1 << 20, 1 << 24}) {
            for (int root : {0, 1}) {
                const Bytes expected = noise(joined_bytes, ++seed);
                const Bytes program = noise(bytes, ++seed);
                Bytes data = world.rank == root ? expected : Bytes(joined_bytes);
                Bytes large = world.rank == 1 ? program : Bytes(bytes);
                Execution execution(star(world, root, joined_bytes), world.channel);
                MPI_Request request;
                if (world.rank == 0) MPI_Irecv(large.data(), bytes, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &request);
                if (world.rank == 1) MPI_Send(large.data(), bytes, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
                REQUIRE(world.run(execution, {nullptr, data.data(), {}}, policy) == Status::ok, "run failed");
                REQUIRE(data == expected, "wrong bytes");
                if (world.rank == 0) {
                    MPI_Wait(&request, MPI_STATUS_IGNORE);
                    REQUIRE(large == program, "wrong bytes in the program's own message");
                }
            }
        }
    }
}

// Both a longer and a shorter message than its receive are a mismatch, not a crash or silence.
void wrong_size() {
    // MPICH gives what Testsome finds to the world's handler, whatever communicator it happened on.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (std::uint64_t sent : {50, 200}) {
        auto* world = new World;  // its channel is unusable afterwards, and its communicator is left alone
        REQUIRE(world->size == 2, "2 ranks, please");
        Bytes data(200);
        Execution execution(star(*world, 0, world->rank == 0 ? sent : 100), world->channel);
        const Status status = world->run(execution, {nullptr, data.data(), {}}, WaitPolicy::sleep);
        if (world->rank == 0) REQUIRE(status == Status::ok, "sender: %s", describe(status));
        if (world->rank == 1) REQUIRE(status == Status::mismatch, "receiver: %s", describe(status));
        REQUIRE(world->rank == 0 || sent == 50 || world->mpi->last_error() != MPI_SUCCESS,
                "no MPI error code");
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// Operation numbers go past what a tag holds, and past 2^32.
void tags_wrap() {
    World world;
    const std::uint32_t live = world.mpi->capabilities().live_operations;
    REQUIRE(live >= 2 && (live & (live - 1)) == 0, "live_operations %u", live);
    std::uint32_t data = 0;
    Execution execution(star(world, 0, sizeof data), world.channel);
    for (std::uint32_t first : {live - 300, 0u - 300}) {
        world.operation = first;
        for (std::uint32_t i = 0; i < 600; ++i) {
            data = world.rank == 0 ? i : ~0u;
            REQUIRE(world.run(execution, {nullptr, &data, {}}, WaitPolicy::sleep) == Status::ok,
                    "run failed");
            REQUIRE(data == i, "rank %d: operation %u brought %u", world.rank, i, data);
        }
    }
}

std::uint64_t status_kib(const char* field) {
    std::FILE* file = std::fopen("/proc/self/status", "r");
    char line[256];
    std::uint64_t kib = 0;
    while (file && std::fgets(line, sizeof line, file)) {
        if (std::strncmp(line, field, std::strlen(field)) == 0)
            kib = std::strtoull(line + std::strlen(field), nullptr, 10);
    }
    if (file) std::fclose(file);
    return kib;
}

void sleep_seconds(double seconds) {
    timespec span{static_cast<time_t>(seconds),
                  static_cast<long>((seconds - static_cast<time_t>(seconds)) * 1e9)};
    nanosleep(&span, nullptr);
}

// A root that broadcasts without pause while the last rank sleeps: nobody's memory grows by more than 16 MiB.
void soak(std::uint64_t bytes, std::uint64_t operations, double sleep) {
    constexpr std::uint64_t allowed_kib = 16 * 1024;
    World world;
    // Operation i carries table[i % shifts …]: every one differs from the one before, at no cost.
    constexpr std::uint64_t shifts = 251;
    const Bytes table = noise(bytes + shifts, 1);
    Bytes data(bytes);
    Execution execution(star(world, 0, bytes), world.channel);
    auto run = [&](std::uint64_t i) {
        const std::uint8_t* expected = table.data() + i % shifts;
        // The root only reads.
        void* out = world.rank == 0 ? const_cast<std::uint8_t*>(expected) : data.data();
        const Status status = world.run(execution, {nullptr, out, {}}, WaitPolicy::sleep);
        REQUIRE(status == Status::ok, "operation %d: %s", static_cast<int>(i), describe(status));
        REQUIRE(std::memcmp(out, expected, bytes) == 0, "rank %d: wrong bytes", world.rank);
    };
    // What MPI sets up on first use is not growth.
    for (int i = 0; i < 50; ++i) run(i);
    MPI_Barrier(MPI_COMM_WORLD);
    const std::uint64_t before_kib = status_kib("VmRSS:");
    for (std::uint64_t i = 0; i < operations; ++i) {
        if (world.rank == world.size - 1 && (i == 0 || i == operations / 2)) sleep_seconds(sleep);
        run(i);
    }
    const std::uint64_t peak_kib = status_kib("VmHWM:");
    const std::uint64_t growth_kib = peak_kib > before_kib ? peak_kib - before_kib : 0;
    std::printf("rank %d: grew by %llu KiB, %llu polls, %llu sleeps of %.0f us, at most %llu bytes owed\n",
                world.rank, static_cast<unsigned long long>(growth_kib),
                static_cast<unsigned long long>(world.statistics.polls),
                static_cast<unsigned long long>(world.statistics.sleeps),
                1e-3 * static_cast<double>(world.statistics.slept_ns) /
                    static_cast<double>(world.statistics.sleeps + 1),
                static_cast<unsigned long long>(world.channel->credits().largest_owed()));
    REQUIRE(growth_kib <= allowed_kib, "rank %d grew by %d KiB", world.rank, static_cast<int>(growth_kib));
}

int run(int count, char** arguments) {
    REQUIRE(find_host(), "the native MPI was not found");
    const std::string name = count > 1 ? arguments[1] : "";
    if (name == "schedules")
        random_schedules(), registered_algorithms();
    else if (name == "stuck_sender")
        stuck_sender();
    else if (name == "wrong_size")
        wrong_size();
    else if (name == "tags_wrap")
        tags_wrap();
    else if (name == "soak" && count == 5)
        soak(std::strtoull(arguments[2], nullptr, 10), std::strtoull(arguments[3], nullptr, 10),
             std::atof(arguments[4]));
    else
        fail("usage: schedules | stuck_sender | wrong_size | tags_wrap | soak BYTES OPERATIONS SECONDS");
    return 0;
}

}  // namespace
}  // namespace thalweg

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    const int status = thalweg::run(count, arguments);
    MPI_Finalize();
    return status;
}
