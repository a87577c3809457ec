// One rank's data of one call, as the packed bytes that all ranks agree on: straight in the user's memory
// where it is one run of host memory, else by way of staging memory. Whatever is odd about one rank's data
// stays on that rank.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "base/status.h"
#include "plan/datatype.h"
#include "plan/device.h"

namespace thalweg {

class Payload {
  public:
    // Only looks at the arguments, which must outlive it. `count` elements of `type` at `buffer`, of `bytes`
    // packed bytes in all.
    Payload(void* buffer, std::uint64_t count, MPI_Datatype type, std::uint64_t bytes, MPI_Comm comm);
    ~Payload();
    Payload(const Payload&) = delete;
    Payload& operator=(const Payload&) = delete;

    // What the native library refuses on sight: no memory where one run of bytes is expected.
    bool refused_by_native() const { return one_run_ && run_ == nullptr; }

    // To be called before the functions below: asks whose memory it is, takes what only an opaque type needs.
    // Errors: out_of_memory.
    Status prepare();

    // The packed bytes themselves when they are one run of host memory, else null.
    std::byte* direct() const { return direct_; }
    // Puts bytes [from, to) of the packed form into `packed` and the other way round. Errors:
    // transport_failed (a driver or the MPI library refused).
    Status load(std::byte* packed, std::uint64_t from, std::uint64_t to);
    Status store(const std::byte* packed, std::uint64_t from, std::uint64_t to);

  private:
    template <typename Move>
    Status each_run(std::uint64_t from, std::uint64_t to, Move move);
    Status pack_all();
    Status unpack_all();

    void* buffer_;
    std::uint64_t count_;
    MPI_Datatype type_;
    std::uint64_t bytes_;
    MPI_Comm comm_;
    TypeShape named_;
    const TypeShape& shape_;
    bool one_run_ = false;
    std::byte* run_ = nullptr;  // first byte when one_run_
    std::byte* direct_ = nullptr;
    Memory memory_ = Memory::host;
    std::byte* whole_ = nullptr;  // packed form of an opaque type, all of it
    bool packed_ = false;
};

}  // namespace thalweg
