// Reads what the dynamic loader reads of an ELF file: who it needs, where it looks, what it exports. Nothing
// is loaded or run. Every offset is checked against the file's size, so a damaged file is refused and never
// followed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::tool {

class ElfFile {
  public:
    // Null when the file cannot be read or is no ELF file.
    static std::unique_ptr<ElfFile> open(const std::string& path);
    ~ElfFile();
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;

    // False for another word size, byte order or processor than this program's: nothing below is then filled
    // in.
    bool native() const { return native_; }
    bool executable() const { return type_executable_; }
    const std::string& interpreter() const { return interpreter_; }  // empty: a library or a static program
    const std::string& soname() const { return soname_; }
    const std::vector<std::string>& needed() const { return needed_; }
    const std::string& rpath() const { return rpath_; }
    const std::string& runpath() const { return runpath_; }
    bool ignores_default_paths() const { return no_default_library_; }
    std::uint64_t device() const { return device_; }
    std::uint64_t inode() const { return inode_; }

    // Whether the dynamic symbol table defines `name`. One or two memory accesses in the common case.
    bool exports(std::string_view name) const;

    // Names that the file must find elsewhere, or its loader refuses it: undefined, and not weak. Reads all
    // dynamic symbols; they live as long as this.
    std::vector<std::string_view> required() const;

    // Versions of libraries' symbols without which its loader refuses the file. They live as long as this.
    struct Version {
        std::string_view library, name;  // "libc.so.6", "GLIBC_2.34"
    };
    std::vector<Version> required_versions() const;

    // Whether any symbol table left in the file defines one of `names`. Reads all symbols: use it last.
    bool defines_any(std::span<const std::string_view> names) const;

  private:
    ElfFile() = default;
    bool read_headers();
    void read_dynamic(std::size_t offset, std::size_t size);
    template <typename T>
    const T* at(std::size_t offset, std::size_t count = 1) const;
    template <typename Use>
    void each_symbol(std::uint32_t table_type, Use use) const;
    const char* text_at(std::size_t offset) const;  // empty text where it does not end inside the file
    std::size_t offset_of_address(std::uint64_t address) const;
    bool symbol_defined_as(std::uint32_t index, std::string_view name) const;

    struct Segment {
        std::uint64_t address, offset, size;
    };

    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    std::uint64_t device_ = 0, inode_ = 0;
    bool native_ = false, type_executable_ = false, no_default_library_ = false;
    std::string interpreter_, soname_, rpath_, runpath_;
    std::vector<std::string> needed_;
    std::vector<Segment> segments_;
    std::size_t strings_ = 0, symbols_ = 0, gnu_hash_ = 0, sysv_hash_ = 0, versions_ = 0;
};

}  // namespace thalweg::tool
