// The ELF reader on a real library with damaged fields: it refuses or answers, and never reads outside the
// file, behind which this harness puts a page that cannot be read.
//
// An input is a list of changes to the sample: which field of which table (or any byte), and what is written
// there.
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "elf_file.h"
#include "fuzz/fuzz.h"

using namespace thalweg;

namespace {

constexpr std::size_t page = 4096;

struct Field {
    std::size_t offset, bytes;
};

struct Sample {
    std::string bytes;          // whole pages: the last byte of the file is the last that can be read
    std::vector<Field> fields;  // of the tables that the reader follows

    template <typename T>
    T at(std::size_t offset) const {
        T value;
        if (offset + sizeof value > bytes.size()) fuzz::fail("the sample is damaged");
        std::memcpy(&value, bytes.data() + offset, sizeof value);
        return value;
    }

    void add(std::size_t offset, std::size_t count, std::size_t width) {
        for (std::size_t i = 0; i < count; ++i) fields.push_back({offset + i * width, width});
    }

    Sample() {
        std::ifstream file(THALWEG_FUZZ_SAMPLE, std::ios::binary);
        bytes.assign(std::istreambuf_iterator<char>(file), {});
        if (bytes.empty()) fuzz::fail("cannot read " THALWEG_FUZZ_SAMPLE);
        // Not with zeros, which would end every text inside the file.
        bytes.resize(bytes.size() / page * page + page, 'x');
        const auto header = at<Elf64_Ehdr>(0);
        add(offsetof(Elf64_Ehdr, e_type), 2, 2);
        add(offsetof(Elf64_Ehdr, e_phoff), 2, 8);
        add(offsetof(Elf64_Ehdr, e_ehsize), 6, 2);
        for (std::size_t i = 0; i < header.e_phnum; ++i) {
            const std::size_t offset = header.e_phoff + i * sizeof(Elf64_Phdr);
            const auto program = at<Elf64_Phdr>(offset);
            add(offset, 2, 4);
            add(offset + 8, 6, 8);
            if (program.p_type == PT_DYNAMIC) add(program.p_offset, program.p_filesz / 8, 8);
        }
        for (std::size_t i = 0; i < header.e_shnum; ++i) {
            const std::size_t offset = header.e_shoff + i * sizeof(Elf64_Shdr);
            const auto section = at<Elf64_Shdr>(offset);
            add(offset, 2, 4);
            add(offset + 8, 4, 8);
            add(offset + 40, 2, 4);
            if (section.sh_type == SHT_GNU_HASH || section.sh_type == SHT_HASH)
                add(section.sh_offset, section.sh_size / 4, 4);
            if (section.sh_type == SHT_GNU_verneed) add(section.sh_offset, section.sh_size / 4, 4);
            if (section.sh_type == SHT_DYNSYM) add(section.sh_offset, section.sh_size / 8, 8);
        }
    }
};

const Sample& sample() {
    static const Sample made;
    return made;
}

std::string damaged(fuzz::Input& input) {
    std::string bytes = sample().bytes;
    if (input.chance(16)) bytes.resize(page * input.below(bytes.size() / page + 1));
    while (!input.empty() && !bytes.empty()) {
        Field field = sample().fields[input.word(2) % sample().fields.size()];
        if (input.chance(8)) field = {input.word(2) % bytes.size(), 1};
        const std::uint64_t limits[] = {0,
                                        1,
                                        ~std::uint64_t{0},
                                        bytes.size(),
                                        bytes.size() - 1,
                                        bytes.size() - 8,
                                        bytes.size() + 1,
                                        std::uint64_t{1} << 31,
                                        std::uint64_t{1} << 63};
        std::uint64_t value = 0;
        if (field.offset + field.bytes > bytes.size()) continue;
        std::memcpy(&value, bytes.data() + field.offset, field.bytes);
        switch (input.below(4)) {
            case 0:
                value = limits[input.below(std::size(limits))];
                break;
            case 1:
                value += static_cast<std::uint64_t>(input.between(-16, 16));
                break;
            case 2:
                value = input.word(2);
                break;
            default:
                value = input.word(static_cast<int>(field.bytes));
                break;
        }
        std::memcpy(bytes.data() + field.offset, &value, field.bytes);
    }
    return bytes;
}

// Everything the reader can be asked; the answers lie in the file.
void ask(const std::string& path, std::size_t file_bytes, bool whole) {
    const auto file = tool::ElfFile::open(path);
    if (file == nullptr) {
        if (whole) fuzz::fail("the sample is refused");
        return;
    }
    for (const std::string* text : {&file->interpreter(), &file->soname(), &file->rpath(), &file->runpath()})
        if (text->size() >= file_bytes) fuzz::fail("a text longer than the file");
    for (const std::string& needed : file->needed())
        if (needed.size() >= file_bytes) fuzz::fail("a name longer than the file");
    for (const tool::ElfFile::Version& version : file->required_versions())
        if (version.library.size() >= file_bytes || version.name.size() >= file_bytes)
            fuzz::fail("a version longer than the file");
    const bool first = file->exports("thalweg_fuzz_sample_first"),
               absent = file->exports("thalweg_fuzz_absent");
    static constexpr std::string_view names[] = {"thalweg_fuzz_sample_second", "MPI_Init"};
    static constexpr std::string_view nobody[] = {"thalweg_fuzz_absent"};
    const bool second = file->defines_any(names), none = file->defines_any(nobody);
    if (!whole) return;
    if (!first || absent || !second || none) fuzz::fail("wrong answers about the sample's symbols");
    if (file->soname() != "libthalweg-fuzz-sample.so" || file->needed().empty() || !file->native())
        fuzz::fail("wrong answers about the sample");
}

}  // namespace

// The reader's mappings, each with a page behind it that cannot be read (the linker's --wrap sends its calls
// here).
extern "C" void* __real_mmap(void*, std::size_t, int, int, int, off_t);
extern "C" int __real_munmap(void*, std::size_t);

extern "C" void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                             off_t offset) {
    if (file < 0 || address != nullptr) return __real_mmap(address, bytes, protection, flags, file, offset);
    const std::size_t room = (bytes + page - 1) / page * page;
    void* all = __real_mmap(nullptr, room + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return all;
    return __real_mmap(all, bytes, protection, flags | MAP_FIXED, file, offset);
}

extern "C" int __wrap_munmap(void* address, std::size_t bytes) {
    return __real_munmap(address, (bytes + page - 1) / page * page + page);
}

std::vector<std::string> fuzz::seeds() { return {""}; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::string bytes = damaged(input);
    const int memory = memfd_create("thalweg-fuzz", MFD_CLOEXEC);
    if (memory < 0 || write(memory, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        fuzz::fail("cannot make a file in memory");
    ask("/proc/self/fd/" + std::to_string(memory), bytes.size(), size == 0);
    close(memory);
    return 0;
}
