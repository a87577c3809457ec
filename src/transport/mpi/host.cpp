#include "transport/mpi/host.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/launcher_rank.h"
#include "base/loaded_objects.h"

namespace thalweg {
namespace {

std::atomic<const Host*> found{nullptr};
pthread_mutex_t search_lock = PTHREAD_MUTEX_INITIALIZER;  // constant-initialised: no constructor runs at load
bool refused = false;      // under search_lock: a native library was found and cannot be used
constinit Host storage{};  // under search_lock until `found` points to it

// One sentence per job, not per rank, where the launcher's environment tells the ranks apart.
void say(const char* sentence, const char* detail) {
    for (const char* name : launcher_rank_variables) {
        const char* rank = std::getenv(name);
        if (rank != nullptr && std::strcmp(rank, "0") != 0) return;
    }
    std::fprintf(stderr, "thalweg: %s%s; MPI runs without it\n", sentence, detail);
}

// The file that defines PMPI_Init, kept open, once it is known: the first place to look for everything else.
std::atomic<void*> native_handle{nullptr};

void* look_up(const char* symbol) {
    void* address = nullptr;
    if (void* handle = native_handle.load(std::memory_order_acquire)) address = dlsym(handle, symbol);
    if (address == nullptr) address = dlsym(RTLD_NEXT, symbol);
    if (address == nullptr) address = dlsym(RTLD_DEFAULT, symbol);
    if (address == nullptr)
        for (const char* file : LoadedFiles())
            if (address = symbol_of(file, symbol); address != nullptr) break;
    dlerror();
    return address;
}

void remember_native_file(void* address) {
    Dl_info info;
    if (native_handle.load(std::memory_order_acquire) != nullptr) return;
    if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return;
    // Null for the main program (a static MPI); its symbols are found through RTLD_DEFAULT, if at all.
    void* handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr) native_handle.store(handle, std::memory_order_release);
    dlerror();
}

// Which C ABI the library that was found speaks, told by the library itself.
enum class Abi { mpich, ompi, standard, unknown };

Abi probe_abi(const char* version) {
    auto abi_version = reinterpret_cast<int (*)(int*, int*)>(look_up("PMPI_Abi_get_version"));
    int major = -1, minor = -1;
    if (abi_version != nullptr && abi_version(&major, &minor) == MPI_SUCCESS && major >= 0)
        return Abi::standard;
    if (std::strstr(version, "Open MPI") != nullptr) return Abi::ompi;
    for (const char* name : {"MPICH", "Intel", "MVAPICH", "CRAY", "Cray"})
        if (std::strstr(version, name) != nullptr) return Abi::mpich;
    // A library we have no name for: Open MPI's descendants all export its predefined objects.
    return look_up("ompi_mpi_comm_world") != nullptr ? Abi::ompi : Abi::unknown;
}

#if defined(MPI_ABI_VERSION)
constexpr Abi built_for = Abi::standard;
constexpr const char* built_for_name = "the MPI standard ABI";
#elif defined(OPEN_MPI)
constexpr Abi built_for = Abi::ompi;
constexpr const char* built_for_name = "Open MPI";
#else
constexpr Abi built_for = Abi::mpich;
constexpr const char* built_for_name = "the MPICH ABI";
#endif

#if defined(OPEN_MPI)
// The program's copy first: a linker may have moved the object into the executable (a copy relocation), and
// then the library's own has never been initialised.
template <typename T>
T handle_at(const char* symbol) {
    void* address = dlsym(RTLD_DEFAULT, symbol);
    return static_cast<T>(address != nullptr ? address : look_up(symbol));
}
#define HANDLE_VALUE(type, constant, symbol) handle_at<type>(symbol)
#else
#define HANDLE_VALUE(type, constant, symbol) constant
#endif

bool fill(Host& host) {
    const char* missing = nullptr;
    constexpr bool required = true, optional = false;
    (void)optional;
#define HOST_CALL(name, need)                                                  \
    host.name = reinterpret_cast<decltype(host.name)>(look_up("PMPI_" #name)); \
    if (host.name == nullptr && need && missing == nullptr) missing = "PMPI_" #name;
#include "transport/mpi/host_calls.def"
#undef HOST_CALL
#define HOST_HANDLE(type, field, constant, symbol) host.field = HANDLE_VALUE(type, constant, symbol);
#include "transport/mpi/host_handles.def"
#undef HOST_HANDLE
#if defined(OPEN_MPI)
#define HOST_HANDLE(type, field, constant, symbol) \
    if (host.field == nullptr && missing == nullptr) missing = symbol;
#define HOST_TYPE(field, constant, symbol) \
    if (host.field == nullptr) host.field = host.datatype_null;
#include "transport/mpi/host_handles.def"
#undef HOST_HANDLE
    host.comm_of_fortran = reinterpret_cast<decltype(host.comm_of_fortran)>(look_up("PMPI_Comm_f2c"));
    host.datatype_of_fortran = reinterpret_cast<decltype(host.datatype_of_fortran)>(look_up("PMPI_Type_f2c"));
    host.op_of_fortran = reinterpret_cast<decltype(host.op_of_fortran)>(look_up("PMPI_Op_f2c"));
    host.request_of_fortran =
        reinterpret_cast<decltype(host.request_of_fortran)>(look_up("PMPI_Request_f2c"));
    host.request_to_fortran =
        reinterpret_cast<decltype(host.request_to_fortran)>(look_up("PMPI_Request_c2f"));
#elif defined(MPI_ABI_VERSION)
    host.comm_of_fortran = reinterpret_cast<decltype(host.comm_of_fortran)>(look_up("PMPI_Comm_fromint"));
    host.datatype_of_fortran =
        reinterpret_cast<decltype(host.datatype_of_fortran)>(look_up("PMPI_Type_fromint"));
    host.op_of_fortran = reinterpret_cast<decltype(host.op_of_fortran)>(look_up("PMPI_Op_fromint"));
    host.request_of_fortran =
        reinterpret_cast<decltype(host.request_of_fortran)>(look_up("PMPI_Request_fromint"));
    host.request_to_fortran =
        reinterpret_cast<decltype(host.request_to_fortran)>(look_up("PMPI_Request_toint"));
#else
    host.comm_of_fortran = [](int comm) { return static_cast<MPI_Comm>(comm); };
    host.datatype_of_fortran = [](int datatype) { return static_cast<MPI_Datatype>(datatype); };
    host.op_of_fortran = [](int operation) { return static_cast<MPI_Op>(operation); };
    host.request_of_fortran = [](int request) { return static_cast<MPI_Request>(request); };
    host.request_to_fortran = [](MPI_Request request) { return static_cast<int>(request); };
#endif
    if (missing != nullptr) say("the MPI library of this process lacks ", missing);
    return missing == nullptr;
}

// Where Fortran's MPI_BOTTOM, MPI_IN_PLACE and MPI_STATUSES_IGNORE may lie: in common blocks, which the
// program and the library share under one of the spellings that compilers use. In the MPICH family one block
// begins with the first two, another with the third.
constexpr int fortran_spellings = 4;
struct FortranSentinels {
    const void* bottom[fortran_spellings];
    const void* in_place[fortran_spellings];
    const void* statuses[fortran_spellings + 1];  // and that of mpi_f08
};
std::atomic<const FortranSentinels*> fortran_sentinels{nullptr};

const FortranSentinels* find_fortran_sentinels() {
#if defined(OPEN_MPI)
    const char* bottoms[] = {"mpi_fortran_bottom_", "mpi_fortran_bottom", "mpi_fortran_bottom__",
                             "MPI_FORTRAN_BOTTOM"};
    const char* in_places[] = {"mpi_fortran_in_place_", "mpi_fortran_in_place", "mpi_fortran_in_place__",
                               "MPI_FORTRAN_IN_PLACE"};
    const char* statuses[] = {"mpi_fortran_statuses_ignore_", "mpi_fortran_statuses_ignore",
                              "mpi_fortran_statuses_ignore__", "MPI_FORTRAN_STATUSES_IGNORE"};
    constexpr std::size_t in_place_at = 0;
#else
    const char* bottoms[] = {"mpipriv1_", "mpipriv1", "mpipriv1__", "MPIPRIV1"};
    const char** const in_places = bottoms;
    const char* statuses[] = {"mpipriv2_", "mpipriv2", "mpipriv2__", "MPIPRIV2"};
    constexpr std::size_t in_place_at = sizeof(int);
#endif
    // The program's own block first: the one that all its compilation units and the library were bound to.
    const auto address_of = [](const char* symbol) {
        void* const address = dlsym(RTLD_DEFAULT, symbol);
        return static_cast<const char*>(address != nullptr ? address : look_up(symbol));
    };
    static FortranSentinels sentinels;
    pthread_mutex_lock(&search_lock);
    for (int i = 0; i < fortran_spellings; ++i) {
        sentinels.bottom[i] = address_of(bottoms[i]);
        const char* const block = address_of(in_places[i]);
        sentinels.in_place[i] = block == nullptr ? nullptr : block + in_place_at;
        sentinels.statuses[i] = address_of(statuses[i]);
    }
    // In the MPICH family an object of the library's; Open MPI has one for all three.
    sentinels.statuses[fortran_spellings] = address_of("MPIR_F08_MPI_STATUSES_IGNORE_OBJ");
    dlerror();
    fortran_sentinels.store(&sentinels, std::memory_order_release);
    pthread_mutex_unlock(&search_lock);
    return &sentinels;
}

template <std::size_t n>
bool is_one_of(const void* buffer, const void* const (&addresses)[n]) {
    for (const void* address : addresses)
        if (buffer == address) return buffer != nullptr;
    return false;
}

const FortranSentinels& known_sentinels() {
    const FortranSentinels* known = fortran_sentinels.load(std::memory_order_acquire);
    return known != nullptr ? *known : *find_fortran_sentinels();
}

// Pre: search_lock is held.
const Host* search() {
    if (refused) return nullptr;
    void* init = look_up("PMPI_Init");
    if (init == nullptr)
        return nullptr;  // no MPI yet: it may still be loaded, so this is not an answer for ever
    remember_native_file(init);
    // The library found may be of any family: its buffer is as long as the longest of them asks for.
    static char version[8192];
    int length = 0;
    auto get_version = reinterpret_cast<int (*)(char*, int*)>(look_up("PMPI_Get_library_version"));
    if (get_version == nullptr || get_version(version, &length) != MPI_SUCCESS) version[0] = '\0';
    const Abi abi = probe_abi(version);
    version[std::strcspn(version, "\n")] = '\0';
    if (abi != built_for) {
        refused = true;
        char detail[256];
        std::snprintf(detail, sizeof detail, "%s, but this process runs \"%.120s\"%s", built_for_name,
                      version, abi == Abi::standard ? " in the MPI standard ABI" : "");
        say("this build is for ", detail);
        return nullptr;
    }
    if (!fill(storage)) {
        refused = true;
        return nullptr;
    }
    std::snprintf(storage.library_version, sizeof storage.library_version, "%s", version);
    found.store(&storage, std::memory_order_release);
    return &storage;
}

}  // namespace

const Host* host() { return found.load(std::memory_order_acquire); }

bool is_fortran_bottom(const void* buffer) { return is_one_of(buffer, known_sentinels().bottom); }
bool is_fortran_in_place(const void* buffer) { return is_one_of(buffer, known_sentinels().in_place); }
bool is_fortran_statuses_ignore(const void* statuses) {
    return is_one_of(statuses, known_sentinels().statuses);
}

const Host* find_host() {
    if (const Host* known = host()) return known;
    pthread_mutex_lock(&search_lock);
    const Host* result = host();
    if (result == nullptr) result = search();
    pthread_mutex_unlock(&search_lock);
    return result;
}

#if defined(MPI_ABI_VERSION)
// The libraries with the standard ABI do not agree on its constants: 0x142 is MPI_ERRORS_ABORT in the
// standard and in MPICH 5.0.2, and MPI_ERRORS_RETURN in Intel MPI 2021.18. A handler of our own that does
// nothing would not be the latter everywhere: where one has run, MPICH 5.0.2 returns success.
void complete_host() {
    if (host() == nullptr || std::strncmp(storage.library_version, "Intel(R) MPI", 12) != 0) return;
    storage.errors_return = reinterpret_cast<MPI_Errhandler>(std::uintptr_t{0x142});
}
#else
void complete_host() {}
#endif

const char* host_family() {
    const char* const version = host()->library_version;
    if (std::strstr(version, "Open MPI") != nullptr) return "openmpi";
    return std::strstr(version, "Intel(R) MPI") != nullptr ? "impi" : "mpich";
}

void* find_native(const char* symbol) { return look_up(symbol); }

}  // namespace thalweg
