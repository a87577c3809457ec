#include "transport/saboteur/saboteur.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace thalweg {
namespace {

using Bytes = std::vector<unsigned char>;

class Saboteur final : public Transport {
  public:
    Saboteur(std::unique_ptr<Transport> owned, Transport& inner, const SaboteurOptions& options)
        : owned_(std::move(owned)),
          inner_(inner),
          options_(options),
          capabilities_(inner.capabilities()),
          receives_(inner.slots()) {
        // What peers put, and what is left in the memory of another, does not pass here, so it could not be
        // damaged.
        capabilities_.one_sided = capabilities_.stand_ins = false;
    }

    const Capabilities& capabilities() const override { return capabilities_; }
    int rank() const override { return inner_.rank(); }
    int size() const override { return inner_.size(); }
    Slot slots() const override { return inner_.slots(); }
    Status grow(Slot slots) override {
        const Status status = inner_.grow(slots);
        receives_.resize(inner_.slots());
        return status;
    }

    void expect(int peer, std::size_t bytes) override { inner_.expect(peer, bytes); }
    void forgo(int peer, std::size_t bytes) override { inner_.forgo(peer, bytes); }

    Status post_send(Slot slot, int peer, MessageId id, const void* data, std::size_t bytes,
                     SendMode mode) override {
        receives_[slot].memory = nullptr;
        return inner_.post_send(slot, peer, id, data, bytes, mode);
    }

    // Receives into memory of our own, so that the engine's keeps what it held until we hand the message
    // over.
    Status post_recv(Slot slot, int peer, MessageId id, void* data, std::size_t bytes) override {
        Receive& receive = receives_[slot];
        receive.memory = static_cast<unsigned char*>(data);
        receive.bytes.resize(bytes);
        receive.unequal = id.unequal;
        return inner_.post_recv(slot, peer, id, receive.bytes.data(), bytes);
    }

    Status progress(std::span<Slot> done, std::size_t& count) override {
        const Status status = inner_.progress(done, count);
        if (failed(status)) return status;
        for (std::size_t i = 0; i < count; ++i) {
            Receive& receive = receives_[done[i]];
            if (receive.memory && receive.unequal && inner_.received_bytes(done[i]) < receive.bytes.size())
                receive.bytes.resize(inner_.received_bytes(done[i]));
            if (receive.memory && !receive.bytes.empty()) deliver(receive);
        }
        return status;
    }

    std::uint64_t received_bytes(Slot slot) const override { return inner_.received_bytes(slot); }
    bool stirred() const override { return inner_.stirred(); }
    bool has_work() const override { return inner_.has_work(); }
    std::uint64_t sent() const override { return inner_.sent(); }
    bool has_left(std::uint64_t sent) override { return inner_.has_left(sent); }
    void drive_host() override { inner_.drive_host(); }
    int wait_descriptor() const override { return inner_.wait_descriptor(); }
    Status arm() override { return inner_.arm(); }
    void give_up() override { inner_.give_up(); }
    bool crosses(int peer) const override { return inner_.crosses(peer); }
    int inside_descriptor() const override { return inner_.inside_descriptor(); }
    Status arm_inside() override { return inner_.arm_inside(); }

  private:
    struct Receive {
        unsigned char* memory = nullptr;  // the engine's; null for a send
        Bytes bytes;                      // what arrived
        bool unequal = false;             // less may have
    };

    bool can_damage(const Bytes& bytes) const {
        switch (options_.mode) {
            case Sabotage::repeat:
                return previous_.size() >= bytes.size();
            case Sabotage::swap:
                return bytes.size() >= 2;
            default:
                return true;
        }
    }

    void deliver(Receive& receive) {
        Bytes& bytes = receive.bytes;
        const bool damage = can_damage(bytes) && ++candidates_ % options_.period == 0;
        const Bytes original = options_.mode == Sabotage::repeat ? bytes : Bytes();
        std::size_t written = bytes.size();
        if (damage) {
            const std::size_t half = bytes.size() / 2;
            switch (options_.mode) {
                case Sabotage::flip:
                    bytes[candidates_ % bytes.size()] ^= 1u << candidates_ % 8;
                    break;
                case Sabotage::drop:
                    written = 0;
                    break;
                case Sabotage::repeat:
                    std::memcpy(bytes.data(), previous_.data(), bytes.size());
                    break;
                case Sabotage::swap:
                    std::swap_ranges(bytes.begin(), bytes.begin() + half, bytes.end() - half);
                    break;
                case Sabotage::stale:
                    written -= 1;
                    break;
            }
        }
        if (written != 0) std::memcpy(receive.memory, bytes.data(), written);
        if (options_.mode == Sabotage::repeat) previous_ = original;
    }

    std::unique_ptr<Transport> owned_;
    Transport& inner_;
    SaboteurOptions options_;
    Capabilities capabilities_;
    std::vector<Receive> receives_;
    Bytes previous_;
    std::uint64_t candidates_ = 0;
};

}  // namespace

const char* name_of(Sabotage sabotage) {
    switch (sabotage) {
        case Sabotage::flip:
            return "flip";
        case Sabotage::drop:
            return "drop";
        case Sabotage::repeat:
            return "repeat";
        case Sabotage::swap:
            return "swap";
        case Sabotage::stale:
            return "stale";
    }
    return "unknown";
}

std::optional<SaboteurOptions> parse_saboteur(std::string_view text) {
    const std::size_t colon = text.find(':');
    SaboteurOptions options;
    if (colon != text.npos) {
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, options.period);
        if (error != std::errc() || stop != end || options.period == 0) return std::nullopt;
    }
    for (Sabotage mode : every_sabotage) {
        if (text.substr(0, colon) != name_of(mode)) continue;
        options.mode = mode;
        return options;
    }
    return std::nullopt;
}

std::optional<SaboteurOptions> saboteur_options_from_environment() {
    const char* text = std::getenv("THALWEG_SABOTEUR");
    if (!text || !*text) return std::nullopt;
    const auto options = parse_saboteur(text);
    if (options) return options;
    std::fprintf(stderr,
                 "thalweg: THALWEG_SABOTEUR=%s is not flip, drop, repeat, swap or stale, with :PERIOD\n",
                 text);
    std::exit(2);
}

std::unique_ptr<Transport> make_saboteur(std::unique_ptr<Transport> inner, const SaboteurOptions& options) {
    Transport& reference = *inner;
    return std::make_unique<Saboteur>(std::move(inner), reference, options);
}

std::unique_ptr<Transport> sabotaged(std::unique_ptr<Transport> inner) {
    const auto options = saboteur_options_from_environment();
    return options && inner ? make_saboteur(std::move(inner), *options) : std::move(inner);
}

std::unique_ptr<Transport> make_saboteur(Transport& inner, const SaboteurOptions& options) {
    return std::make_unique<Saboteur>(nullptr, inner, options);
}

}  // namespace thalweg
