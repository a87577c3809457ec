// The native MPI underneath, by address: every MPI function and predefined handle that we use ourselves. The
// preload objects have no NEEDED entry on any MPI, so nothing here is linked; all is looked up once.
//
// host_calls.def has one row per function, host_handles.def one per predefined handle. A required function
// that is missing makes us pass everything through with one sentence; an optional one is null. Internal
// traffic uses PMPI_*, so that profiling tools do not see it.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace thalweg {

struct Host {
#define HOST_CALL(name, need) decltype(&PMPI_##name) name = nullptr;
#include "transport/mpi/host_calls.def"
#undef HOST_CALL
    // Predefined handles: constants in the MPICH and standard ABIs, addresses of the library's data in Open
    // MPI.
#define HOST_HANDLE(type, field, constant, symbol) type field;
#include "transport/mpi/host_handles.def"
#undef HOST_HANDLE
    // Fortran's integers to C's handles: identity in the MPICH ABI, PMPI_*_f2c or PMPI_*_fromint elsewhere.
    MPI_Comm (*comm_of_fortran)(int) = nullptr;
    MPI_Datatype (*datatype_of_fortran)(int) = nullptr;
    MPI_Op (*op_of_fortran)(int) = nullptr;
    MPI_Request (*request_of_fortran)(int) = nullptr;
    int (*request_to_fortran)(MPI_Request) = nullptr;
    // What MPI_Get_library_version says, one line. Lives as long as the process.
    char library_version[128] = "";
};

// The native library, null until find_host() has found it. Never changes once it is set. Lock-free.
const Host* host();

// As tuning rows name it: "mpich", "openmpi", "impi". Pre: host() is not null.
const char* host_family();

// The handles h of predefined datatypes, (h & mask) == predefined, that tell their size: bits 8 to 15, in
// bytes. So they do in the MPICH ABI (ABI Compatibility Initiative: MPI_CHAR is 0x4c000101, MPI_DOUBLE
// 0x4c00080b); elsewhere none is taken for one.
struct SizesInHandles {
    std::uint32_t mask, predefined;
};
#if defined(OPEN_MPI) || defined(MPI_ABI_VERSION)
inline constexpr SizesInHandles sizes_in_handles{0, 1};
#else
inline constexpr SizesInHandles sizes_in_handles{0xff000000, 0x4c000000};
#endif

// Whether it can be a datatype's handle at all. Asked about what cannot, the library tells MPI_COMM_SELF's
// error handler, or the world's, which may end the process; in the program's call it tells that of the call's
// communicator.
inline bool may_be_datatype(MPI_Datatype type) {
#if defined(OPEN_MPI) || defined(MPI_ABI_VERSION)
    return type != nullptr;
#else
    // Bits 26 to 29 say what it is the handle of, the two above them where that lies.
    const auto handle = static_cast<std::uint32_t>(type);
    return (handle >> 26 & 15) == 3 && handle >> 30 != 0;
#endif
}

// Looks for the native library if that has not succeeded yet. Null where the process has no MPI, or one whose
// ABI is not the one this object was built for, or one that lacks a required function; the reason is then
// written to standard error, once. Thread-safe; allocates; called from the wrappers of MPI_Init and
// MPI_Session_init.
const Host* find_host();

// To be called after the native initialisation, before anything uses errors_return: corrects it where its
// constant cannot be trusted. Local.
void complete_host();

// The address of `symbol` in the native MPI or in a library beside it, however it was loaded (RTLD_LOCAL too,
// as Python does); null when there is none. Slow: walks the loaded objects. dlerror() is left clear.
void* find_native(const char* symbol);

// Whether a buffer that came from Fortran is Fortran's MPI_BOTTOM, which is a variable there. The variable's
// address may differ between processes; it is looked up at the first question.
bool is_fortran_bottom(const void* buffer);
// The same for MPI_IN_PLACE.
bool is_fortran_in_place(const void* buffer);
// The same for statuses that are MPI_STATUSES_IGNORE.
bool is_fortran_statuses_ignore(const void* statuses);

}  // namespace thalweg
