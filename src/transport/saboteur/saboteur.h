// A transport that damages messages, to test the tests: every suite must fail under every mode. Never part of
// a product: tests link it, and the preload objects that tests/conformance makes beside the product's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "transport/transport.h"

namespace thalweg {

enum class Sabotage : std::uint8_t {
    flip,    // one bit of a message is wrong
    drop,    // a message arrives, but the memory keeps what it held
    repeat,  // the bytes of the message before (of at least this size) arrive again
    swap,    // the two halves of a message change places
    stale,   // the last byte of a message is not written
};
inline constexpr Sabotage every_sabotage[] = {Sabotage::flip, Sabotage::drop, Sabotage::repeat,
                                              Sabotage::swap, Sabotage::stale};
const char* name_of(Sabotage sabotage);

struct SaboteurOptions {
    Sabotage mode = Sabotage::flip;
    std::uint32_t period = 1;  // every how many received messages that the mode can damage
};

// From the environment variable THALWEG_SABOTEUR, "flip", "drop:10" (mode:period) and so on; empty where it
// is unset. A malformed value ends the process: a test that asked for damage must not run without it.
std::optional<SaboteurOptions> saboteur_options_from_environment();
std::optional<SaboteurOptions> parse_saboteur(std::string_view text);

// Damages what `inner` receives on its way to the engine; takes `inner` over. Allocates freely.
std::unique_ptr<Transport> make_saboteur(std::unique_ptr<Transport> inner, const SaboteurOptions& options);
// The same as the environment asks, which may be for nothing; null stays null.
std::unique_ptr<Transport> sabotaged(std::unique_ptr<Transport> inner);
// The same over a transport of the caller's, which must outlive it.
std::unique_ptr<Transport> make_saboteur(Transport& inner, const SaboteurOptions& options);

}  // namespace thalweg
