// In place of everything else here where libucp's headers were missing when this was built.
#include "transport/ucx/ucx.h"

namespace thalweg {

class UcxPort::Impl {};

Status UcxPort::open(const UcxOptions&, std::unique_ptr<UcxPort>&, std::string& why) {
    why = "this build has no ucx transport, because the headers of libucp (libucx-dev) were missing";
    return Status::unsupported;
}

// No port is ever made, so nobody can call these.
UcxPort::UcxPort(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
UcxPort::~UcxPort() = default;
std::span<const std::byte> UcxPort::address() const { return {}; }
Status UcxPort::learn(const UcxDirectory&, std::string&) { return Status::unsupported; }
bool UcxPort::knows(std::uint32_t) const { return false; }
bool UcxPort::reaches(std::uint32_t, std::string&) { return false; }
bool UcxPort::has_room_for(std::span<const std::uint32_t>, std::string&) const { return false; }
void UcxPort::poll() {}
bool UcxPort::holds(const void*, std::size_t) { return false; }
std::size_t UcxPort::rails() const { return 0; }
const char* UcxPort::description() const { return ""; }
Status UcxPort::name_channel(UcxChannelName&) { return Status::unsupported; }
void UcxPort::give_back(UcxChannelName) {}
void UcxPort::refuse(UcxChannelName) {}
Status UcxPort::make_channel(const UcxGroup&, std::unique_ptr<Transport>&) { return Status::unsupported; }
Status UcxPort::make_bare_channel(std::unique_ptr<Transport>&) { return Status::unsupported; }

}  // namespace thalweg
