// The files that the loader has in this process.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace thalweg {

// In the order in which they were loaded; with `base`, where the object that is loaded there is one, those
// behind it. Without memory fewer. No object is asked anything meanwhile: the loader is locked, and who opens
// one inside dl_iterate_phdr() takes its two locks in the other order than dlopen().
inline std::vector<std::string> loaded_files(const void* base = nullptr) {
    struct Found {
        const void* base;
        std::vector<std::string> files;
    } found{base, {}};
    const auto note = [](dl_phdr_info* object, std::size_t, void* data) {
        auto* into = static_cast<Found*>(data);
        if (into->base != nullptr) {
            if (reinterpret_cast<const void*>(object->dlpi_addr) == into->base) into->base = nullptr;
            return 0;
        }
        if (object->dlpi_name == nullptr || object->dlpi_name[0] == '\0') return 0;
        try {
            into->files.emplace_back(object->dlpi_name);
        } catch (const std::bad_alloc&) {
            return 1;
        }
        return 0;
    };
    dl_iterate_phdr(note, &found);
    return std::move(found.files);
}

// What `file`, which is loaded, or what it depends on has under that name; null where there is none.
inline void* symbol_of(const std::string& file, const char* name) {
    void* const handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);  // only raises its count
    if (handle == nullptr) return nullptr;
    void* const address = dlsym(handle, name);
    dlclose(handle);
    return address;
}

}  // namespace thalweg
