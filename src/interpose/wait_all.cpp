// MPI_Waitall while operations of ours are among its requests: what the others need meanwhile.
#include <mpi.h>

#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "interpose/runtime.h"
#include "transport/mpi/host.h"

using namespace thalweg;

namespace {

// What a request that ended before the native MPI_Waitall had to say.
struct EarlyEnd {
    int index, error;
    MPI_Status status;
};

}  // namespace

struct ThalwegEarly {
    std::vector<bool> over;  // by request
    std::vector<EarlyEnd> ends;
};

namespace {

// `test(i, flag, status)` is the native test of request i.
template <typename Test>
void test_each(int count, ThalwegEarly*& early, Test test) {
    try {
        if (early == nullptr) {
            auto made = std::make_unique<ThalwegEarly>();
            made->over.resize(static_cast<std::size_t>(count));
            made->ends.reserve(static_cast<std::size_t>(count));
            early = made.release();
        }
    } catch (const std::bad_alloc&) {
        return;  // then they wait for the native call
    }
    for (int i = 0; i < count; ++i) {
        if (early->over[static_cast<std::size_t>(i)]) continue;
        EarlyEnd end{i, MPI_SUCCESS, {}};
        int flag = 0;
        end.error = test(i, &flag, &end.status);
        if (flag == 0 && end.error == MPI_SUCCESS) continue;
        early->over[static_cast<std::size_t>(i)] = true;
        early->ends.push_back(end);
    }
}

// statuses: of the native call, null where nobody wants any.
int add_early(int error, int count, void* statuses, ThalwegEarly* early) {
    const std::unique_ptr<ThalwegEarly> owned(early);
    bool failed = false;
    for (const EarlyEnd& end : early->ends) failed |= end.error != MPI_SUCCESS;
    const auto with_status = [statuses](int index, auto change) {
        if (statuses == nullptr) return;
        // Fortran's have the layout of C's, but not its alignment.
        char* const place =
            static_cast<char*>(statuses) + static_cast<std::size_t>(index) * sizeof(MPI_Status);
        MPI_Status status;
        std::memcpy(&status, place, sizeof status);
        change(status);
        std::memcpy(place, &status, sizeof status);
    };
    // MPI_ERROR is told of all requests or of none.
    if (failed && error == MPI_SUCCESS) {
        error = MPI_ERR_IN_STATUS;
        for (int i = 0; i < count; ++i)
            with_status(i, [](MPI_Status& status) { status.MPI_ERROR = MPI_SUCCESS; });
    }
    for (const EarlyEnd& end : early->ends)
        with_status(end.index, [&](MPI_Status& status) {
            const int kept = status.MPI_ERROR;
            status = end.status;
            status.MPI_ERROR = error == MPI_ERR_IN_STATUS ? end.error : kept;
        });
    return error;
}

}  // namespace

extern "C" {

void thalweg_test_others(int count, void* requests, void* native_test, ThalwegEarly** early) {
    if (native_test == nullptr) return;
    auto* const all = static_cast<MPI_Request*>(requests);
    auto* const test = reinterpret_cast<int (*)(MPI_Request*, int*, MPI_Status*)>(native_test);
    test_each(count, *early, [=](int i, int* flag, MPI_Status* status) {
        return all[i] == host()->request_null ? MPI_SUCCESS : test(&all[i], flag, status);
    });
}

void thalweg_test_others_fortran(int count, int* requests, void* native_test, ThalwegEarly** early) {
    if (native_test == nullptr) return;
    auto* const test = reinterpret_cast<void (*)(int*, int*, void*, int*)>(native_test);
    test_each(count, *early, [=](int i, int* flag, MPI_Status* status) {
        int error = MPI_SUCCESS;
        if (host()->request_of_fortran(requests[i]) != host()->request_null)
            test(&requests[i], flag, status, &error);
        return error;
    });
}

int thalweg_add_early(int error, int count, void* statuses, ThalwegEarly* early) {
    return add_early(error, count, statuses == static_cast<void*>(MPI_STATUSES_IGNORE) ? nullptr : statuses,
                     early);
}

int thalweg_add_early_fortran(int error, int count, int* statuses, ThalwegEarly* early) {
    return add_early(error, count, is_fortran_statuses_ignore(statuses) ? nullptr : statuses, early);
}

}  // extern "C"
