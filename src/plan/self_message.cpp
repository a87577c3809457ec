#include "plan/self_message.h"

#include <atomic>

#include "transport/mpi/host.h"

namespace thalweg {
namespace {

// Another for each communicator, as MPI demands where several threads make one of the same group at once: of
// those that every library has.
int next_tag() {
    constexpr unsigned tags = 32768;
    static constinit std::atomic<unsigned> next{0};
    return static_cast<int>(next.fetch_add(1, std::memory_order_relaxed) % tags);
}

// A communicator of this rank alone. Made out of a group, because there is no MPI_COMM_SELF beside sessions.
class Alone {
  public:
    explicit Alone(MPI_Comm comm) {
        const Host& mpi = *host();
        MPI_Group all, one;
        int rank = 0;
        if (mpi.Comm_rank(comm, &rank) != MPI_SUCCESS || mpi.Comm_group(comm, &all) != MPI_SUCCESS) return;
        if (mpi.Group_incl(all, 1, &rank, &one) == MPI_SUCCESS) {
            made_ = mpi.Comm_create_group(comm, one, next_tag(), &comm_) == MPI_SUCCESS;
            mpi.Group_free(&one);
        }
        mpi.Group_free(&all);
        if (made_) mpi.Comm_set_errhandler(comm_, mpi.errors_return);
    }
    ~Alone() {
        if (made_) host()->Comm_free(&comm_);
    }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

    bool made() const { return made_; }
    MPI_Comm comm() const { return comm_; }

  private:
    MPI_Comm comm_{};
    bool made_ = false;
};

// So many bytes, as one element of a type: rows of 1 GiB, and what is left.
class Bytes {
  public:
    explicit Bytes(std::uint64_t bytes) {
        constexpr std::uint64_t row_bytes = std::uint64_t{1} << 30;
        const Host& mpi = *host();
        const std::uint64_t rows = bytes / row_bytes;
        const int counts[2] = {static_cast<int>(rows), static_cast<int>(bytes % row_bytes)};
        const MPI_Aint places[2] = {0, static_cast<MPI_Aint>(rows * row_bytes)};
        MPI_Datatype types[2] = {mpi.byte, mpi.byte};
        if (mpi.Type_contiguous(static_cast<int>(row_bytes), mpi.byte, &types[0]) != MPI_SUCCESS) return;
        if (mpi.Type_create_struct(2, counts, places, types, &type_) == MPI_SUCCESS) {
            made_ = mpi.Type_commit(&type_) == MPI_SUCCESS;
            if (!made_) mpi.Type_free(&type_);
        }
        mpi.Type_free(&types[0]);
    }
    ~Bytes() {
        if (made_) host()->Type_free(&type_);
    }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;

    bool made() const { return made_; }
    MPI_Datatype type() const { return type_; }

  private:
    MPI_Datatype type_{};
    bool made_ = false;
};

bool waited_for(MPI_Request& request) {
    int done = 0;
    while (!done)
        if (host()->Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    return true;
}

Status move(const void* from, MPI_Datatype from_type, void* to, MPI_Datatype to_type, MPI_Comm comm) {
    const Host& mpi = *host();
    const Alone alone(comm);
    if (!alone.made()) return Status::transport_failed;
    MPI_Request receive, send;
    if (mpi.Irecv(to, 1, to_type, 0, 0, alone.comm(), &receive) != MPI_SUCCESS)
        return Status::transport_failed;
    if (mpi.Isend(const_cast<void*>(from), 1, from_type, 0, 0, alone.comm(), &send) != MPI_SUCCESS) {
        mpi.Cancel(&receive);
        mpi.Request_free(&receive);
        return Status::transport_failed;
    }
    // Each test advances both.
    const bool received = waited_for(receive), sent = waited_for(send);
    return received && sent ? Status::ok : Status::transport_failed;
}

}  // namespace

Status pack_by_message(const void* data, MPI_Datatype type, std::byte* packed, std::uint64_t bytes,
                       MPI_Comm comm) {
    const Bytes whole(bytes);
    return whole.made() ? move(data, type, packed, whole.type(), comm) : Status::transport_failed;
}

Status unpack_by_message(const std::byte* packed, std::uint64_t bytes, void* data, MPI_Datatype type,
                         MPI_Comm comm) {
    const Bytes whole(bytes);
    return whole.made() ? move(packed, whole.type(), data, type, comm) : Status::transport_failed;
}

}  // namespace thalweg
