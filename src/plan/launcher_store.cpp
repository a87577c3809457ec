#include "plan/launcher_store.h"

#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace thalweg {
namespace {

constexpr const char* hydra_key = "thalweg-";  // and the rank
constexpr const char* pmix_key = "thalweg";    // PMIx keeps the ranks apart itself
// A hydra proxy answers in microseconds; one that is silent this long will not answer at all.
constexpr int reply_timeout_ms = 10'000;
// A daemon on another host that is asked by a whole job at once may be slow.
constexpr int remote_word_timeout_s = 25;

// The text after `name=` in a line of hydra's, up to the next blank. False when it is not there.
bool field(const char* line, const char* name, char* value, std::size_t capacity) {
    const std::size_t length = std::strlen(name);
    for (const char* at = line; (at = std::strstr(at, name)) != nullptr; at += length) {
        if (at != line && at[-1] != ' ') continue;
        if (at[length] != '=') continue;
        std::snprintf(value, capacity, "%.*s", static_cast<int>(std::strcspn(at + length + 1, " \n")),
                      at + length + 1);
        return true;
    }
    return false;
}

// PMIx as far as we need it. The layouts are those of the PMIx ABI (versions 3 to 6), the same in every
// libpmix.so.2; no header of PMIx is needed to build.
struct PmixProcess {
    char space[256];
    std::uint32_t rank;
};
struct PmixValue {
    std::uint16_t type;
    union {
        bool flag;
        int integer;
        char* text;
        std::uint64_t room[3];
    };
};
struct PmixInfo {
    char key[512];
    std::uint32_t flags;
    PmixValue value;
};
static_assert(sizeof(PmixProcess) == 260 && sizeof(PmixValue) == 32 && sizeof(PmixInfo) == 552);
constexpr std::uint16_t pmix_bool = 1, pmix_string = 3, pmix_int = 6;
constexpr std::uint8_t pmix_global = 3;
constexpr int pmix_success = 0;

struct Pmix {
    int (*put)(std::uint8_t scope, const char* key, PmixValue*) = nullptr;
    int (*get)(const PmixProcess*, const char* key, const PmixInfo*, std::size_t, PmixValue**) = nullptr;

    bool complete() const { return put && get; }
};

// Only a client library that is in the process already: loading one would displace MPI's own.
Pmix find_pmix() {
    Pmix pmix;
    void* handle = dlopen("libpmix.so.2", RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) {
        dlerror();
        return pmix;
    }
    auto find = [handle](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    };
    find(pmix.put, "PMIx_Put");
    find(pmix.get, "PMIx_Get");
    dlclose(handle);  // the reference MPI holds keeps it
    dlerror();
    return pmix;
}

bool all_ranks_are_local() {
    const char* here = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    const char* everywhere = std::getenv("OMPI_COMM_WORLD_SIZE");
    return here != nullptr && everywhere != nullptr && std::strcmp(here, everywhere) == 0;
}

}  // namespace

Word LauncherStore::read(int rank, char* word, std::size_t capacity) {
    switch (dialect_) {
        case Dialect::hydra:
            return read_hydra(rank, word, capacity);
        case Dialect::pmix:
            return read_pmix(rank, word, capacity);
        case Dialect::none:
            break;
    }
    return Word::failed;
}

// Other process managers hand out a PMI_FD too and speak other dialects on it (Slurm's PMI-2 counts its
// bytes), so this one is used only where hydra's own variables are.
bool LauncherStore::write(const char* word) {
    const char* descriptor = std::getenv("PMI_FD");
    const char* rank = std::getenv("PMI_RANK");
    if (descriptor == nullptr || rank == nullptr) return false;
    const bool hydra = std::getenv("PMI_HOSTNAME") != nullptr || std::getenv("HYDI_CONTROL_FD") != nullptr ||
                       std::getenv("HYDRA_BSTRAP_LOCALHOST") != nullptr;
    if (!hydra) return false;
    descriptor_ = std::atoi(descriptor);
    char reply[1024], request[512], status[16];
    // Hydra 4.0 forgets what was put before the first of its processes has said init; saying it twice is
    // harmless.
    if (!ask_hydra("cmd=init pmi_version=1 pmi_subversion=1\n", reply, sizeof reply)) return false;
    if (!ask_hydra("cmd=get_my_kvsname\n", reply, sizeof reply)) return false;
    if (!field(reply, "kvsname", space_, sizeof space_)) return false;
    std::snprintf(request, sizeof request, "cmd=put kvsname=%s key=%s%s value=%s\n", space_, hydra_key, rank,
                  word);
    if (!ask_hydra(request, reply, sizeof reply)) return false;
    if (field(reply, "rc", status, sizeof status) && std::strcmp(status, "0") != 0) return false;
    dialect_ = Dialect::hydra;
    return true;
}

Word LauncherStore::read_hydra(int rank, char* word, std::size_t capacity) {
    char request[512], reply[4096], status[16];
    std::snprintf(request, sizeof request, "cmd=get kvsname=%s key=%s%d\n", space_, hydra_key, rank);
    if (!ask_hydra(request, reply, sizeof reply)) return Word::failed;
    if (!field(reply, "rc", status, sizeof status)) return Word::failed;
    if (std::strcmp(status, "0") != 0 || !field(reply, "value", word, capacity)) return Word::absent;
    return Word::present;
}

// One request, one line in return: the protocol has no more than one of them on its way.
bool LauncherStore::ask_hydra(const char* request, char* reply, std::size_t capacity) {
    for (std::size_t left = std::strlen(request); left > 0;) {
        const ssize_t written = ::write(descriptor_, request, left);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        request += written;
        left -= static_cast<std::size_t>(written);
    }
    for (std::size_t length = 0; length + 1 < capacity;) {
        pollfd ready{descriptor_, POLLIN, 0};
        const int events = poll(&ready, 1, reply_timeout_ms);
        if (events < 0 && errno == EINTR) continue;
        if (events <= 0) return false;
        const ssize_t got = ::read(descriptor_, reply + length, capacity - 1 - length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        length += static_cast<std::size_t>(got);
        reply[length] = '\0';
        if (reply[length - 1] == '\n') return true;
    }
    return false;
}

// Open MPI's initialisation trips over a PMIx that somebody else initialised, so the word is put at the
// moment when it commits its own.
bool LauncherStore::write_while_committing(const char* word) {
    if (dialect_ != Dialect::none) return false;
    const Pmix pmix = find_pmix();
    const char* space = std::getenv("PMIX_NAMESPACE");
    if (!pmix.complete() || space == nullptr) return false;
    char text[64];
    std::snprintf(text, sizeof text, "%s", word);
    PmixValue value{};
    value.type = pmix_string;
    value.text = text;  // copied by put
    if (pmix.put(pmix_global, pmix_key, &value) != pmix_success) return false;
    std::snprintf(space_, sizeof space_, "%s", space);
    dialect_ = Dialect::pmix;
    return true;
}

Word LauncherStore::read_pmix(int rank, char* word, std::size_t capacity) {
    PmixProcess peer{};
    std::snprintf(peer.space, sizeof peer.space, "%s", space_);
    peer.rank = static_cast<std::uint32_t>(rank);
    // Everyone has committed what it will, so the answer exists: here where all ranks are on this host, else
    // at the daemon of another one, which is asked. PMIx waits there for a word that will never come, so the
    // time is bounded, generously: a rank that gives up early would leave the others waiting for it.
    PmixInfo bound{};
    if (all_ranks_are_local()) {
        std::snprintf(bound.key, sizeof bound.key, "pmix.immediate");
        bound.value.type = pmix_bool;
        bound.value.flag = true;
    } else {
        std::snprintf(bound.key, sizeof bound.key, "pmix.timeout");
        bound.value.type = pmix_int;
        bound.value.integer = remote_word_timeout_s;
    }
    PmixValue* value = nullptr;
    const int status = find_pmix().get(&peer, pmix_key, &bound, 1, &value);
    if (status != pmix_success || value == nullptr) return Word::absent;
    const bool text = value->type == pmix_string && value->text != nullptr;
    if (text) {
        std::snprintf(word, capacity, "%s", value->text);
        std::free(value->text);
    }
    std::free(value);
    return text ? Word::present : Word::absent;
}

}  // namespace thalweg
