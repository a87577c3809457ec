// Which control variables an MPI library takes, told by a stand-in for its tool interface: no library is
// linked.
#include "driver/native_controls.h"

#include <gtest/gtest.h>

#include <cstring>

namespace {

struct Variable {
    std::string name;
    int value = 0;
    bool can_be_read = true, can_be_written = true;
    int writes = 0;
};

std::vector<Variable> library;
int open_handles = 0;

Variable* of(MPI_T_cvar_handle handle) { return reinterpret_cast<Variable*>(handle); }

}  // namespace

extern "C" {

int MPI_T_init_thread(int required, int* provided) {
    *provided = required;
    return MPI_SUCCESS;
}

int MPI_T_finalize() { return MPI_SUCCESS; }

int MPI_T_cvar_get_index(const char* name, int* index) {
    for (std::size_t i = 0; i < library.size(); ++i)
        if (library[i].name == name) {
            *index = static_cast<int>(i);
            return MPI_SUCCESS;
        }
    return MPI_T_ERR_INVALID_NAME;
}

int MPI_T_cvar_get_info(int, char*, int*, int*, MPI_Datatype* type, MPI_T_enum*, char*, int*, int*, int*) {
    *type = MPI_INT;
    return MPI_SUCCESS;
}

int MPI_T_cvar_handle_alloc(int index, void*, MPI_T_cvar_handle* handle, int* count) {
    *handle = reinterpret_cast<MPI_T_cvar_handle>(&library[static_cast<std::size_t>(index)]);
    *count = 1;
    ++open_handles;
    return MPI_SUCCESS;
}

int MPI_T_cvar_handle_free(MPI_T_cvar_handle* handle) {
    *handle = MPI_T_CVAR_HANDLE_NULL;
    --open_handles;
    return MPI_SUCCESS;
}

int MPI_T_cvar_read(MPI_T_cvar_handle handle, void* value) {
    if (!of(handle)->can_be_read) return MPI_T_ERR_INVALID;
    std::memcpy(value, &of(handle)->value, sizeof(int));
    return MPI_SUCCESS;
}

int MPI_T_cvar_write(MPI_T_cvar_handle handle, const void* value) {
    if (!of(handle)->can_be_written) return MPI_T_ERR_CVAR_SET_NEVER;
    std::memcpy(&of(handle)->value, value, sizeof(int));
    ++of(handle)->writes;
    return MPI_SUCCESS;
}

int PMPI_Type_size(MPI_Datatype, int* size) {
    *size = sizeof(int);
    return MPI_SUCCESS;
}

}  // extern "C"

namespace thalweg::bench {
namespace {

class ControlVariables : public testing::Test {
  protected:
    ControlVariables() { library.clear(); }
    ~ControlVariables() override { EXPECT_EQ(open_handles, 0); }

    NativeControls controls;
    std::string why;
};

TEST_F(ControlVariables, OfALibraryThatTakesThem) {
    library = {{"algorithm", 3}};
    EXPECT_TRUE(controls.takes("algorithm", why)) << why;
    EXPECT_EQ(library[0].value, 3) << "what was there is what is tried";
    EXPECT_EQ(library[0].writes, 1);
}

TEST_F(ControlVariables, OfALibraryWithoutThem) {
    EXPECT_FALSE(controls.takes("algorithm", why));
    EXPECT_EQ(why, "this MPI has no control variable algorithm");
}

// Open MPI 4.1.4 lets many of its variables be read, and none of these be written once MPI is initialised.
TEST_F(ControlVariables, OfALibraryThatHasThemAndRefusesValues) {
    library = {{"algorithm", 3}};
    library[0].can_be_written = false;
    EXPECT_FALSE(controls.takes("algorithm", why));
    EXPECT_EQ(why, "the control variable algorithm cannot be written at run time");
    EXPECT_FALSE(controls.apply({{"algorithm", 4}}, why));
    why.clear();
    EXPECT_TRUE(controls.apply({}, why)) << "what was never changed need not be put back: " << why;
}

// Nothing would be written, and the library's default be measured under the name of an algorithm.
TEST_F(ControlVariables, OfALibraryThatDoesNotTellWhatTheyAre) {
    library = {{"algorithm", 3}};
    library[0].can_be_read = false;
    EXPECT_FALSE(controls.takes("algorithm", why));
    EXPECT_EQ(why, "the control variable algorithm cannot be written at run time");
    EXPECT_FALSE(controls.apply({{"algorithm", 4}}, why));
    EXPECT_EQ(library[0].value, 3);
}

TEST_F(ControlVariables, OfALibraryThatHadValuesOfItsOwn) {
    library = {{"algorithm", 3}, {"segment", 65536}};
    EXPECT_TRUE(controls.apply({{"algorithm", 4}, {"segment", 8192}}, why)) << why;
    EXPECT_TRUE(controls.apply({{"algorithm", 5}}, why)) << why;
    EXPECT_EQ(library[0].value, 5);
    EXPECT_EQ(library[1].value, 65536);
    EXPECT_TRUE(controls.takes("algorithm", why)) << why;
    EXPECT_TRUE(controls.apply({}, why)) << why;
    EXPECT_EQ(library[0].value, 3);
}

}  // namespace
}  // namespace thalweg::bench
