// Exchanges over the windows of a real MPI, without the preload objects: `mpiexec -n P test_rma_X CASE
// [arguments]`. What failed is printed; the exit status says so too.
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "exchange.h"

namespace {
std::size_t allocations = 0;  // by this program; the MPI library's own are in C
bool no_memory = false;
}  // namespace

void* operator new(std::size_t bytes) {
    ++allocations;
    if (no_memory) throw std::bad_alloc();
    if (void* memory = std::malloc(bytes)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace thalweg {

using namespace test;

namespace {

// Every way and pattern, data that change, ranks that come at different times, and nothing between epochs.
void restarts(unsigned rounds) {
    std::mt19937 random(static_cast<unsigned>(rank) + 1);
    for (const char* way : ways)
        for (const char* kind : {"dense", "sparse", "large", "from_one", "only_self", "others"}) {
            Job job(*host());
            Memory memory(matrix_of(kind, 3));
            std::vector<char> near(static_cast<std::size_t>(size));
            for (int peer = 0; peer < size; ++peer)
                near[static_cast<std::size_t>(peer)] = peer % 2 == rank % 2;
            auto plan = job.make(way, memory, near);
            for (unsigned round = 0; round < rounds; ++round) {
                memory.prepare(round);
                if (random() % 4 == 0) nap(random() % 500);
                require(plan->start(), way);
                if (random() % 4 == 0) nap(random() % 500);
                if (round % 2 == 0) {
                    require(plan->wait(), way);
                } else {
                    for (bool done = false; !done;) require(plan->test(done), way);
                }
                memory.check(round, way);
            }
        }
}

// Two exchanges started and completed in opposite orders on different ranks: no start and no test may wait
// for another rank to do the same.
void opposite(unsigned rounds) {
    for (const char* way : {"rma_pscw", "rma_get"}) {
        Job job(*host());
        Memory first(matrix_of("others", 5)), second(matrix_of("sparse", 9));
        auto one = job.make(way, first), two = job.make(way, second);
        RmaAlltoallv* plans[2] = {one.get(), two.get()};
        const int early = rank % 2;
        for (unsigned round = 0; round < rounds; ++round) {
            first.prepare(2 * round);
            second.prepare(2 * round + 1);
            require(plans[early]->start(), way);
            require(plans[1 - early]->start(), way);
            bool done[2] = {};
            while (!done[0] || !done[1])
                for (int i = 0; i < 2; ++i)
                    if (!done[i]) require(plans[i]->test(done[i]), way);
            first.check(2 * round, way);
            second.check(2 * round + 1, way);
        }
    }
}

// Plans freed in different orders on different ranks; windows are freed when all ranks gave them back, and
// not before; a full pool says so everywhere.
void pool() {
    Job job(*host());
    Memory memory(matrix_of("dense", 1));
    std::vector<std::unique_ptr<Memory>> memories;
    std::vector<std::unique_ptr<RmaAlltoallv>> plans;
    for (int i = 0; i < 6; ++i) {
        memories.push_back(std::make_unique<Memory>(matrix_of("sparse", static_cast<unsigned>(i))));
        plans.push_back(job.make("rma_fence", *memories.back()));
    }
    REQUIRE(job.pool->alive() == 6, "%d windows are alive, not 6", job.pool->alive());
    // Half of them on every rank, but only those of both kinds of rank are given back by all.
    for (int i = 0; i < 6; ++i)
        if (i < 2 || (i - 2) / 2 == rank % 2) plans[static_cast<std::size_t>(i)].reset();
    require(job.pool->drain(), "drain");
    const int expected = size == 1 ? 2 : 4;
    REQUIRE(job.pool->alive() == expected, "%d windows are alive, not %d", job.pool->alive(), expected);
    for (auto& plan : plans) plan.reset();
    auto again = job.make("rma_get", memory);  // frees what was given back meanwhile
    REQUIRE(job.pool->alive() == 1, "%d windows are alive, not 1", job.pool->alive());
    memory.prepare(1);
    require(again->start(), "start");
    require(again->wait(), "wait");
    memory.check(1, "rma_get");
    again.reset();
    for (int i = 0; i < WindowPool::capacity; ++i) plans.push_back(job.make("rma_fence", memory));
    int error = MPI_SUCCESS;
    REQUIRE(
        RmaAlltoallv::make(*job.mpi, job.comm, *job.pool, memory.blocks(), RmaOptions{}, error) == nullptr &&
            error == MPI_ERR_NO_MEM,
        "a full pool gave a plan, or error %d", error);
    plans.clear();
}

// Between start and completion: no window, request, group or communicator is made, nothing is gathered, and
// nothing allocated.
long dear_calls = 0;
template <auto Host::*member>
struct Counted;
template <typename... Arguments, int (*Host::*member)(Arguments...)>
struct Counted<member> {
    static int call(Arguments... arguments) {
        ++dear_calls;
        return (host()->*member)(arguments...);
    }
};

void dear(unsigned rounds) {
    Host counted = *host();
    counted.Win_create = Counted<&Host::Win_create>::call;
    counted.Win_free = Counted<&Host::Win_free>::call;
    counted.Alltoall = Counted<&Host::Alltoall>::call;
    counted.Allreduce = Counted<&Host::Allreduce>::call;
    counted.Send_init = Counted<&Host::Send_init>::call;
    counted.Recv_init = Counted<&Host::Recv_init>::call;
    counted.Group_incl = Counted<&Host::Group_incl>::call;
    counted.Comm_create = Counted<&Host::Comm_create>::call;
    for (const char* way : ways) {
        Job job(counted);
        Memory memory(matrix_of("dense", 2));
        dear_calls = 0;
        auto plan = job.make(way, memory);
        REQUIRE(dear_calls > 0, "%s: making the plan was not seen", way);
        for (unsigned round = 0; round < rounds; ++round) {
            memory.prepare(round);
            const long calls_before = dear_calls;
            const std::size_t allocations_before = allocations;
            require(plan->start(), way);
            require(plan->wait(), way);
            const long calls = dear_calls - calls_before;
            const std::size_t allocated = allocations - allocations_before;
            REQUIRE(calls == 0, "%s: %ld dear calls in an epoch", way, calls);
            REQUIRE(allocated == 0, "%s: %zu allocations in an epoch", way, allocated);
            memory.check(round, way);
        }
    }
}

// While bytes may be under way, looks that are far apart poll more than once: a library may move a piece of
// them by each. Looks in a row poll once.
void looks() {
    Host counted = *host();
    counted.Testsome = Counted<&Host::Testsome>::call;
    counted.Win_test = Counted<&Host::Win_test>::call;
    for (const char* way : {"rma_pscw", "rma_get"}) {
        Job job(counted);
        Memory memory(matrix_of("others", 8));
        auto plan = job.make(way, memory);
        memory.prepare(1);
        if (rank != 0) MPI_Barrier(MPI_COMM_WORLD);
        require(plan->start(), way);
        bool done = false;
        const auto calls_of = [&](auto look) {
            dear_calls = 0;
            require(look(), way);
            return dear_calls;
        };
        if (rank == 0) {
            const long once = calls_of([&] { return plan->test(done); });
            long fewest = LONG_MAX, most = 0;
            // Where others have the core a look may be over by its first poll, or a moment be long.
            for (int i = 0; i < 200 && (fewest > once || most <= once); ++i) {
                fewest = std::min(fewest, calls_of([&] { return plan->look(done); }));
                nap(2000);
                most = std::max(most, calls_of([&] { return plan->look(done); }));
            }
            REQUIRE(!done, "%s: over before its peers came", way);
            REQUIRE(fewest == once, "%s: a look at once makes %ld calls, a poll %ld", way, fewest, once);
            REQUIRE(most > once, "%s: a look behind a nap makes %ld calls, a poll %ld", way, most, once);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        while (!done) require(plan->look(done), way);
        memory.check(1, way);
    }
}

// Puts begin with those to other hosts, from the next rank on: they take the longest.
std::vector<int> put_to;
int recorded_put(const void* from, int count, MPI_Datatype type, int target, MPI_Aint there, int there_count,
                 MPI_Datatype there_type, MPI_Win window) {
    put_to.push_back(target);
    return host()->Put(from, count, type, target, there, there_count, there_type, window);
}

void order() {
    REQUIRE(size >= 4, "ranks of two hosts, some of them beside one another");
    Host recording = *host();
    recording.Put = recorded_put;
    std::vector<char> near(static_cast<std::size_t>(size));
    for (int peer = 0; peer < size; ++peer) near[static_cast<std::size_t>(peer)] = peer % 2 == rank % 2;
    std::vector<int> expected;
    for (const bool inside : {false, true})
        for (int i = 1; i < size; ++i)
            if (const int peer = (rank + i) % size; (near[static_cast<std::size_t>(peer)] != 0) == inside)
                expected.push_back(peer);
    for (const char* way : ways) {
        if (rma_options(way)->way == EpochWay::get) continue;  // whoever is ready first
        Job job(recording);
        Memory memory(matrix_of("others", 6));
        auto plan = job.make(way, memory, near);
        for (unsigned round = 0; round < 3; ++round) {
            memory.prepare(round);
            put_to.clear();
            require(plan->start(), way);
            require(plan->wait(), way);
            REQUIRE(put_to.size() == expected.size(), "%s: %zu puts, not %zu", way, put_to.size(),
                    expected.size());
            for (std::size_t i = 0; i < expected.size(); ++i)
                REQUIRE(put_to[i] == expected[i], "%s: rank %d: put %zu goes to %d, not %d", way, rank, i,
                        put_to[i], expected[i]);
            memory.check(round, way);
        }
    }
}

// A window that one rank alone does not get, and memory that one rank alone lacks: no rank has a plan then,
// and none waits for the others. After the first nobody makes windows any more, after the second all do.
int window_is_refused = 0;
std::vector<MPI_Win> made;
int refusing_win_create(void* base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* window) {
    const int error = host()->Win_create(base, bytes, unit, info, comm, window);
    if (window_is_refused == 0) return error;
    made.push_back(*window);
    return rank == 1 ? MPI_ERR_OTHER : error;
}

void refused() {
    Host refusing = *host();
    refusing.Win_create = refusing_win_create;
    for (const char* way : ways) {
        Job job(refusing);
        Memory memory(matrix_of("dense", 4));
        int error = MPI_SUCCESS;
        const auto make = [&] {
            return RmaAlltoallv::make(refusing, job.comm, *job.pool, memory.blocks(), *rma_options(way),
                                      error);
        };
        no_memory = rank == 1;
        auto plan = make();
        no_memory = false;
        REQUIRE(plan == nullptr && error != MPI_SUCCESS, "%s: a plan without memory on rank 1", way);
        plan = make();
        REQUIRE(plan != nullptr, "%s: no plan after one rank lacked memory: MPI error %d", way, error);
        window_is_refused = 1;
        auto second = make();
        REQUIRE(second == nullptr && error != MPI_SUCCESS, "%s: a plan without a window on rank 1", way);
        window_is_refused = 0;
        second = make();
        REQUIRE(second == nullptr, "%s: a plan after the pool was given up", way);
        for (MPI_Win& window : made) MPI_Win_free(&window);
        made.clear();
        // The one that was made goes on.
        memory.prepare(1);
        require(plan->start(), way);
        require(plan->wait(), way);
        memory.check(1, way);
    }
}

// A group that one rank alone does not get: no rank has a plan then, and what was not made is not freed, of
// which the program's error handler would hear.
bool group_is_refused = false;
int refusing_comm_group(MPI_Comm comm, MPI_Group* group) {
    return group_is_refused ? MPI_ERR_OTHER : host()->Comm_group(comm, group);
}
int refusing_group_incl(MPI_Group all, int count, const int* ranks, MPI_Group* group) {
    return group_is_refused ? MPI_ERR_OTHER : host()->Group_incl(all, count, ranks, group);
}

void groupless() {
    Host no_first = *host(), no_second = *host();
    no_first.Comm_group = refusing_comm_group;
    no_second.Group_incl = refusing_group_incl;
    for (const Host* refusing : {&no_first, &no_second}) {
        Job job(*refusing);
        Memory memory(matrix_of("others", 4));
        int error = MPI_SUCCESS;
        group_is_refused = rank == 1;
        auto plan = RmaAlltoallv::make(*refusing, job.comm, *job.pool, memory.blocks(),
                                       *rma_options("rma_pscw"), error);
        group_is_refused = false;
        REQUIRE(plan == nullptr && error != MPI_SUCCESS, "a plan without a group on rank 1");
        plan = job.make("rma_pscw", memory);
        memory.prepare(1);
        require(plan->start(), "rma_pscw");
        require(plan->wait(), "rma_pscw");
        memory.check(1, "rma_pscw");
    }
}

}  // namespace
}  // namespace thalweg

int main(int argc, char** argv) {
    using namespace thalweg;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    REQUIRE(argc >= 2, "usage: test_rma CASE [rounds]");
    REQUIRE(find_host() != nullptr, "no MPI was found");
    complete_host();
    REQUIRE(has_rma_alltoallv(*host()), "this MPI has no windows");
    const std::string name = argv[1];
    const unsigned rounds = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 12;
    if (name == "restarts") {
        restarts(rounds);
    } else if (name == "opposite") {
        opposite(rounds);
    } else if (name == "pool") {
        pool();
    } else if (name == "refused") {
        refused();
    } else if (name == "groupless") {
        groupless();
    } else if (name == "dear") {
        dear(rounds);
    } else if (name == "looks") {
        looks();
    } else if (name == "order") {
        order();
    } else {
        fail("there is no case %s", name.c_str());
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) std::printf("%s: right\n", name.c_str());
    MPI_Finalize();
    return 0;
}
