// Where the dynamic loader would find a library, by glibc's rules: DT_RPATH of the chain of loaders,
// LD_LIBRARY_PATH, DT_RUNPATH, ld.so.cache, default folders; $ORIGIN and $LIB; names already loaded. Nothing
// is run: asking the program's own interpreter (LD_TRACE_LOADED_OBJECTS) would map every library and take
// longer than all of this.
//
// Not followed: glibc-hwcaps subfolders (other copies of a library for newer processors; they export the
// same).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "elf_file.h"
#include "environment.h"

namespace thalweg::tool {

// One library or program as the loader would load it.
struct LoadedObject {
    std::string path;
    std::string requested;  // the name it was asked for by; the path for a root
    std::unique_ptr<ElfFile> file;
    const LoadedObject* loader = nullptr;  // who needed it; null for the program itself
};

class Loader {
  public:
    // `environment` must outlive the Loader.
    explicit Loader(const Environment& environment);
    ~Loader();

    // Loads the program as execve would, then LD_PRELOAD, then everything needed, breadth first as glibc
    // does, and shows each object in that order. Stops where `visit` returns false. Null when `path` is no
    // native ELF file.
    using Visit = std::function<bool(const LoadedObject&)>;
    const LoadedObject* load_program(const std::string& path, const Visit& visit);

    // dlopen(name) by `requester` after load_program: the object and what it needs. Null when it is not
    // found.
    const LoadedObject* load_library(std::string_view name, const LoadedObject* requester,
                                     const Visit& visit);

    // Names that some visited object needs and that were not found.
    const std::vector<std::string>& missing() const { return missing_; }

  private:
    const LoadedObject* already_loaded(std::string_view name) const;
    const LoadedObject* find(std::string_view name, const LoadedObject* requester);
    const LoadedObject* try_file(const std::string& path, std::string_view name,
                                 const LoadedObject* requester);
    const LoadedObject* try_folders(std::string_view folders, std::string_view separators,
                                    std::string_view name, const LoadedObject& origin,
                                    const LoadedObject* requester);
    const LoadedObject* try_cache(std::string_view name, const LoadedObject* requester);
    bool walk(std::size_t from, const Visit& visit);

    struct Cache;

    const Environment& environment_;
    std::vector<std::unique_ptr<LoadedObject>> objects_;  // in load order
    std::vector<std::string> missing_;
    std::unique_ptr<Cache> cache_;
    bool cache_opened_ = false;
};

}  // namespace thalweg::tool
