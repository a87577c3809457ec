#include "loader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace thalweg::tool {

namespace {

#if defined(__x86_64__)
constexpr std::string_view multiarch = "x86_64-linux-gnu";
#elif defined(__aarch64__)
constexpr std::string_view multiarch = "aarch64-linux-gnu";
#elif defined(__powerpc64__)
constexpr std::string_view multiarch = "powerpc64le-linux-gnu";
#else
constexpr std::string_view multiarch = "riscv64-linux-gnu";
#endif

// What $LIB may mean: the distributions differ, so each is tried.
const std::string library_folders[] = {"lib/" + std::string(multiarch), "lib64", "lib"};

void replace_all(std::string& text, std::string_view what, std::string_view by) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
        text.replace(at, what.size(), by);
}

}  // namespace

// /etc/ld.so.cache, as written by ldconfig: a header, an array of (name, path) offsets, the texts.
struct Loader::Cache {
    const char* data = nullptr;
    std::size_t size = 0, base = 0;
    std::uint32_t count = 0;

    struct Header {
        char magic[20];
        std::uint32_t count, text_bytes;
        std::uint8_t flags, padding[3];
        std::uint32_t extension_offset, unused[3];
    };
    struct Entry {
        std::int32_t flags;
        std::uint32_t name, path, os_version;
        std::uint64_t hwcap;
    };
    static_assert(sizeof(Header) == 48 && sizeof(Entry) == 24);

    Cache() {
        const int descriptor = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
        struct stat status {};
        if (descriptor < 0) return;
        if (fstat(descriptor, &status) == 0 && status.st_size >= static_cast<off_t>(sizeof(Header))) {
            size = static_cast<std::size_t>(status.st_size);
            void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
            if (memory != MAP_FAILED) data = static_cast<const char*>(memory);
        }
        close(descriptor);
        if (data == nullptr) return;
        // Older ldconfigs put the new table behind an old one: magic, count, entries of 12 bytes.
        if (std::memcmp(data, "ld.so-1.7.0", 11) == 0) {
            std::uint32_t old_count = 0;
            std::memcpy(&old_count, data + 12, sizeof old_count);
            base = (16 + std::size_t{old_count} * 12 + 7) / 8 * 8;
        }
        if (base + sizeof(Header) > size || std::memcmp(data + base, "glibc-ld.so.cache1.1", 20) != 0) return;
        Header header;
        std::memcpy(&header, data + base, sizeof header);
        if (header.count <= (size - base - sizeof(Header)) / sizeof(Entry)) count = header.count;
    }
    ~Cache() {
        if (data != nullptr) munmap(const_cast<char*>(data), size);
    }

    std::string_view text(std::uint32_t offset) const {
        if (base + offset >= size) return {};
        return {data + base + offset, strnlen(data + base + offset, size - base - offset)};
    }

    // The next entry for `name` at or after `index`, or `count`.
    std::uint32_t find(std::string_view name, std::uint32_t index, std::string_view& path) const {
        for (; index < count; ++index) {
            Entry entry;
            std::memcpy(&entry, data + base + sizeof(Header) + std::size_t{index} * sizeof entry,
                        sizeof entry);
            if (entry.hwcap != 0 || text(entry.name) != name) continue;
            path = text(entry.path);
            return index;
        }
        return count;
    }
};

Loader::Loader(const Environment& environment) : environment_(environment) {}
Loader::~Loader() = default;

const LoadedObject* Loader::already_loaded(std::string_view name) const {
    for (const auto& object : objects_)
        if (object->requested == name || (!object->file->soname().empty() && object->file->soname() == name))
            return object.get();
    return nullptr;
}

const LoadedObject* Loader::try_file(const std::string& path, std::string_view name,
                                     const LoadedObject* requester) {
    auto file = ElfFile::open(path);
    if (file == nullptr || !file->native())
        return nullptr;  // glibc skips libraries of another word size, too
    for (const auto& object : objects_)
        if (object->file->device() == file->device() && object->file->inode() == file->inode())
            return object.get();
    objects_.push_back(
        std::make_unique<LoadedObject>(LoadedObject{path, std::string(name), std::move(file), requester}));
    return objects_.back().get();
}

const LoadedObject* Loader::try_folders(std::string_view folders, std::string_view separators,
                                        std::string_view name, const LoadedObject& origin,
                                        const LoadedObject* requester) {
    for (std::string_view part : split(folders, separators)) {
        std::string folder(part.empty() ? std::string_view(".") : part);
        if (folder.find('$') == std::string::npos) {
            if (const auto* found = try_file(folder + "/" + std::string(name), name, requester)) return found;
            continue;
        }
        // $ORIGIN of the program is its real place; of a library, the path it was found by.
        const std::string home = folder_of(origin.loader == nullptr ? canonical(origin.path) : origin.path);
        replace_all(folder, "${ORIGIN}", home);
        replace_all(folder, "$ORIGIN", home);
        for (const std::string& library_folder : library_folders) {
            std::string candidate = folder;
            replace_all(candidate, "${LIB}", library_folder);
            replace_all(candidate, "$LIB", library_folder);
            if (const auto* found = try_file(candidate + "/" + std::string(name), name, requester))
                return found;
            if (candidate == folder) break;
        }
    }
    return nullptr;
}

const LoadedObject* Loader::try_cache(std::string_view name, const LoadedObject* requester) {
    if (!cache_opened_) cache_ = std::make_unique<Cache>();
    cache_opened_ = true;
    std::string_view path;
    for (std::uint32_t at = 0; (at = cache_->find(name, at, path)) < cache_->count; ++at)
        if (const auto* found = try_file(std::string(path), name, requester)) return found;
    return nullptr;
}

const LoadedObject* Loader::find(std::string_view name, const LoadedObject* requester) {
    if (const auto* loaded = already_loaded(name)) return loaded;
    if (name.find('/') != std::string_view::npos) return try_file(std::string(name), name, requester);
    if (requester != nullptr && requester->file->runpath().empty()) {
        for (const LoadedObject* link = requester; link != nullptr; link = link->loader)
            if (link->file->runpath().empty())
                if (const auto* found = try_folders(link->file->rpath(), ":", name, *link, requester))
                    return found;
        // A dlopened library's chain does not end at the program, yet the program's DT_RPATH counts.
        const LoadedObject& program = *objects_.front();
        if (program.file->runpath().empty())
            if (const auto* found = try_folders(program.file->rpath(), ":", name, program, requester))
                return found;
    }
    const LoadedObject& program = *objects_.front();
    if (const auto* found = try_folders(environment_.get("LD_LIBRARY_PATH"), ":;", name, program, requester))
        return found;
    if (requester != nullptr)
        if (const auto* found = try_folders(requester->file->runpath(), ":", name, *requester, requester))
            return found;
    if (requester != nullptr && requester->file->ignores_default_paths()) return nullptr;
    if (const auto* found = try_cache(name, requester)) return found;
    for (const std::string& folder : library_folders)
        for (const char* root : {"/", "/usr/"})
            if (const auto* found = try_file(root + folder + "/" + std::string(name), name, requester))
                return found;
    return nullptr;
}

bool Loader::walk(std::size_t from, const Visit& visit) {
    for (std::size_t i = from; i < objects_.size(); ++i) {
        const LoadedObject* object = objects_[i].get();  // stays in place while the vector grows
        if (!visit(*object)) return false;
        for (const std::string& name : object->file->needed())
            if (find(name, object) == nullptr) missing_.push_back(name);
    }
    return true;
}

const LoadedObject* Loader::load_program(const std::string& path, const Visit& visit) {
    auto file = ElfFile::open(path);
    if (file == nullptr || !file->native()) return nullptr;
    objects_.push_back(std::make_unique<LoadedObject>(LoadedObject{path, path, std::move(file), nullptr}));
    const LoadedObject* program = objects_.front().get();
    for (std::string_view name : split(environment_.get("LD_PRELOAD"), ": "))
        if (!name.empty()) find(name, program);
    walk(0, visit);
    return program;
}

const LoadedObject* Loader::load_library(std::string_view name, const LoadedObject* requester,
                                         const Visit& visit) {
    const std::size_t from = objects_.size();
    const LoadedObject* library = find(name, requester);
    if (library != nullptr) walk(from, visit);
    return library;
}

}  // namespace thalweg::tool
