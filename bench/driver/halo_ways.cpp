#include "driver/halo_ways.h"

#include <dlfcn.h>

#include <algorithm>
#include <vector>

#include "model/trial.h"
#include "transport/shm/choice.h"

namespace thalweg::bench {
namespace {

using InitFunction = decltype(&PMPI_Neighbor_alltoallw_init);

enum class Which { all, near, far };  // messages: every one, inside the host, to other hosts

bool wanted(const HaloMemory& memory, const HaloMessage& message, Which which) {
    return which == Which::all || memory.is_near(message.peer) == (which == Which::near);
}

// The cells of a box as a datatype over the whole array.
MPI_Datatype type_of(const HaloGrid& grid, const HaloBox& box) {
    int extents[most_halo_dimensions];
    for (int d = 0; d < grid.dimensions(); ++d) extents[d] = grid.cells[static_cast<std::size_t>(d)] + 2;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    PMPI_Type_create_subarray(grid.dimensions(), extents, box.count.data(), box.begin.data(), MPI_ORDER_C,
                              MPI_UINT64_T, &type);
    PMPI_Type_commit(&type);
    return type;
}

// Those that leave the host first: the wire takes longest.
std::vector<HaloMessage> ordered(const HaloMemory& memory, const std::vector<HaloMessage>& messages) {
    std::vector<HaloMessage> sorted = messages;
    std::stable_partition(sorted.begin(), sorted.end(),
                          [&](const HaloMessage& each) { return !memory.is_near(each.peer); });
    return sorted;
}

enum class Style { typed, packed_all, packed_some, packed_any, parted };

class PointToPoint : public HaloWay {
  public:
    PointToPoint(HaloMemory& memory, MPI_Comm control, Style style)
        : memory_(memory),
          control_(control),
          style_(style),
          outgoing_(ordered(memory, memory.part().outgoing)),
          incoming_(ordered(memory, memory.part().incoming)) {}

    int make() override {
        const int error = PMPI_Comm_dup(control_, &comm_);
        if (error != MPI_SUCCESS) return error;
        const auto prepare = [this](const std::vector<HaloMessage>& messages,
                                    std::vector<MPI_Datatype>& types,
                                    std::vector<std::vector<std::uint64_t>>& buffers) {
            for (const HaloMessage& message : messages) {
                if (packs())
                    buffers.emplace_back(message.box.cells());
                else
                    types.push_back(type_of(memory_.grid(), message.box));
            }
        };
        prepare(outgoing_, sent_types_, sent_);
        prepare(incoming_, received_types_, received_);
        requests_.assign(incoming_.size() + outgoing_.size(), MPI_REQUEST_NULL);
        return MPI_SUCCESS;
    }

    int call() override {
        if (packs()) return packed();
        const int error = style_ == Style::parted ? typed(Which::near) : typed(Which::all);
        return error == MPI_SUCCESS && style_ == Style::parted ? typed(Which::far) : error;
    }

    int free() override {
        for (auto* types : {&sent_types_, &received_types_}) {
            for (MPI_Datatype& type : *types) PMPI_Type_free(&type);
            types->clear();
        }
        sent_.clear(), received_.clear();
        return PMPI_Comm_free(&comm_);
    }

  protected:
    // The direction tells two messages of a pair apart.
    int typed(Which which) {
        int error = MPI_SUCCESS, count = 0;
        for (std::size_t i = 0; i < incoming_.size() && error == MPI_SUCCESS; ++i)
            if (wanted(memory_, incoming_[i], which))
                error =
                    PMPI_Irecv(memory_.cells(), 1, received_types_[i], incoming_[i].peer,
                               incoming_[i].direction, comm_, &requests_[static_cast<std::size_t>(count++)]);
        for (std::size_t i = 0; i < outgoing_.size() && error == MPI_SUCCESS; ++i)
            if (wanted(memory_, outgoing_[i], which))
                error =
                    PMPI_Isend(memory_.cells(), 1, sent_types_[i], outgoing_[i].peer, outgoing_[i].direction,
                               comm_, &requests_[static_cast<std::size_t>(count++)]);
        return error == MPI_SUCCESS ? PMPI_Waitall(count, requests_.data(), MPI_STATUSES_IGNORE) : error;
    }

    HaloMemory& memory_;
    MPI_Comm control_, comm_ = MPI_COMM_NULL;
    Style style_;
    std::vector<HaloMessage> outgoing_, incoming_;
    std::vector<MPI_Datatype> sent_types_, received_types_;
    std::vector<MPI_Request> requests_;  // receives, then sends

  private:
    bool packs() const {
        return style_ == Style::packed_all || style_ == Style::packed_some || style_ == Style::packed_any;
    }

    int packed() {
        const auto arriving = static_cast<int>(incoming_.size()),
                   leaving = static_cast<int>(outgoing_.size());
        int error = MPI_SUCCESS;
        for (std::size_t i = 0; i < incoming_.size() && error == MPI_SUCCESS; ++i)
            error = PMPI_Irecv(received_[i].data(), static_cast<int>(received_[i].size()), MPI_UINT64_T,
                               incoming_[i].peer, incoming_[i].direction, comm_, &requests_[i]);
        if (style_ == Style::packed_all)
            for (std::size_t i = 0; i < outgoing_.size(); ++i)
                memory_.pack(outgoing_[i].box, sent_[i].data());
        for (std::size_t i = 0; i < outgoing_.size() && error == MPI_SUCCESS; ++i) {
            if (style_ != Style::packed_all) memory_.pack(outgoing_[i].box, sent_[i].data());
            error = PMPI_Isend(sent_[i].data(), static_cast<int>(sent_[i].size()), MPI_UINT64_T,
                               outgoing_[i].peer, outgoing_[i].direction, comm_,
                               &requests_[incoming_.size() + i]);
        }
        if (style_ == Style::packed_all) {
            if (error == MPI_SUCCESS)
                error = PMPI_Waitall(arriving + leaving, requests_.data(), MPI_STATUSES_IGNORE);
            for (std::size_t i = 0; i < incoming_.size(); ++i) unpack(static_cast<int>(i));
            return error;
        }
        std::vector<int> ready(incoming_.size() + 1);
        for (int left = arriving; left > 0 && error == MPI_SUCCESS;) {
            int count = 1;
            error =
                style_ == Style::packed_any
                    ? PMPI_Waitany(arriving, requests_.data(), ready.data(), MPI_STATUS_IGNORE)
                    : PMPI_Waitsome(arriving, requests_.data(), &count, ready.data(), MPI_STATUSES_IGNORE);
            for (int i = 0; i < count; ++i) unpack(ready[static_cast<std::size_t>(i)]);
            left -= count;
        }
        if (error != MPI_SUCCESS) return error;
        return PMPI_Waitall(leaving, requests_.data() + arriving, MPI_STATUSES_IGNORE);
    }
    void unpack(int message) {
        const auto at = static_cast<std::size_t>(message);
        memory_.unpack(incoming_[at].box, received_[at].data());
    }

    std::vector<std::vector<std::uint64_t>> sent_, received_;
};

class PersistentMessages final : public PointToPoint {
  public:
    PersistentMessages(HaloMemory& memory, MPI_Comm control) : PointToPoint(memory, control, Style::typed) {}
    int make() override {
        int error = PointToPoint::make();
        std::size_t next = 0;
        for (std::size_t i = 0; i < incoming_.size() && error == MPI_SUCCESS; ++i)
            error = PMPI_Recv_init(memory_.cells(), 1, received_types_[i], incoming_[i].peer,
                                   incoming_[i].direction, comm_, &requests_[next++]);
        for (std::size_t i = 0; i < outgoing_.size() && error == MPI_SUCCESS; ++i)
            error = PMPI_Send_init(memory_.cells(), 1, sent_types_[i], outgoing_[i].peer,
                                   outgoing_[i].direction, comm_, &requests_[next++]);
        return error;
    }
    int call() override {
        const auto count = static_cast<int>(requests_.size());
        const int error = PMPI_Startall(count, requests_.data());
        return error == MPI_SUCCESS ? PMPI_Waitall(count, requests_.data(), MPI_STATUSES_IGNORE) : error;
    }
    int free() override {
        for (MPI_Request& request : requests_) PMPI_Request_free(&request);
        return PointToPoint::free();
    }
};

enum class Form { blocking, nonblocking, persistent };

// On a graph, whose k-th edge from one rank to another is the k-th at both ends, so that it does not matter
// what a library takes for the order of a grid's edges where a dimension has one or two ranks.
class Neighbours final : public HaloWay {
  public:
    Neighbours(HaloMemory& memory, MPI_Comm control, Form form, bool native, Which which, InitFunction init)
        : memory_(memory), control_(control), form_(form), native_(native), which_(which), init_(init) {}

    int make() override {
        std::vector<int> from, to;
        for (const HaloMessage& message : memory_.part().incoming)
            if (wanted(memory_, message, which_)) {
                from.push_back(message.peer);
                received_types_.push_back(type_of(memory_.grid(), message.box));
            }
        for (const HaloMessage& message : memory_.part().outgoing)
            if (wanted(memory_, message, which_)) {
                to.push_back(message.peer);
                sent_types_.push_back(type_of(memory_.grid(), message.box));
            }
        ones_.assign(std::max(from.size(), to.size()) + 1, 1);
        zeros_.assign(ones_.size(), 0);
        const auto make_graph = native_ ? PMPI_Dist_graph_create_adjacent : MPI_Dist_graph_create_adjacent;
        const int error =
            make_graph(control_, static_cast<int>(from.size()), from.data(), MPI_UNWEIGHTED,
                       static_cast<int>(to.size()), to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm_);
        if (error != MPI_SUCCESS || form_ != Form::persistent) return error;
        return init_(memory_.cells(), ones_.data(), zeros_.data(), sent_types_.data(), memory_.cells(),
                     ones_.data(), zeros_.data(), received_types_.data(), comm_, MPI_INFO_NULL, &request_);
    }

    int call() override {
        if (form_ == Form::blocking) {
            const auto exchange = native_ ? PMPI_Neighbor_alltoallw : MPI_Neighbor_alltoallw;
            return exchange(memory_.cells(), ones_.data(), zeros_.data(), sent_types_.data(), memory_.cells(),
                            ones_.data(), zeros_.data(), received_types_.data(), comm_);
        }
        const int error = start();
        return error == MPI_SUCCESS ? finish() : error;
    }

    bool has_parts() const override { return form_ != Form::blocking; }
    int start() override {
        if (form_ == Form::persistent) return native_ ? PMPI_Start(&request_) : MPI_Start(&request_);
        const auto exchange = native_ ? PMPI_Ineighbor_alltoallw : MPI_Ineighbor_alltoallw;
        return exchange(memory_.cells(), ones_.data(), zeros_.data(), sent_types_.data(), memory_.cells(),
                        ones_.data(), zeros_.data(), received_types_.data(), comm_, &request_);
    }
    int finish() override {
        return native_ ? PMPI_Wait(&request_, MPI_STATUS_IGNORE) : MPI_Wait(&request_, MPI_STATUS_IGNORE);
    }

    // Of ours: a blocking form's trial, else that of the protocols inside a host.
    int warm_up_calls() const override {
        if (native_) return HaloWay::warm_up_calls();
        return form_ == Form::blocking ? static_cast<int>(TrialTurns::calls_until_verdict)
                                       : static_cast<int>(shm::Chooser::settled_after);
    }

    int calls_until_met() const override { return form_ == Form::nonblocking ? 8 : 1; }
    int meet() override { return native_ ? MPI_SUCCESS : MPI_Barrier(comm_); }

    int free() override {
        if (form_ == Form::persistent) {
            const int error = native_ ? PMPI_Request_free(&request_) : MPI_Request_free(&request_);
            if (error != MPI_SUCCESS) return error;
        }
        for (auto* types : {&sent_types_, &received_types_}) {
            for (MPI_Datatype& type : *types) PMPI_Type_free(&type);
            types->clear();
        }
        return native_ ? PMPI_Comm_free(&comm_) : MPI_Comm_free(&comm_);
    }

  private:
    HaloMemory& memory_;
    MPI_Comm control_, comm_ = MPI_COMM_NULL;
    Form form_;
    bool native_;
    Which which_;
    InitFunction init_;
    std::vector<MPI_Datatype> sent_types_, received_types_;
    std::vector<int> ones_;
    std::vector<MPI_Aint> zeros_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

// One way and when it is done another.
class InTurn final : public HaloWay {
  public:
    InTurn(std::unique_ptr<HaloWay> first, std::unique_ptr<HaloWay> second)
        : first_(std::move(first)), second_(std::move(second)) {}
    int make() override { return both(&HaloWay::make); }
    int call() override { return both(&HaloWay::call); }
    int free() override { return both(&HaloWay::free); }
    int meet() override { return both(&HaloWay::meet); }

  private:
    int both(int (HaloWay::*what)()) {
        const int error = (first_.get()->*what)();
        return error == MPI_SUCCESS ? (second_.get()->*what)() : error;
    }
    std::unique_ptr<HaloWay> first_, second_;
};

InitFunction find_init(bool native, std::string& why) {
    const char* const symbol = native ? "PMPI_Neighbor_alltoallw_init" : "MPI_Neighbor_alltoallw_init";
    auto* found = reinterpret_cast<InitFunction>(dlsym(RTLD_DEFAULT, symbol));
    if (found == nullptr) why = std::string("this MPI has no ") + symbol;
    return found;
}

}  // namespace

std::unique_ptr<HaloWay> make_halo_way(const std::string& name, HaloMemory& memory, MPI_Comm control,
                                       std::string& why) {
    constexpr std::pair<const char*, Style> styles[] = {{"isend", Style::typed},
                                                        {"packed_all", Style::packed_all},
                                                        {"packed_some", Style::packed_some},
                                                        {"packed_any", Style::packed_any},
                                                        {"isend_parted", Style::parted}};
    for (const auto& [known, style] : styles)
        if (name == known) return std::make_unique<PointToPoint>(memory, control, style);
    if (name == "persistent") return std::make_unique<PersistentMessages>(memory, control);
    const bool native = name.starts_with("native");
    const auto neighbours = [&](Form form, Which which, InitFunction init) {
        return std::make_unique<Neighbours>(memory, control, form, native, which, init);
    };
    if (name == "native" || name == "thalweg") return neighbours(Form::blocking, Which::all, nullptr);
    if (name == "native_i" || name == "thalweg_i") return neighbours(Form::nonblocking, Which::all, nullptr);
    if (name == "native_init" || name == "thalweg_init" || name == "thalweg_parted") {
        const InitFunction init = find_init(native, why);
        if (init == nullptr) return nullptr;
        if (name != "thalweg_parted") return neighbours(Form::persistent, Which::all, init);
        return std::make_unique<InTurn>(neighbours(Form::persistent, Which::near, init),
                                        neighbours(Form::persistent, Which::far, init));
    }
    why = "there is no way to exchange halos named " + name;
    return nullptr;
}

}  // namespace thalweg::bench
