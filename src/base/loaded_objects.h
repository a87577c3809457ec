// The files that the loader has in this process.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <new>
#include <string>

namespace thalweg {

// Their names in the order in which they were loaded; with `base`, where the object that is loaded there is
// one, those behind it. Nothing is allocated and no object is asked anything while the loader is locked: who
// opens one inside dl_iterate_phdr() takes its two locks in the other order than dlopen(). Without memory
// there are none.
class LoadedFiles {
  public:
    explicit LoadedFiles(const void* base = nullptr) noexcept {
        Names names{base, nullptr, 0, 0};
        dl_iterate_phdr(note, &names);
        try {
            text_.resize(names.bytes + slack);
        } catch (const std::bad_alloc&) {
            return;
        }
        names = {base, text_.data(), text_.size(), 0};
        dl_iterate_phdr(note, &names);
        text_.resize(names.bytes);
    }

    class Iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = const char*;
        using difference_type = std::ptrdiff_t;
        using pointer = const value_type*;
        using reference = value_type;

        explicit Iterator(const char* at) : at_(at) {}
        const char* operator*() const { return at_; }
        Iterator& operator++() {
            at_ += std::strlen(at_) + 1;
            return *this;
        }
        Iterator operator++(int) {
            const Iterator before = *this;
            ++*this;
            return before;
        }
        bool operator==(const Iterator&) const = default;

      private:
        const char* at_;
    };
    Iterator begin() const { return Iterator(text_.data()); }
    Iterator end() const { return Iterator(text_.data() + text_.size()); }

  private:
    // For what is loaded between the two looks; what does not fit is left out.
    static constexpr std::size_t slack = 4096;

    struct Names {
        const void* base;
        char* text;  // null: only counted
        std::size_t room, bytes;
    };
    static int note(dl_phdr_info* object, std::size_t, void* data) {
        auto& names = *static_cast<Names*>(data);
        if (names.base != nullptr) {
            if (reinterpret_cast<const void*>(object->dlpi_addr) == names.base) names.base = nullptr;
            return 0;
        }
        if (object->dlpi_name == nullptr || object->dlpi_name[0] == '\0') return 0;
        const std::size_t bytes = std::strlen(object->dlpi_name) + 1;
        if (names.text != nullptr) {
            if (bytes > names.room - names.bytes) return 1;
            std::copy_n(object->dlpi_name, bytes, names.text + names.bytes);
        }
        names.bytes += bytes;
        return 0;
    }

    std::string text_;
};

// What `file`, which is loaded, or what it depends on has under that name; null where there is none.
inline void* symbol_of(const char* file, const char* name) {
    void* const handle = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);  // only raises its count
    if (handle == nullptr) return nullptr;
    void* const address = dlsym(handle, name);
    dlclose(handle);
    return address;
}

}  // namespace thalweg
