#include "driver/exchange_ways.h"

#include <dlfcn.h>

#include <cstring>

#include "driver/session.h"
#include "model/trial.h"
#include "plan/rma_alltoallv.h"

namespace thalweg::bench {
namespace {

using AlltoallvInit = decltype(&PMPI_Alltoallv_init);

// On a communicator that has seen no other exchange: what calls are tried with there decides for a hundred or
// more.
class Repeated final : public ExchangeWay {
  public:
    Repeated(const ExchangeGround& ground, bool native) : ground_(ground), native_(native) {}
    bool persistent() const override { return false; }
    int make() override { return (native_ ? PMPI_Comm_dup : MPI_Comm_dup)(ground_.comm, &comm_); }
    int free() override { return (native_ ? PMPI_Comm_free : MPI_Comm_free)(&comm_); }
    // Ours: those before the trial, the trial, and the call that begins with its verdict. When the trial
    // begins the library decides, all ranks alike; where nothing is tried that is not waited for for ever.
    int warm_up_calls() override {
        if (native_) return ExchangeWay::warm_up_calls();
        if (first_taken_ == 0 && calls_ != 0 && was_taken()) first_taken_ = calls_;
        const int before = first_taken_ != 0 ? first_taken_ : static_cast<int>(TrialTurns::latest_set_up) + 1;
        return before + trial_calls + 1;
    }
    int call() override {
        ExchangeMemory& m = *ground_.memory;
        const auto function = native_ ? PMPI_Alltoallv : MPI_Alltoallv;
        const int error = function(m.in.data(), m.send_bytes.data(), m.send_at.data(), MPI_BYTE, m.out.data(),
                                   m.receive_bytes.data(), m.receive_at.data(), MPI_BYTE, comm_);
        ++calls_;
        return error;
    }

  private:
    // Whether the latest call was ours. Not within a call, which is timed: nothing of it is in the caches.
    static bool was_taken() {
        static Ours ours;
        Ran ran;
        ours.tell(ran);
        return !ran.algorithm.empty();
    }

    int calls_ = 0, first_taken_ = 0;  // by number, from 1; 0: none yet
    ExchangeGround ground_;
    bool native_;
    MPI_Comm comm_ = MPI_COMM_NULL;
};

class Persistent final : public ExchangeWay {
  public:
    Persistent(const ExchangeGround& ground, bool native, AlltoallvInit init)
        : ground_(ground), native_(native), init_(init) {}
    int make() override {
        ExchangeMemory& m = *ground_.memory;
        return init_(m.in.data(), m.send_bytes.data(), m.send_at.data(), MPI_BYTE, m.out.data(),
                     m.receive_bytes.data(), m.receive_at.data(), MPI_BYTE, ground_.comm, MPI_INFO_NULL,
                     &request_);
    }
    int call() override {
        const int error = native_ ? PMPI_Start(&request_) : MPI_Start(&request_);
        if (error != MPI_SUCCESS) return error;
        return native_ ? PMPI_Wait(&request_, MPI_STATUS_IGNORE) : MPI_Wait(&request_, MPI_STATUS_IGNORE);
    }
    int free() override { return native_ ? PMPI_Request_free(&request_) : MPI_Request_free(&request_); }

  private:
    ExchangeGround ground_;
    bool native_;
    AlltoallvInit init_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

class OverWindows final : public ExchangeWay {
  public:
    OverWindows(const ExchangeGround& ground, const RmaOptions& options)
        : ground_(ground), options_(options) {
        options_.near = ground.memory->near;
    }
    int make() override {
        const ExchangeMemory& m = *ground_.memory;
        const auto bytes = [](const std::vector<int>& from) {
            return std::vector<std::uint64_t>(from.begin(), from.end());
        };
        const auto places = [](const std::vector<int>& from) {
            return std::vector<MPI_Aint>(from.begin(), from.end());
        };
        const std::vector<std::uint64_t> sends = bytes(m.send_bytes), receives = bytes(m.receive_bytes);
        const std::vector<MPI_Aint> send_at = places(m.send_at), receive_at = places(m.receive_at);
        int error = MPI_SUCCESS;
        plan_ = RmaAlltoallv::make(
            *host(), ground_.comm, *ground_.pool,
            {m.in.data(), ground_.memory->out.data(), sends, receives, send_at, receive_at}, options_, error);
        return error;
    }
    int call() override {
        const int error = plan_->start();
        return error == MPI_SUCCESS ? plan_->wait() : error;
    }
    int free() override {
        plan_.reset();
        return ground_.pool->drain();
    }

  private:
    ExchangeGround ground_;
    RmaOptions options_;
    std::unique_ptr<RmaAlltoallv> plan_;
};

// What the paper's plans are compared with (arXiv 2604.05099), over windows that nobody planned.
class Unplanned final : public ExchangeWay {
  public:
    enum class Window { per_call, kept, kept_lock };
    Unplanned(const ExchangeGround& ground, Window window) : ground_(ground), kind_(window) {}
    ~Unplanned() override {
        if (window_ != MPI_WIN_NULL) PMPI_Win_free(&window_);
    }
    bool persistent() const override { return false; }
    int call() override {
        const double began = now();
        int error = set_up();
        set_up_seconds = now() - began;
        if (error == MPI_SUCCESS) error = kind_ == Window::kept_lock ? locked() : fenced();
        return error;
    }

  private:
    // Everybody learns where it lands at its peers, and whether any rank needs another window.
    int set_up() {
        ExchangeMemory& m = *ground_.memory;
        const auto size = m.receive_at.size();
        std::vector<MPI_Aint> mine(m.receive_at.begin(), m.receive_at.end());
        there_.resize(size);
        int error = PMPI_Alltoall(mine.data(), 1, MPI_AINT, there_.data(), 1, MPI_AINT, ground_.comm);
        if (error != MPI_SUCCESS) return error;
        const bool same = window_ != MPI_WIN_NULL && base_ == m.out.data() && bytes_ == m.out.size();
        int need = kind_ == Window::per_call || !same, need_any = 0;
        error = PMPI_Allreduce(&need, &need_any, 1, MPI_INT, MPI_LOR, ground_.comm);
        if (error != MPI_SUCCESS || need_any == 0) return error;
        if (window_ != MPI_WIN_NULL) error = PMPI_Win_free(&window_);
        if (error != MPI_SUCCESS) return error;
        base_ = m.out.data();
        bytes_ = m.out.size();
        return PMPI_Win_create(base_, static_cast<MPI_Aint>(bytes_), 1, MPI_INFO_NULL, ground_.comm,
                               &window_);
    }
    int put_all() {
        const ExchangeMemory& m = *ground_.memory;
        for (std::size_t peer = 0; peer < there_.size(); ++peer) {
            if (m.send_bytes[peer] == 0) continue;
            const int error =
                PMPI_Put(m.in.data() + m.send_at[peer], m.send_bytes[peer], MPI_BYTE, static_cast<int>(peer),
                         there_[peer], m.send_bytes[peer], MPI_BYTE, window_);
            if (error != MPI_SUCCESS) return error;
        }
        return MPI_SUCCESS;
    }
    int fenced() {
        // The program stores into a window that is kept.
        const int no_store = kind_ == Window::per_call ? MPI_MODE_NOSTORE : 0;
        int error = PMPI_Win_fence(no_store | MPI_MODE_NOPRECEDE, window_);
        if (error == MPI_SUCCESS) error = put_all();
        if (error == MPI_SUCCESS) error = PMPI_Win_fence(MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED, window_);
        if (error == MPI_SUCCESS) error = PMPI_Barrier(ground_.comm);
        return error;
    }
    int locked() {
        int error = PMPI_Win_lock_all(0, window_);
        if (error == MPI_SUCCESS) error = put_all();
        if (error == MPI_SUCCESS) error = PMPI_Win_flush_all(window_);
        if (error == MPI_SUCCESS) error = PMPI_Win_unlock_all(window_);
        // Nothing else tells a rank that what others put is here.
        if (error == MPI_SUCCESS) error = PMPI_Barrier(ground_.comm);
        return error;
    }

    ExchangeGround ground_;
    Window kind_;
    MPI_Win window_ = MPI_WIN_NULL;
    void* base_ = nullptr;
    std::size_t bytes_ = 0;
    std::vector<MPI_Aint> there_;
};

AlltoallvInit find_init(const char* symbol, std::string& why) {
    auto* found = reinterpret_cast<AlltoallvInit>(dlsym(RTLD_DEFAULT, symbol));
    if (found == nullptr) why = std::string("this MPI has no ") + symbol;
    return found;
}

}  // namespace

std::unique_ptr<ExchangeWay> make_exchange_way(const std::string& name, const ExchangeGround& ground,
                                               std::string& why) {
    using Window = Unplanned::Window;
    if (name == "native" || name == "thalweg") return std::make_unique<Repeated>(ground, name == "native");
    if (name == "native_init" || name == "thalweg_init") {
        const bool native = name == "native_init";
        const AlltoallvInit init = find_init(native ? "PMPI_Alltoallv_init" : "MPI_Alltoallv_init", why);
        if (init == nullptr) return nullptr;
        return std::make_unique<Persistent>(ground, native, init);
    }
    if (name == "window_per_call") return std::make_unique<Unplanned>(ground, Window::per_call);
    if (name == "window_kept") return std::make_unique<Unplanned>(ground, Window::kept);
    if (name == "window_kept_lock") return std::make_unique<Unplanned>(ground, Window::kept_lock);
    if (const auto options = rma_options(name)) {
        if (has_rma_alltoallv(*host())) return std::make_unique<OverWindows>(ground, *options);
        why = "this MPI lacks functions that windows need";
        return nullptr;
    }
    why = "there is no way to exchange named " + name;
    return nullptr;
}

}  // namespace thalweg::bench
