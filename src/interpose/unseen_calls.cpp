#include "interpose/unseen_calls.h"

#include <elf.h>
#include <link.h>
#include <strings.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "interpose/generated/plain_names.h"

namespace thalweg {
namespace {

// From C, and from Fortran by each compiler's spelling and each module's.
constexpr const char* openings[] = {"MPI_Session_init",     "mpi_session_init_",      "mpi_session_init",
                                    "mpi_session_init__",   "MPI_SESSION_INIT",       "mpi_session_init_f08_",
                                    "mpi_session_init_f08", "mpi_session_init_f08ts_"};

bool opens(const char* name) {
    return std::any_of(std::begin(openings), std::end(openings),
                       [&](const char* opening) { return std::strcmp(name, opening) == 0; });
}

// By every spelling of all of them.
bool asks(const char* name) {
    constexpr char stem[] = "mpi_request_get_status_a";
    constexpr char some[] = "mpi_request_get_status_some";
    return strncasecmp(name, stem, sizeof stem - 1) == 0 || strncasecmp(name, some, sizeof some - 1) == 0;
}

// Likewise.
bool revokes(const char* name) {
    constexpr char extension[] = "mpix_comm_revoke", younger[] = "mpi_comm_revoke";
    return strncasecmp(name, extension, sizeof extension - 1) == 0 ||
           strncasecmp(name, younger, sizeof younger - 1) == 0;
}

bool is_in_capitals(const char* name, const char* low) {
    for (; *low != '\0'; ++low, ++name)
        if (*name != (*low == '_' ? '_' : *low - 'a' + 'A')) return false;
    return *name == '\0';
}

// In small letters or in capitals, as compilers spell it that append nothing.
bool is_plain(const char* name) {
    const bool small = std::strncmp(name, "mpi_", 4) == 0;
    if (!small && std::strncmp(name, "MPI_", 4) != 0) return false;
    return std::any_of(std::begin(plain_names), std::end(plain_names), [&](const char* plain) {
        return small ? std::strcmp(name, plain) == 0 : is_in_capitals(name, plain);
    });
}

// What is looked for, and what ends the name of the object of ours that has it.
struct Names {
    bool (*have)(const char* name);
    const char* object;
    bool elsewhere;  // not where the object that calls it defines it itself
};

const char* file_of(const char* path) {
    const char* const slash = std::strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
}

// Some C libraries leave addresses in the dynamic section as they stand in the file.
const char* address_in(const dl_phdr_info& object, ElfW(Addr) value) {
    return reinterpret_cast<const char*>(value < object.dlpi_addr ? object.dlpi_addr + value : value);
}

struct Relocations {
    const char* table = nullptr;
    std::size_t bytes = 0;

    bool name_one_of(const Names& wanted, const ElfW(Sym) * symbols, const char* names) const {
        for (std::size_t at = 0; at + sizeof(ElfW(Rela)) <= bytes; at += sizeof(ElfW(Rela))) {
            const auto& relocation = *reinterpret_cast<const ElfW(Rela)*>(table + at);
            const auto symbol = ELF64_R_SYM(relocation.r_info);
            if (symbol == 0 || (wanted.elsewhere && symbols[symbol].st_shndx != SHN_UNDEF)) continue;
            if (wanted.have(names + symbols[symbol].st_name)) return true;
        }
        return false;
    }
};

bool calls_one(const dl_phdr_info& object, const Names& wanted) {
    static_assert(sizeof(void*) == 8, "ELF64 only, with addends");
    const ElfW(Dyn)* dynamic = nullptr;
    for (int i = 0; i < object.dlpi_phnum; ++i)
        if (object.dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    if (dynamic == nullptr) return false;
    const ElfW(Sym)* symbols = nullptr;
    const char* names = nullptr;
    Relocations functions, others;
    bool has_addends = true;
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
        switch (dynamic->d_tag) {
            case DT_SYMTAB:
                symbols = reinterpret_cast<const ElfW(Sym)*>(address_in(object, dynamic->d_un.d_ptr));
                break;
            case DT_STRTAB:
                names = address_in(object, dynamic->d_un.d_ptr);
                break;
            case DT_JMPREL:
                functions.table = address_in(object, dynamic->d_un.d_ptr);
                break;
            case DT_PLTRELSZ:
                functions.bytes = dynamic->d_un.d_val;
                break;
            case DT_PLTREL:
                has_addends = dynamic->d_un.d_val == DT_RELA;
                break;
            case DT_RELA:
                others.table = address_in(object, dynamic->d_un.d_ptr);
                break;
            case DT_RELASZ:
                others.bytes = dynamic->d_un.d_val;
                break;
        }
    }
    if (symbols == nullptr || names == nullptr || !has_addends) return false;
    return (functions.table != nullptr && functions.name_one_of(wanted, symbols, names)) ||
           (others.table != nullptr && others.name_one_of(wanted, symbols, names));
}

const Names& wanted(const void* data) { return *static_cast<const Names*>(data); }

int is_ours(dl_phdr_info* object, std::size_t, void* data) {
    const char* const file = file_of(object->dlpi_name == nullptr ? "" : object->dlpi_name);
    return std::strncmp(file, "libthalweg", 10) == 0 && std::strstr(file, wanted(data).object) != nullptr;
}

int relies_on_them(dl_phdr_info* object, std::size_t, void* data) {
    const char* const file = file_of(object->dlpi_name == nullptr ? "" : object->dlpi_name);
    // The MPI's own libraries: its Fortran names call the C ones, whether or not the program does. The
    // kernel's object has no relocations, and its addresses are not as the others'.
    for (const char* const other : {"libthalweg", "libmpi", "linux-vdso"})
        if (std::strncmp(file, other, std::strlen(other)) == 0) return 0;
    return calls_one(*object, wanted(data));
}

// Names of objects first: where ours is loaded, as by `thalweg run`, nobody's relocations are read.
bool are_called_unseen(Names names) {
    return dl_iterate_phdr(is_ours, &names) == 0 && dl_iterate_phdr(relies_on_them, &names) != 0;
}

}  // namespace

bool may_open_sessions_unseen() { return are_called_unseen({opens, "-sessions", false}); }
bool may_ask_unseen() { return are_called_unseen({asks, "-status", false}); }

bool may_call_by_plain_names() {
    Names names{is_plain, nullptr, true};
    return dl_iterate_phdr(relies_on_them, &names) != 0;
}

bool may_revoke_communicators() {
    Names names{revokes, nullptr, true};
    return dl_iterate_phdr(relies_on_them, &names) != 0;
}

}  // namespace thalweg
