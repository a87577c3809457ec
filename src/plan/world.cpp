#include "plan/world.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "algorithms/option_check.h"
#include "base/log.h"
#include "engine/waiters/between_polls.h"
#include "plan/bypass.h"
#include "plan/host_keys.h"
#include "plan/kept_memory.h"
#include "plan/keyvals.h"
#include "plan/place.h"
#include "plan/presence.h"
#include "plan/reserve.h"
#include "plan/session_communicators.h"
#include "plan/set_up.h"
#include "thalweg/thalweg.h"
#include "transport/mpi/host.h"

namespace thalweg {

static_assert(collective_count == 5, "one gate each");
static_assert(gate_closed == Bypass::all);
constinit std::array<std::atomic<std::uint64_t>, collective_count> gates{
    gate_closed, gate_closed, gate_closed, gate_closed, gate_closed};

namespace {

constinit std::atomic<World*> the_world{nullptr};

// Never freed: communicators are made until MPI_Finalize, in destructors of the program's too.
constinit std::span<const std::uint64_t> kept_host_keys;

// Up to this many ranks the places of all are gathered in MPI_Init (24 bytes each); beyond it the launcher's
// environment says how many ranks share the machine.
constexpr int largest_gathered_world = 16384;

constexpr std::size_t largest_table_bytes = 2u << 20;

std::uint64_t build_digest() {
    std::uint64_t hash = 14695981039346656037u;
    auto mix = [&hash](std::uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
    mix(THALWEG_VERSION_MAJOR * 1'000'000 + THALWEG_VERSION_MINOR * 1'000 + THALWEG_VERSION_PATCH);
    mix(sizeof(SettingsBlob));
    mix(SettingsBlob{Settings{}.to_blob()}.options_digest);
    return hash;
}

// How many ranks the launcher says it started on this machine; 0: it does not say.
int launched_ranks() {
    for (const char* name :
         {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"}) {
        const char* const value = std::getenv(name);
        if (value != nullptr && std::atoi(value) > 0) return std::atoi(value);
    }
    return 0;
}

std::string text_of_file(const char* path, bool& read) {
    std::string text;
    read = false;
    std::FILE* const file = std::fopen(path, "re");
    if (file == nullptr) return text;
    char buffer[4096];
    for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, got);
    read = std::ferror(file) == 0;
    std::fclose(file);
    return text;
}

}  // namespace

std::span<const std::uint64_t> host_keys() { return kept_host_keys; }

World* World::get() { return the_world.load(std::memory_order_acquire); }

void World::agree() {
    const Host* const mpi = host();
    if (mpi == nullptr || get() != nullptr) return;
    // What the ranks agree on relies on it: a rank without it does not count as having us.
    if (!open_reserve()) {
        THALWEG_LOG_AT(warn, "no memory for Thalweg in this process");
        set_interception_complete(false);
    }
    std::unique_ptr<World> world(new World);
    mpi->Comm_rank(mpi->comm_world, &world->rank_);
    set_log_rank(world->rank_);
    std::vector<Complaint> told_later;  // by rank 0, once the ranks agree
    const bool assume =
        Settings::from_environment(environ, told_later, check_option).presence == PresenceSetting::assume;
    if (find_presence(assume ? WithoutStore::assume_all : WithoutStore::pass_through) != Presence::all) {
        if (presence_speaks())
            THALWEG_LOG_AT(warn, "%s; every call goes to the MPI library", presence_reason());
        return;
    }
    mpi->Comm_size(mpi->comm_world, &world->size_);
    mpi->Comm_group(mpi->comm_world, &world->group_);
    if (!world->agree_on_settings()) return;
    KeptMemory::set_limit(world->settings_.plan_memory);
    const bool has_pool = world->pool_.open(), has_keyvals = !failed(make_keyvals());
    if (!world->find_places(has_pool, has_keyvals)) return;
    world->read_table();
    if (failed(world->steer())) return;
    Selection one_host;
    one_host.family = host_family();
    one_host.library = mpi->library_version;
    one_host.sleeps = world->sleeps();
    one_host.table = world->table_;
    const auto ranks = static_cast<std::uint64_t>(world->size_);
    for (std::size_t i = 0; i < collective_count; ++i) {
        world->one_host_below_[i] = smallest_on_one_host(static_cast<Collective>(i), one_host, ranks);
        Selection overlapped = one_host, persistent = one_host;
        overlapped.overlapped = persistent.persistent = true;
        world->overlapped_on_one_host_[i] =
            smallest_on_one_host(static_cast<Collective>(i), overlapped, ranks) != Bypass::all;
        world->planned_on_one_host_[i] =
            smallest_on_one_host(static_cast<Collective>(i), persistent, ranks) != Bypass::all;
        world->lowest_[i] = smallest_taken(static_cast<Collective>(i), world->table_);
        world->overlapped_lowest_[i] = smallest_taken(static_cast<Collective>(i), world->table_, true);
    }
    one_host.overlapped = one_host.neighbours = true;
    world->neighbours_on_one_host_ =
        smallest_on_one_host(Collective::alltoallv, one_host, ranks) != Bypass::all;
    World* const ready = world.release();
    the_world.store(ready, std::memory_order_release);
    ready->set_gates();
}

void World::leave() {
    for (auto& gate : gates) gate.store(gate_closed, std::memory_order_release);
    left_.store(true, std::memory_order_release);
    pool_.close();
}

// Rank 0's settings for everyone. False: pass through.
bool World::agree_on_settings() {
    const Host& mpi = *host();
    std::vector<Complaint> complaints;
    settings_ = Settings::from_environment(environ, complaints, check_option);
    set_log_level(settings_.log);
    if (rank_ == 0)
        for (const Complaint& complaint : complaints) {
            if (complaint.level == LogLevel::error)
                THALWEG_LOG_AT(error, "%s", complaint.sentence.c_str());
            else
                THALWEG_LOG_AT(warn, "%s", complaint.sentence.c_str());
        }

    // The layout of this first message never changes, so that any two versions can find out that they differ.
    const std::uint64_t digest = build_digest();
    std::uint64_t most[2] = {digest, ~digest};
    agree_on(mpi.comm_world, mpi.max, most);
    if (most[0] != ~most[1]) {
        if (rank_ == 0)
            THALWEG_LOG_AT(warn,
                           "ranks run different versions of Thalweg; every call goes to the MPI library");
        return false;
    }
    SettingsBlob blob = settings_.to_blob();
    demand(mpi.Bcast(&blob, sizeof blob, mpi.byte, 0, mpi.comm_world));
    std::vector<std::string_view> differing;
    static_assert(option_count <= 64, "one bit per option");
    if (rank_ != 0 && failed(settings_.adopt(blob, differing))) throw AgreementFailed{MPI_ERR_OTHER};
    for (std::string_view variable : differing)
        differing_ |= 1ull << static_cast<unsigned>(find_option(variable) - options().data());
    steered_ = settings_;
    if (settings_.enabled == Switch::on) return true;
    // Where rank 0 switches us off, nothing that is asked later is; that others differ is said all the same.
    std::uint64_t any[1] = {differing_};
    agree_on(mpi.comm_world, mpi.bor, any);
    warn_of_differing(any[0]);
    return false;
}

void World::warn_of_differing(std::uint64_t options_differing) const {
    if (rank_ != 0 || options_differing == 0) return;
    std::string names;
    for (std::size_t i = 0; i < option_count; ++i)
        if (options_differing >> i & 1) names.append(names.empty() ? "" : ", ").append(options()[i].variable);
    THALWEG_LOG_AT(warn, "ranks have different values of %s; rank 0's count", names.c_str());
}

// Who shares a host with whom, whether cores are short, and what else is known once all ranks have spoken.
// Ends with the same single_host_, crowded_ and pool everywhere. False, on all ranks: one has no keys for
// attributes, or some have no wrappers of calls with large counts, which others would wait in.
bool World::find_places(bool has_pool, bool has_keyvals) {
    const Host& mpi = *host();
    const PlaceFacts facts = find_place();
    host_key_ = facts.host_key;
    std::string why;
    if (!settings_.topology.empty()) {
        // Counted first: a text may place millions of ranks, and this job has its own number.
        int places = 0;
        Topology pretended;
        if (Topology::count_ranks(settings_.topology.view(), places, why) != Status::ok || places != size_) {
            if (rank_ == 0)
                THALWEG_LOG_AT(warn, "THALWEG_TOPOLOGY is ignored: it places %d ranks, the job has %d",
                               places, size_);
        } else if (Topology::from_text(settings_.topology.view(), pretended, why) == Status::ok) {
            host_key_ = static_cast<std::uint64_t>(pretended.node_of(rank_)) + 1;
        }
    }

    std::uint64_t sharers = static_cast<std::uint64_t>(launched_ranks());
    ranks_of_host_ = static_cast<std::uint32_t>(size_);
    std::unique_ptr<std::uint64_t[]> keys;  // where one rank has no memory for them, nobody keeps them
    if (size_ <= largest_gathered_world) {
        // The reserve of a rank that lacks memory has room for the table.
        const std::uint64_t mine[3] = {host_key_, facts.cores_key, facts.cores};
        std::vector<std::uint64_t> all(3 * static_cast<std::size_t>(size_));
        demand(mpi.Allgather(mine, sizeof mine, mpi.byte, all.data(), sizeof mine, mpi.byte, mpi.comm_world));
        keys.reset(new (std::nothrow) std::uint64_t[size_]);
        sharers = 0;
        ranks_of_host_ = 0;
        std::uint64_t claimed = 0;  // hardware threads of this host, those of every rank counted
        for (int rank = 0; rank < size_; ++rank) {
            const std::uint64_t* const other = &all[3 * static_cast<std::size_t>(rank)];
            sharers += other[1] == facts.cores_key;
            ranks_of_host_ += other[0] == host_key_;
            if (other[0] == host_key_) claimed += other[2];
            if (keys != nullptr) keys[rank] = other[0];
        }
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        shares_cores_ = sharers > 1 || online < 1 || claimed > static_cast<std::uint64_t>(online);
    }
    naps_among(sharers, facts.cores);
    threads_per_rank_ = facts.cores / static_cast<std::uint32_t>(std::max<std::uint64_t>(sharers, 1));
    // All ranks' words, or-ed. One host: no bit of the keys is set on one rank and clear on another.
    std::uint64_t any[10] = {host_key_,
                             ~host_key_,
                             sharers > facts.cores,
                             !has_pool,
                             differing_,
                             !has_keyvals,
                             keys == nullptr,
                             SessionCommunicators::close(),
                             large_forms_wrapped(),
                             !large_forms_wrapped()};
    agree_on(mpi.comm_world, mpi.bor, any);
    single_host_ = (any[0] & any[1]) == 0;
    crowded_ = any[2] != 0;
    if (any[3] != 0) pool_.abandon();
    SessionCommunicators::settle(any[7] != 0);
    if (any[6] == 0) kept_host_keys = {keys.release(), static_cast<std::size_t>(size_)};
    warn_of_differing(any[4]);
    const bool unalike = any[8] != 0 && any[9] != 0;
    if (unalike && rank_ == 0)
        THALWEG_LOG_AT(warn,
                       "some ranks have not loaded what wraps calls with large counts; every call goes to "
                       "the MPI library");
    return any[5] == 0 && !unalike;
}

// The tuning tables in the file that the user named, as rank 0 reads it. Not larger than what the reserve of
// every rank holds.
void World::read_table() {
    if (settings_.tuning.empty()) return;
    const Host& mpi = *host();
    std::string text;
    if (rank_ == 0) {
        bool read = false;
        std::string why;
        text = text_of_file(settings_.tuning.c_str(), read);
        if (!read) {
            THALWEG_LOG_AT(warn, "THALWEG_TUNING: %s cannot be read; the built-in tables count",
                           settings_.tuning.c_str());
            text.clear();
        } else if (text.size() > largest_table_bytes) {
            THALWEG_LOG_AT(warn, "THALWEG_TUNING: %s is larger than %zu bytes; the built-in tables count",
                           settings_.tuning.c_str(), largest_table_bytes);
            text.clear();
        } else if (failed(check_table(text, why))) {
            THALWEG_LOG_AT(warn, "THALWEG_TUNING: %s: %s; the built-in tables count",
                           settings_.tuning.c_str(), why.c_str());
            text.clear();
        }
    }
    std::uint64_t bytes = text.size();
    demand(mpi.Bcast(&bytes, 1, mpi.uint64, 0, mpi.comm_world));
    text.resize(bytes);
    if (bytes != 0) demand(mpi.Bcast(text.data(), static_cast<int>(bytes), mpi.byte, 0, mpi.comm_world));
    table_ = std::move(text);
}

Status World::locate(MPI_Comm comm, bool& all, RankMap* places) const try {
    const Host& mpi = *host();
    constexpr int at_a_time = 256;  // on the stack: whether all belong here must not depend on memory
    int ranks[at_a_time], here[at_a_time];
    MPI_Group group;
    int size = 0;
    if (mpi.Comm_group(comm, &group) != MPI_SUCCESS) return Status::transport_failed;
    all = true;
    RankMap found;
    // Of the world itself nobody is looked for, nor of its duplicates where they share its group: Open MPI
    // looks for each rank among all.
    const bool is_world = group == group_;
    bool asked = is_world || mpi.Group_size(group, &size) == MPI_SUCCESS;
    for (int done = 0; asked && all && done < size; done += at_a_time) {
        const int count = std::min(at_a_time, size - done);
        for (int i = 0; i < count; ++i) ranks[i] = done + i;
        asked = mpi.Group_translate_ranks(group, count, ranks, group_, here) == MPI_SUCCESS;
        // A refusal is this rank's alone, and no word about where the ranks belong.
        all = !asked || std::find(here, here + count, MPI_UNDEFINED) == here + count;
        if (!asked || places == nullptr || !all) continue;
        for (int i = 0; i < count; ++i) found.append(here[i]);
    }
    mpi.Group_free(&group);
    if (!asked) return Status::transport_failed;
    if (places != nullptr) *places = std::move(found);
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

Network World::network() const {
    std::lock_guard lock(network_mutex_);
    return network_;
}

void World::learn(const Network& network) {
    std::lock_guard lock(network_mutex_);
    network_ = network;
}

}  // namespace thalweg
