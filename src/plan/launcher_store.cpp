#include "plan/launcher_store.h"

#include <dlfcn.h>
#include <strings.h>
#include <sys/stat.h>

#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>

#include "plan/pmi_relay.h"

namespace thalweg {
namespace {

constexpr const char* pmi_key = "thalweg-";  // and the rank
constexpr const char* pmix_key = "thalweg";  // PMIx keeps the ranks apart itself
// A daemon on another host that is asked by a whole job at once may be slow.
constexpr int remote_word_timeout_s = 25;

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

// Our end of the launcher's connection, negative where there is none. The variables may be left over from a
// process further up, and the number be that of a file of the program's by now: only a socket is asked.
int launchers_end() {
    const char* const number = std::getenv("PMI_FD");
    if (number == nullptr || std::getenv("PMI_RANK") == nullptr) return -1;
    char* end = nullptr;
    const long descriptor = std::strtol(number, &end, 10);
    struct stat what;
    if (end == number || *end != '\0' || descriptor < 0 || descriptor > INT_MAX ||
        fstat(static_cast<int>(descriptor), &what) != 0 || !S_ISSOCK(what.st_mode))
        return -1;
    return static_cast<int>(descriptor);
}

}  // namespace

Word LauncherStore::read(int rank, char* word, std::size_t capacity) {
    switch (dialect_) {
        case Dialect::pmi1:
            return read_pmi1(rank, word, capacity);
        case Dialect::pmi2:
            return read_pmi2(rank, word, capacity);
        case Dialect::pmix:
            return read_pmix(rank, word, capacity);
        case Dialect::none:
            break;
    }
    return Word::failed;
}

bool LauncherStore::reachable() { return launchers_end() >= 0; }

bool LauncherStore::write(const char* word) {
    descriptor_ = launchers_end();
    if (descriptor_ < 0) return false;
    const char* const rank = std::getenv("PMI_RANK");
    char key[64];
    std::snprintf(key, sizeof key, "%s%.20s", pmi_key, rank);
    const bool hydra = std::getenv("PMI_HOSTNAME") != nullptr || std::getenv("HYDI_CONTROL_FD") != nullptr ||
                       std::getenv("HYDRA_BSTRAP_LOCALHOST") != nullptr;
    if (hydra) return write_to_hydra(key, word);
    // Never freed while its thread may run, which may be for ever where the initialisation fails.
    relay_ = new (std::nothrow) PmiRelay;
    return relay_ != nullptr && relay_->start(descriptor_, key, word);
}

void LauncherStore::settle() {
    if (relay_ == nullptr) return;
    switch (relay_->stop()) {
        case PmiRelay::Dialect::pmi1:
            dialect_ = Dialect::pmi1;
            std::snprintf(space_, sizeof space_, "%s", relay_->space());
            break;
        case PmiRelay::Dialect::pmi2:
            dialect_ = Dialect::pmi2;
            break;
        case PmiRelay::Dialect::none:
            break;
    }
    delete relay_;
    relay_ = nullptr;
}

// Hydra takes part in a conversation before the library does.
bool LauncherStore::write_to_hydra(const char* key, const char* word) {
    char reply[1024], request[512], status[16];
    // Hydra 4.0 forgets what was put before the first of its processes has said init; saying it twice is
    // harmless.
    if (!ask("cmd=init pmi_version=1 pmi_subversion=1\n", reply, sizeof reply)) return false;
    if (!ask("cmd=get_my_kvsname\n", reply, sizeof reply)) return false;
    if (!pmi_field(reply, "kvsname", ' ', space_, sizeof space_)) return false;
    std::snprintf(request, sizeof request, "cmd=put kvsname=%s key=%s value=%s\n", space_, key, word);
    if (!ask(request, reply, sizeof reply)) return false;
    if (pmi_field(reply, "rc", ' ', status, sizeof status) && std::strcmp(status, "0") != 0) return false;
    dialect_ = Dialect::pmi1;
    return true;
}

Word LauncherStore::read_pmi1(int rank, char* word, std::size_t capacity) {
    char request[512], reply[4096], status[16];
    std::snprintf(request, sizeof request, "cmd=get kvsname=%s key=%s%d\n", space_, pmi_key, rank);
    if (!ask(request, reply, sizeof reply)) return Word::failed;
    if (!pmi_field(reply, "rc", ' ', status, sizeof status)) return Word::failed;
    if (std::strcmp(status, "0") != 0 || !pmi_field(reply, "value", ' ', word, capacity)) return Word::absent;
    return Word::present;
}

Word LauncherStore::read_pmi2(int rank, char* word, std::size_t capacity) {
    char body[512], reply[4096], found[16];
    const char* const job = std::getenv("PMI_JOBID");
    std::snprintf(body, sizeof body, "cmd=kvs-get;jobid=%.128s;srcid=-1;key=%s%d;", job == nullptr ? "" : job,
                  pmi_key, rank);
    const std::string request = pmi_framed(PmiRelay::Dialect::pmi2, body);
    if (!ask(request.c_str(), reply, sizeof reply)) return Word::failed;
    if (!pmi_field(reply, "found", ';', found, sizeof found)) return Word::failed;
    if (strcasecmp(found, "true") != 0 || !pmi_field(reply, "value", ';', word, capacity))
        return Word::absent;
    return Word::present;
}

// One request, one answer: the protocols have no more than one of them on its way. PMI-1's answer is a line,
// PMI-2's says its length in its first six bytes.
bool LauncherStore::ask(const char* request, char* reply, std::size_t capacity) {
    if (!pmi_send(descriptor_, request, std::strlen(request))) return false;
    constexpr std::size_t head = 6;
    for (std::size_t length = 0; length + 1 < capacity;) {
        const std::ptrdiff_t got = pmi_receive(descriptor_, reply + length, capacity - 1 - length);
        if (got <= 0) return false;
        length += static_cast<std::size_t>(got);
        reply[length] = '\0';
        if (dialect_ != Dialect::pmi2) {
            if (reply[length - 1] == '\n') return true;
        } else if (length >= head && length >= head + std::strtoul(reply, nullptr, 10)) {
            std::memmove(reply, reply + head, length - head + 1);
            return true;
        }
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
