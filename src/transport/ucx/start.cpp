// Starting a port: contexts, workers, the descriptor.
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/descriptors.h"
#include "base/signals_blocked.h"
#include "transport/ucx/channel.h"
#include "transport/ucx/devices.h"
#include "transport/ucx/environment.h"
#include "transport/ucx/port.h"

namespace thalweg {
namespace {

using ucx::has_infiniband;
using ucx::Rail;

// libucp reads its settings for us from THALWEG_UCX_… (and, below those, the user's UCX_…).
constexpr const char* prefix = "THALWEG";

// Inside a host libucp may announce messages from here on, where it does not announce all that it may.
constexpr std::size_t inside_rendezvous_bytes = 128 * 1024 + 1;
// From here on messages are announced first where that was asked for.
constexpr std::size_t handshake_bytes = 16 * 1024;

// Why messages travel as they do, for reports.
constexpr const char* by_request = "it was asked for";
constexpr const char* too_short = "too short for a handshake";
constexpr const char* no_handshake = "a handshake would wait behind other bytes";
constexpr const char* long_enough = "long enough for a handshake";

// What libucp opens for a rail, what a peer takes over TCP, and peers that are provided for before anybody
// knows who they are: a process that has nearly all the descriptors that it may have would else fail in the
// midst of an operation.
constexpr std::uint64_t descriptors_per_rail = 24, descriptors_per_peer = 2, most_peers_provided_for = 64;

constinit std::atomic<std::uint32_t> forks{0};

void count_forks() {
    static const int registered =
        pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    (void)registered;
}

// Of messages that no size has announced.
constexpr std::uint64_t never = UINT64_MAX;

// As libucp reads it; empty: it chooses.
std::string thresholds(std::uint64_t inside, std::uint64_t between) {
    const auto text = [](std::uint64_t from) { return from == never ? "inf" : std::to_string(from); };
    if (inside != between) return "intra:" + text(inside) + ",inter:" + text(between);
    return between == 0 ? "" : text(between);
}

// A list of names that all exist: 1.13 prints a warning for one that does not.
std::string usual_transports() { return has_infiniband() ? "self,sm,tcp,ib" : "self,sm,tcp"; }

}  // namespace

bool UcxPort::Impl::in_child() const { return forks.load(std::memory_order_relaxed) != forks_at_birth_; }

// What we set, unless the user did under our prefix.
Status UcxPort::Impl::configure(const Rail& rail, ucp_config_t* config, std::string& why) {
    struct Setting {
        const char* name;
        std::string value;
        bool needed;
    };
    const std::string& asked = options_.protocol;
    const bool handshake = asked == "get" || asked == "put";
    if (!asked.empty() && !handshake && asked != "eager") {
        why = "there is no protocol " + asked;
        return Status::invalid_argument;
    }
    // Over TCP, nothing is announced between hosts unless that was asked for; nor inside them, where libucp
    // cannot be told one without the other.
    const bool at_once = asked.empty() && !has_infiniband();
    // 0: as libucp thinks best.
    const std::uint64_t everywhere = asked == "eager" || at_once ? never
                                     : ucp_.needs_registration   ? ucx::rendezvous_bytes
                                     : handshake                 ? handshake_bytes
                                                                 : 0;
    const std::uint64_t inside = at_once && ucp_.tells_hosts_apart ? inside_rendezvous_bytes : everywhere;
    const Setting settings[] = {
        {"TLS", options_.transports.empty() ? usual_transports() : options_.transports, true},
        {"NET_DEVICES", rail.device, !rail.device.empty()},
        // A peer that is killed is noticed over TCP at once, over shared memory at the next round of these.
        {"KEEPALIVE_INTERVAL", "2s", false},
        {"RNDV_THRESH", thresholds(inside, everywhere), !asked.empty()},
        // Over TCP, too, the sender writes as soon as it may. As libucp chooses there, plans with two
        // messages of 128 KiB per link now and then left the link idle for the time of one.
        {"RNDV_SCHEME",
         handshake          ? asked + "_zcopy"
         : has_infiniband() ? ""
                            : "put_zcopy",
         handshake},
    };
    // What moves messages, and is not what is said here.
    bool by_environment = false, by_libucp = false;
    for (const Setting& setting : settings) {
        const bool of_messages = std::string_view(setting.name).starts_with("RNDV_");
        const std::string variable = std::string(prefix) + "_UCX_" + setting.name;
        if (std::getenv(variable.c_str()) ||
            (!setting.needed && std::getenv((std::string("UCX_") + setting.name).c_str()))) {
            by_environment |= of_messages;
            continue;
        }
        if (setting.value.empty()) continue;
        const ucs_status_t status = ucp_.config_modify(config, setting.name, setting.value.c_str());
        by_libucp |= of_messages && status != UCS_OK;
        if (status != UCS_OK && setting.needed) {
            why = "libucp refuses " + std::string(setting.name) + "=" + setting.value + ": " +
                  ucp_.status_string(status);
            return Status::unsupported;
        }
    }
    const Way longer = asked == "get"                        ? Way::rendezvous_get
                       : asked == "put" || !has_infiniband() ? Way::rendezvous_put
                                                             : Way::libucp;
    const auto told = [&](std::uint64_t from) -> ucx::Manner {
        if (by_environment) return {0, {}, {Way::libucp, "libucp's settings in the environment say"}};
        if (by_libucp) return {0, {}, {Way::libucp, "libucp refuses what it was told"}};
        if (!asked.empty())
            return {from, {Way::eager, asked == "eager" ? by_request : too_short}, {longer, by_request}};
        return {from,
                {Way::eager, from == never ? no_handshake : too_short},
                {longer, longer == Way::libucp ? "libucp chooses by size" : long_enough}};
    };
    between_ = told(everywhere);
    inside_ = told(inside);
    return Status::ok;
}

Status UcxPort::Impl::start_rail(Rail& rail, std::vector<std::byte>& address, std::string& why) {
    const auto refuse = [&](const char* what, ucs_status_t status) {
        why = std::string("libucp ") + ucp_.version + " does not start (" + what + ": " +
              ucp_.status_string(status) + ")";
        if (!rail.device.empty()) why += " on " + rail.device;
        return status == UCS_ERR_NO_MEMORY ? Status::out_of_memory : Status::unsupported;
    };
    ucp_config_t* config = nullptr;
    ucs_status_t status = ucp_.config_read(prefix, nullptr, &config);
    if (status != UCS_OK) return refuse("ucp_config_read", status);
    if (const Status configured = configure(rail, config, why); failed(configured)) {
        ucp_.config_release(config);
        return configured;
    }
    ucp_params_t parameters = {};
    parameters.field_mask =
        UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
    parameters.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    parameters.estimated_num_eps = options_.processes;
    parameters.name = "thalweg";
    // The oldest interface that we know: asking for that of our headers would warn on older libraries.
    status = ucp_.init_version(UCP_API_MAJOR, 13, &parameters, config, &rail.context);
    ucp_.config_release(config);
    if (status != UCS_OK) {
        rail.context = nullptr;
        return refuse("ucp_init", status);
    }
    ucp_worker_params_t worker = {};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    // Any thread, one at a time: the port's lock sees to it.
    worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    status = ucp_.worker_create(rail.context, &worker, &rail.worker);
    if (status != UCS_OK) {
        rail.worker = nullptr;
        return refuse("ucp_worker_create", status);
    }
    status = listen(rail);
    if (status != UCS_OK) return refuse("ucp_worker_set_am_recv_handler", status);
    ucp_address_t* bytes = nullptr;
    std::size_t length = 0;
    status = ucp_.worker_get_address(rail.worker, &bytes, &length);
    if (status != UCS_OK) return refuse("ucp_worker_get_address", status);
    const auto* first = reinterpret_cast<const std::byte*>(bytes);
    address.assign(first, first + length);
    ucp_.worker_release_address(rail.worker, bytes);
    return Status::ok;
}

Status UcxPort::Impl::make_descriptor(std::string& why) {
    descriptor_ = epoll_create1(EPOLL_CLOEXEC);
    bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    std::vector<int> watched{bell_};
    for (const Rail& rail : rails_) {
        int descriptor = -1;
        const ucs_status_t status = ucp_.worker_get_efd(rail.worker, &descriptor);
        if (status != UCS_OK) {
            why = std::string("libucp gives no descriptor to sleep on: ") + ucp_.status_string(status);
            return Status::unsupported;
        }
        fcntl(descriptor, F_SETFD, FD_CLOEXEC);
        watched.push_back(descriptor);
    }
    for (const int descriptor : watched) {
        epoll_event event = {};
        event.events = EPOLLIN;
        if (descriptor_ < 0 || descriptor < 0 ||
            epoll_ctl(descriptor_, EPOLL_CTL_ADD, descriptor, &event) != 0) {
            why = std::string("no descriptor to sleep on: ") + std::strerror(errno);
            return Status::unsupported;
        }
    }
    return Status::ok;
}

// A connection from either side, for each rail. Those that are open count among what the process has open.
bool UcxPort::Impl::has_room_for(std::span<const std::uint32_t> processes, std::string& why) {
    if (has_infiniband()) return true;
    std::uint64_t connections = 0;
    {
        const Poster lock(*this);
        for (const std::uint32_t process : processes) {
            const auto known = peers_.find(process);
            if (process == options_.process) continue;
            for (std::size_t rail = 0; rail < rails_.size(); ++rail)
                connections += known == peers_.end() || known->second->endpoints[rail] == nullptr;
        }
    }
    const std::uint64_t left = descriptors_left();
    if (connections == 0 || left >= descriptors_per_peer * connections) return true;
    why = "the process may open only " + std::to_string(left) + " more descriptors, and " +
          std::to_string(connections) + " connections to peers may take two each";
    return false;
}

Status UcxPort::Impl::start(std::string& why) {
    count_forks();
    forks_at_birth_ = forks.load(std::memory_order_relaxed);
    std::vector<std::vector<std::byte>> addresses;
    description_ = "libucp " + ucp_.version + (ucp_.loaded_by_us ? ", rails" : " of the process, rails");
    std::vector<std::string> devices = options_.devices;
    if (devices.empty()) {
        const bool finds_them = !ucp_.takes_bridges || std::getenv("UCX_NET_DEVICES") != nullptr;
        devices.push_back(finds_them ? std::string() : ucx::devices_but_bridges());
    }
    const std::uint64_t left = descriptors_left();
    if (left <
        descriptors_per_rail * devices.size() +
            descriptors_per_peer * std::min<std::uint64_t>(options_.processes, most_peers_provided_for)) {
        why = "the process may open only " + std::to_string(left) + " more descriptors";
        return Status::unsupported;
    }
    const SignalsBlocked blocked;  // libucp's own thread, which waits for connections, must not take them
    // A worker looks through the whole environment for settings that nobody reads, and crashes where a
    // program has none at all: clearenv() leaves a null.
    std::optional<BorrowedEnvironment> empty;
    if (environ == nullptr) empty.emplace(std::vector<Variable>());
    unlisted_.resize(std::size_t{options_.processes} * devices.size());
    for (const std::string& device : devices) {
        rails_.push_back({device, nullptr, nullptr});
        addresses.emplace_back();
        if (const Status status = start_rail(rails_.back(), addresses.back(), why); failed(status)) {
            return status;
        }
        description_ += " " + (device.empty() ? std::string("auto") : device);
    }
    address_ = ucx::format_address(options_.host_key, addresses);
    return make_descriptor(why);
}

Status UcxPort::open(const UcxOptions& options, std::unique_ptr<UcxPort>& port, std::string& why) try {
    ucx::TagLayout layout;
    if (options.process >= options.processes || options.devices.size() > ucx_most_rails) {
        why = "the ucx transport was started with impossible options";
        return Status::invalid_argument;
    }
    if (!ucx::TagLayout::make(options.processes, layout)) {
        why = "the ucx transport serves at most 8388608 processes";
        return Status::unsupported;
    }
    const ucx::Library* library = ucx::library(why);
    if (!library) return Status::unsupported;
    auto impl = std::make_unique<Impl>(*library, options, layout);
    if (const Status status = impl->start(why); failed(status)) return status;
    port.reset(new UcxPort(std::move(impl)));
    return Status::ok;
} catch (const std::bad_alloc&) {
    why = "no memory for the ucx transport";
    return Status::out_of_memory;
}

UcxPort::UcxPort(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
UcxPort::~UcxPort() = default;
std::span<const std::byte> UcxPort::address() const { return impl_->address(); }
Status UcxPort::learn(const UcxDirectory& directory, std::string& why) {
    return impl_->learn(directory, why);
}
bool UcxPort::knows(std::uint32_t process) const { return impl_->knows(process); }
bool UcxPort::reaches(std::uint32_t process, std::string& why) { return impl_->reaches(process, why); }
bool UcxPort::has_room_for(std::span<const std::uint32_t> processes, std::string& why) const {
    return impl_->has_room_for(processes, why);
}
void UcxPort::poll() {
    if (impl_->in_child()) return;
    const Impl::Driver lock(*impl_);
    impl_->poll();
}
std::size_t UcxPort::rails() const { return impl_->rails().size(); }
const char* UcxPort::description() const { return impl_->description(); }
Status UcxPort::name_channel(UcxChannelName& name) { return impl_->name_channel(name); }
void UcxPort::give_back(UcxChannelName name) { impl_->give_back(name); }
void UcxPort::refuse(UcxChannelName name) { impl_->refuse(name); }

Status UcxPort::make_channel(const UcxGroup& group, std::unique_ptr<Transport>& channel) try {
    const ucx::TagLayout& layout = impl_->layout();
    if (group.rank < 0 || group.rank >= group.size || group.name.root >= impl_->processes() ||
        group.name.counter >= layout.counters()) {
        return Status::invalid_argument;
    }
    std::uint64_t end = group.processes_end;
    if (!group.processes) {
        end = static_cast<std::uint64_t>(group.size);
    } else if (end == 0) {
        end = std::uint64_t{*std::max_element(group.processes, group.processes + group.size)} + 1;
    }
    if (end > impl_->processes()) return Status::invalid_argument;
    auto made = std::make_unique<ucx::Channel>(*impl_, group);
    if (const Status status = made->open(); failed(status)) return status;
    channel = std::move(made);
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

Status UcxPort::make_bare_channel(std::unique_ptr<Transport>& channel) try {
    auto made = std::make_unique<ucx::Channel>(*impl_, UcxGroup{});
    if (const Status status = made->grow(1); failed(status)) return status;
    channel = std::move(made);
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

}  // namespace thalweg
