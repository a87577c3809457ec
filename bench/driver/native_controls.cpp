#include "driver/native_controls.h"

#include <cstring>

namespace thalweg::bench {

NativeControls::NativeControls() {
    int provided = 0;
    ready_ = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS;
}

NativeControls::~NativeControls() {
    if (ready_) MPI_T_finalize();
}

bool NativeControls::write(const std::string& variable, std::optional<long> wanted, bool remember,
                           std::string& why) {
    int index = 0;
    if (!knows(variable) || MPI_T_cvar_get_index(variable.c_str(), &index) != MPI_SUCCESS) {
        why = "this MPI has no control variable " + variable;
        return false;
    }
    int name_length = 0, text_length = 0, verbosity = 0, bind = 0, scope = 0, count = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum values = MPI_T_ENUM_NULL;
    MPI_T_cvar_get_info(index, nullptr, &name_length, &verbosity, &type, &values, nullptr, &text_length,
                        &bind, &scope);
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS || count < 1) {
        why = "the control variable " + variable + " cannot be opened";
        return false;
    }
    int size = 0;
    PMPI_Type_size(type, &size);
    // Control variables are read and written as arrays of `count` elements; all we use have one.
    union {
        char bytes[64];
        int as_int;
        long as_long;
        bool as_bool;
    } buffer{};
    const bool fits = static_cast<std::size_t>(size) * static_cast<std::size_t>(count) <= sizeof buffer;
    bool written = false;
    if (fits && MPI_T_cvar_read(handle, &buffer) == MPI_SUCCESS) {
        const long before = size == 1 ? buffer.as_bool : size == 4 ? buffer.as_int : buffer.as_long;
        const long value = wanted.value_or(before);
        std::memset(&buffer, 0, sizeof buffer);
        if (size == 1) {
            buffer.as_bool = value != 0;
        } else if (size == 4) {
            buffer.as_int = static_cast<int>(value);
        } else {
            buffer.as_long = value;
        }
        written = MPI_T_cvar_write(handle, &buffer) == MPI_SUCCESS;
        if (written && remember) first_values_.emplace(variable, before);
    }
    MPI_T_cvar_handle_free(&handle);
    if (!written) why = "the control variable " + variable + " cannot be written at run time";
    return written;
}

bool NativeControls::takes(const std::string& variable, std::string& why) {
    return write(variable, std::nullopt, false, why);
}

bool NativeControls::knows(const std::string& variable) const {
    int index = 0;
    return ready_ && MPI_T_cvar_get_index(variable.c_str(), &index) == MPI_SUCCESS;
}

bool NativeControls::apply(const std::vector<Control>& wanted, std::string& why) {
    std::vector<std::string> kept;
    for (const auto& control : wanted) kept.push_back(control.variable);
    for (auto it = first_values_.begin(); it != first_values_.end();) {
        bool still_wanted = false;
        for (const auto& name : kept) still_wanted |= name == it->first;
        if (still_wanted) {
            ++it;
            continue;
        }
        if (!write(it->first, it->second, false, why)) return false;
        it = first_values_.erase(it);
    }
    for (const auto& control : wanted)
        if (!write(control.variable, control.value, true, why)) return false;
    return true;
}

}  // namespace thalweg::bench
