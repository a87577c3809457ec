#include "plan/presence.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "plan/launcher_store.h"
#include "thalweg/thalweg.h"
#include "transport/mpi/error_handler.h"
#include "transport/mpi/host.h"

namespace thalweg {
namespace {

LauncherStore store;
bool interception_complete = true, wraps_large_forms = false;
const char* absent_because = nullptr;
int circle_width = circle_width_standard;
std::uint64_t agreement_ns = agreement_ns_standard;
char reason[160] = "";

#define WORD_(a, b, c) #a "." #b "." #c
#define WORD(a, b, c) WORD_(a, b, c)
// Other versions count as absent: their schedules need not be ours.
constexpr const char* own_word = WORD(THALWEG_VERSION_MAJOR, THALWEG_VERSION_MINOR, THALWEG_VERSION_PATCH);

// A node of the tree (rank 0 of the circle's communicator) and its children.
struct Circle {
    std::vector<int> members;
    bool complete = true;
    MPI_Comm comm{};
};

Circle circle_of(int node, int ranks) {
    Circle circle;
    circle.members.push_back(node);
    const std::int64_t first = static_cast<std::int64_t>(node) * circle_width + 1;
    for (std::int64_t child = first; child < std::min<std::int64_t>(first + circle_width, ranks); ++child)
        circle.members.push_back(static_cast<int>(child));
    return circle;
}

// False when the store failed.
bool read_words(Circle& circle, int self) {
    for (int member : circle.members) {
        char word[64];
        if (member == self) continue;
        const Word answer = store.read(member, word, sizeof word);
        if (answer == Word::failed) return false;
        const bool same = answer == Word::present && std::strcmp(word, own_word) == 0;
        if (same) continue;
        circle.complete = false;
        if (answer == Word::present)
            std::snprintf(reason, sizeof reason, "rank %d has Thalweg %s, this one %s", member, word,
                          own_word);
        else
            std::snprintf(reason, sizeof reason, "rank %d runs without Thalweg", member);
        return true;  // one is enough
    }
    return true;
}

void make_communicator(Circle& circle) {
    const Host& mpi = *host();
    MPI_Group world, group;
    mpi.Comm_group(mpi.comm_world, &world);
    mpi.Group_incl(world, static_cast<int>(circle.members.size()), circle.members.data(), &group);
    // The tag only has to differ from that of another creation by the same thread at the same time.
    mpi.Comm_create_group(mpi.comm_world, group, 0, &circle.comm);
    mpi.Group_free(&group);
    mpi.Group_free(&world);
}

// Some rank did not come, although its word says that it would.
struct TooLate {};

// Sleeps between its tests: a rank that spins here keeps the launcher, which the others are still reading
// from, off the core. Throws TooLate.
bool agreed(MPI_Comm comm, bool own, std::uint64_t patience_ns) {
    const Host& mpi = *host();
    static std::uint64_t mine, least;  // of the last operation, which may never end
    mine = own;
    MPI_Request request;
    mpi.Iallreduce(&mine, &least, 1, mpi.uint64, mpi.min, comm, &request);
    constexpr int quick_tests = 100;
    constexpr timespec pause{0, 50'000};
    const std::uint64_t begin = now_ns();
    int done = 0;
    for (int tests = 0; !done; ++tests) {
        if (tests > quick_tests) nanosleep(&pause, nullptr);
        mpi.Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done && now_ns() - begin > patience_ns) throw TooLate{};
    }
    return least != 0;
}

// Up the tree each circle that is complete agrees whether all below it is; down again it learns the root's
// answer. A circle that is not complete sends nothing and takes no for an answer, which is the root's too.
bool agree_over_tree(Circle& below, Circle& above, int rank) {
    const Host& mpi = *host();
    bool all = interception_complete;
    const bool leads = below.members.size() > 1;
    if (leads) {
        if (below.complete) {
            make_communicator(below);
            all = agreed(below.comm, all, agreement_ns);
        } else {
            all = false;
        }
    }
    if (rank != 0) {
        if (above.complete) {
            make_communicator(above);
            agreed(above.comm, all, agreement_ns);
            std::uint64_t verdict = 0;
            mpi.Bcast(&verdict, 1, mpi.uint64, 0, above.comm);
            all = verdict != 0;
            mpi.Comm_free(&above.comm);
        } else {
            all = false;
        }
    }
    if (leads && below.complete) {
        std::uint64_t verdict = all;
        mpi.Bcast(&verdict, 1, mpi.uint64, 0, below.comm);
        mpi.Comm_free(&below.comm);
    }
    return all;
}

Presence cannot_agree(const char* why) {
    const Host& mpi = *host();
    THALWEG_LOG_AT(error, "%s in MPI_Init; the ranks cannot agree", why);
    call_error_handler(mpi.comm_world, MPI_ERR_OTHER);
    std::snprintf(reason, sizeof reason, "%s", why);
    return Presence::unknown;
}

// Open MPI's launchers speak PMIx, and it speaks that with them alone: PMI's variables beside theirs are
// those of a launcher further up, which started another job.
bool started_by_pmix() {
#if defined(OPEN_MPI)
    return std::getenv("PMIX_NAMESPACE") != nullptr || std::getenv("OMPI_COMM_WORLD_RANK") != nullptr;
#else
    return false;
#endif
}

}  // namespace

void announce_presence() {
    static std::atomic<bool> done{false};
    if (done.exchange(true)) return;
    if (absent_because == nullptr) {
        if (!started_by_pmix()) store.write(own_word);
    } else if (started_by_pmix() || !LauncherStore::reachable()) {
        absent_because = nullptr;
    }
}

void stay_absent(const char* why) { absent_because = why; }

void settle_presence() { store.settle(); }

void announce_while_committing() { store.write_while_committing(own_word); }

void set_interception_complete(bool complete) { interception_complete = complete; }

void set_large_forms_wrapped(bool wrapped) { wraps_large_forms = wrapped; }
bool large_forms_wrapped() { return wraps_large_forms; }

void set_circle_width(int width) { circle_width = width; }

void set_agreement_ns(std::uint64_t limit_ns) { agreement_ns = limit_ns; }

const char* presence_reason() { return reason; }

// The first that has us in the circle above; nobody asks whether anyone further up speaks as well.
bool presence_speaks() {
    const Host& mpi = *host();
    int rank = 0, ranks = 1;
    mpi.Comm_rank(mpi.comm_world, &rank);
    mpi.Comm_size(mpi.comm_world, &ranks);
    if (rank == 0 || !store.open()) return rank == 0;
    for (int member : circle_of((rank - 1) / circle_width, ranks).members) {
        char word[64];
        if (member >= rank) break;
        if (store.read(member, word, sizeof word) == Word::present) return false;
    }
    return true;
}

Presence find_presence(WithoutStore without_store) try {
    const Host& mpi = *host();
    int rank = 0, ranks = 1;
    mpi.Comm_rank(mpi.comm_world, &rank);
    mpi.Comm_size(mpi.comm_world, &ranks);
    reason[0] = '\0';
    store.settle();
    constexpr const char* somewhere = "a rank runs without Thalweg, or a tool in front of it keeps its calls";
    if (absent_because != nullptr && ranks > 1) {
        std::snprintf(reason, sizeof reason, "%s", absent_because);
        return Presence::some;
    }
    if (ranks == 1) {
        if (interception_complete) return Presence::all;
        std::snprintf(reason, sizeof reason, "%s", somewhere);
        return Presence::some;
    }
    if (!store.open()) {
        if (without_store == WithoutStore::pass_through) {
            std::snprintf(reason, sizeof reason,
                          "this launcher does not tell which ranks have Thalweg (THALWEG_PRESENCE=assume)");
            return Presence::unknown;
        }
        // The user's word has no limit: nothing says that all ranks have left MPI_Init's barrier, if there
        // was one.
        if (agreed(mpi.comm_world, interception_complete, UINT64_MAX)) return Presence::all;
        std::snprintf(reason, sizeof reason, "%s", somewhere);
        return Presence::some;
    }
    Circle below = circle_of(rank, ranks), above;
    if (rank != 0) above = circle_of((rank - 1) / circle_width, ranks);
    if (!read_words(below, rank) || !read_words(above, rank))
        return cannot_agree("the launcher's store failed");
    // One circle: each rank has read every word and found the same, so the world itself can be used.
    const bool all = ranks <= circle_width + 1
                         ? (rank == 0 ? below : above).complete &&
                               agreed(mpi.comm_world, interception_complete, agreement_ns)
                         : agree_over_tree(below, above, rank);
    if (all) return Presence::all;
    if (reason[0] == '\0') std::snprintf(reason, sizeof reason, "%s", somewhere);
    return Presence::some;
} catch (const TooLate&) {
    return cannot_agree("a rank that has Thalweg did not answer");
}

}  // namespace thalweg
