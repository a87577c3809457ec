// One rank's data of one call, as the packed bytes that all ranks agree on: straight in the user's memory
// where it is one run of host memory, else by way of staging memory. Whatever is odd about one rank's data
// stays on that rank.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "base/status.h"
#include "plan/datatype.h"
#include "plan/device.h"
#include "plan/staging.h"

namespace thalweg {

class Payload {
  public:
    // Only looks at the arguments, which must outlive it: `count` elements of `type` at `buffer`.
    Payload(void* buffer, std::uint64_t count, MPI_Datatype type, MPI_Comm comm);
    ~Payload();
    Payload(const Payload&) = delete;
    Payload& operator=(const Payload&) = delete;

    // What the native library refuses on sight: a type that was not committed, or no memory where bytes are
    // expected. MPI_BOTTOM is such an address too, and says nothing: the type's displacements do.
    bool refused_by_native() const { return shape_.uncommitted || nowhere_; }

    // To be called before the functions below: asks whose memory it is, takes what only MPI's own packing
    // needs: room for one element, in `staging` or, where that is too small for it, of its own. `staging`
    // must outlive this. Errors: out_of_memory (only for such an element larger than the staging memory).
    Status prepare(Staging& staging);

    // The packed bytes themselves when they are one run of host memory, else null.
    std::byte* direct() const { return direct_; }
    // Puts bytes [from, to) of the packed form into `packed` and the other way round; store() gets all bytes
    // in ascending order. Errors: transport_failed (a driver or the MPI library refused).
    Status load(std::byte* packed, std::uint64_t from, std::uint64_t to);
    Status store(const std::byte* packed, std::uint64_t from, std::uint64_t to);
    // Puts the first `bytes` of the packed form to their places, of an element that ends later only what is
    // there. Errors: as store().
    Status store_first(const std::byte* packed, std::uint64_t bytes);

  private:
    template <typename Move>
    Status each_rows(std::uint64_t from, std::uint64_t to, Move move);
    std::uint64_t driver_copies() const;
    Status load_opaque(std::byte* packed, std::uint64_t from, std::uint64_t to);
    Status store_opaque(const std::byte* packed, std::uint64_t from, std::uint64_t to);
    Status pack(std::uint64_t first, std::uint64_t elements, std::byte* packed);
    Status unpack(std::uint64_t first, std::uint64_t elements, const std::byte* packed);

    void* buffer_;
    std::uint64_t count_;
    MPI_Datatype type_;
    MPI_Comm comm_;
    TypeShape named_;
    const TypeShape& shape_;
    bool by_mpi_ = false;  // PMPI_Pack and PMPI_Unpack tell where the bytes are
    bool one_run_ = false;
    bool nowhere_ = false;      // the lowest byte of the first element would be at address 0
    std::byte* run_ = nullptr;  // first byte when one_run_
    std::byte* direct_ = nullptr;
    Memory memory_ = Memory::host;
    // Where by_mpi_: the packed form of one element, where a piece begins or ends inside it.
    std::byte* element_ = nullptr;
    bool owns_element_ = false;
    std::uint64_t loaded_;  // which one load() has there
};

}  // namespace thalweg
