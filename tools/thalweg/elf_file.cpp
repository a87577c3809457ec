#include "elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace thalweg::tool {

namespace {

#if defined(__x86_64__)
constexpr Elf64_Half native_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half native_machine = EM_AARCH64;
#elif defined(__powerpc64__)
constexpr Elf64_Half native_machine = EM_PPC64;
#elif defined(__riscv)
constexpr Elf64_Half native_machine = EM_RISCV;
#else
#error "name this processor's EM_* constant here"
#endif
constexpr unsigned char native_order = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

}  // namespace

template <typename T>
const T* ElfFile::at(std::size_t offset, std::size_t count) const {
    if (offset > size_ || count > (size_ - offset) / sizeof(T) || offset % alignof(T) != 0) return nullptr;
    return reinterpret_cast<const T*>(data_ + offset);
}

const char* ElfFile::text_at(std::size_t offset) const {
    if (offset >= size_ || std::memchr(data_ + offset, 0, size_ - offset) == nullptr) return "";
    return reinterpret_cast<const char*>(data_ + offset);
}

std::size_t ElfFile::offset_of_address(std::uint64_t address) const {
    for (const Segment& segment : segments_)
        if (address >= segment.address && address - segment.address < segment.size)
            return segment.offset + (address - segment.address);
    return size_;  // nothing can be read there
}

std::unique_ptr<ElfFile> ElfFile::open(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return nullptr;
    struct stat status {};
    void* memory = MAP_FAILED;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= 64)
        memory =
            mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (memory == MAP_FAILED) return nullptr;
    std::unique_ptr<ElfFile> file(new ElfFile);
    file->data_ = static_cast<const std::byte*>(memory);
    file->size_ = static_cast<std::size_t>(status.st_size);
    file->device_ = status.st_dev;
    file->inode_ = status.st_ino;
    return file->read_headers() ? std::move(file) : nullptr;
}

ElfFile::~ElfFile() {
    if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

bool ElfFile::read_headers() {
    const auto* header = at<Elf64_Ehdr>(0);
    if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
    native_ = header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == native_order &&
              header->e_machine == native_machine && header->e_phentsize == sizeof(Elf64_Phdr);
    if (!native_) return true;
    type_executable_ = header->e_type == ET_EXEC;
    const auto* programs = at<Elf64_Phdr>(header->e_phoff, header->e_phnum);
    if (programs == nullptr) return false;
    const Elf64_Phdr* dynamic = nullptr;
    for (const Elf64_Phdr& program : std::span(programs, header->e_phnum)) {
        if (program.p_type == PT_LOAD)
            segments_.push_back({program.p_vaddr, program.p_offset, program.p_filesz});
        if (program.p_type == PT_INTERP) interpreter_ = text_at(program.p_offset);
        if (program.p_type == PT_DYNAMIC) dynamic = &program;
    }
    if (!interpreter_.empty()) type_executable_ = true;
    if (dynamic != nullptr) read_dynamic(dynamic->p_offset, dynamic->p_filesz);
    return true;
}

void ElfFile::read_dynamic(std::size_t offset, std::size_t size) {
    const auto* entries = at<Elf64_Dyn>(offset, size / sizeof(Elf64_Dyn));
    if (entries == nullptr) return;
    std::vector<std::uint64_t> needed;
    std::uint64_t soname = 0, rpath = 0, runpath = 0;  // offset 0 of a string table is the empty text
    for (const Elf64_Dyn& entry : std::span(entries, size / sizeof(Elf64_Dyn))) {
        if (entry.d_tag == DT_NULL) break;
        switch (entry.d_tag) {
            case DT_NEEDED:
                needed.push_back(entry.d_un.d_val);
                break;
            case DT_SONAME:
                soname = entry.d_un.d_val;
                break;
            case DT_RPATH:
                rpath = entry.d_un.d_val;
                break;
            case DT_RUNPATH:
                runpath = entry.d_un.d_val;
                break;
            case DT_STRTAB:
                strings_ = offset_of_address(entry.d_un.d_ptr);
                break;
            case DT_SYMTAB:
                symbols_ = offset_of_address(entry.d_un.d_ptr);
                break;
            case DT_GNU_HASH:
                gnu_hash_ = offset_of_address(entry.d_un.d_ptr);
                break;
            case DT_HASH:
                sysv_hash_ = offset_of_address(entry.d_un.d_ptr);
                break;
            case DT_VERNEED:
                versions_ = offset_of_address(entry.d_un.d_ptr);
                break;
            case DT_FLAGS_1:
                no_default_library_ = (entry.d_un.d_val & DF_1_NODEFLIB) != 0;
                break;
            default:
                break;
        }
    }
    if (strings_ == 0) return;
    for (std::uint64_t name : needed) needed_.emplace_back(text_at(strings_ + name));
    if (soname != 0) soname_ = text_at(strings_ + soname);
    if (rpath != 0) rpath_ = text_at(strings_ + rpath);
    if (runpath != 0) runpath_ = text_at(strings_ + runpath);
}

bool ElfFile::symbol_defined_as(std::uint32_t index, std::string_view name) const {
    const auto* symbol = at<Elf64_Sym>(symbols_ + std::size_t{index} * sizeof(Elf64_Sym));
    return symbol != nullptr && symbol->st_shndx != SHN_UNDEF && text_at(strings_ + symbol->st_name) == name;
}

bool ElfFile::exports(std::string_view name) const {
    if (symbols_ == 0 || strings_ == 0) return false;
    if (gnu_hash_ != 0) {
        std::uint32_t hash = 5381;
        for (char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
        const auto* header = at<std::uint32_t>(gnu_hash_, 4);
        if (header == nullptr || header[0] == 0 || header[2] == 0) return false;
        const std::uint32_t bucket_count = header[0], first_symbol = header[1], bloom_words = header[2];
        const std::size_t bloom_at = gnu_hash_ + 16;
        const auto* bloom = at<std::uint64_t>(bloom_at, bloom_words);
        const std::size_t buckets_at = bloom_at + std::size_t{bloom_words} * 8;
        const auto* buckets = at<std::uint32_t>(buckets_at, bucket_count);
        if (bloom == nullptr || buckets == nullptr) return false;
        const std::uint64_t word = bloom[(hash / 64) % bloom_words];
        if ((word >> (hash % 64) & word >> ((hash >> (header[3] & 31)) % 64) & 1) == 0) return false;
        const std::size_t chains_at = buckets_at + std::size_t{bucket_count} * 4;
        for (std::uint32_t index = buckets[hash % bucket_count]; index >= first_symbol && index != 0;
             ++index) {
            const auto* chain = at<std::uint32_t>(chains_at + std::size_t{index - first_symbol} * 4);
            if (chain == nullptr) return false;
            if ((*chain | 1) == (hash | 1) && symbol_defined_as(index, name)) return true;
            if ((*chain & 1) != 0) return false;
        }
        return false;
    }
    const auto* header = sysv_hash_ == 0 ? nullptr : at<std::uint32_t>(sysv_hash_, 2);
    if (header == nullptr) return false;
    for (std::uint32_t index = 1; index < header[1] && at<Elf64_Sym>(symbols_ + std::size_t{index} * 24);
         ++index)
        if (symbol_defined_as(index, name)) return true;
    return false;
}

// Calls `use` with every symbol of the tables of one type and its name, until that returns false.
template <typename Use>
void ElfFile::each_symbol(std::uint32_t table_type, Use use) const {
    const auto* header = native_ ? at<Elf64_Ehdr>(0) : nullptr;
    if (header == nullptr || header->e_shentsize != sizeof(Elf64_Shdr)) return;
    const auto* sections = at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
    if (sections == nullptr) return;
    for (const Elf64_Shdr& section : std::span(sections, header->e_shnum)) {
        if (section.sh_type != table_type || section.sh_link >= header->e_shnum) continue;
        const std::size_t count = section.sh_size / sizeof(Elf64_Sym);
        const auto* symbols = at<Elf64_Sym>(section.sh_offset, count);
        if (symbols == nullptr) continue;
        const std::size_t strings = sections[section.sh_link].sh_offset;
        for (const Elf64_Sym& symbol : std::span(symbols, count))
            if (symbol.st_name != 0 && !use(symbol, std::string_view(text_at(strings + symbol.st_name))))
                return;
    }
}

std::vector<std::string_view> ElfFile::required() const {
    std::vector<std::string_view> names;
    each_symbol(SHT_DYNSYM, [&](const Elf64_Sym& symbol, std::string_view name) {
        if (symbol.st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL)
            names.push_back(name);
        return true;
    });
    return names;
}

std::vector<ElfFile::Version> ElfFile::required_versions() const {
    constexpr std::size_t most = 4096;  // a damaged file may have any number
    std::vector<Version> all;
    if (versions_ == 0 || strings_ == 0) return all;
    std::size_t library_at = versions_;
    while (const auto* library = at<Elf64_Verneed>(library_at)) {
        std::size_t version_at = library_at + library->vn_aux;
        for (unsigned i = 0; i < library->vn_cnt; ++i) {
            const auto* version = at<Elf64_Vernaux>(version_at);
            if (version == nullptr || all.size() == most) return all;
            if ((version->vna_flags & VER_FLG_WEAK) == 0)
                all.push_back({text_at(strings_ + library->vn_file), text_at(strings_ + version->vna_name)});
            if (version->vna_next == 0) break;
            version_at += version->vna_next;
        }
        if (library->vn_next == 0) break;
        library_at += library->vn_next;
    }
    return all;
}

bool ElfFile::defines_any(std::span<const std::string_view> names) const {
    bool any = false;
    for (const std::uint32_t type : {SHT_SYMTAB, SHT_DYNSYM})
        each_symbol(type, [&](const Elf64_Sym& symbol, std::string_view name) {
            any |= symbol.st_shndx != SHN_UNDEF && std::find(names.begin(), names.end(), name) != names.end();
            return !any;
        });
    return any;
}

}  // namespace thalweg::tool
