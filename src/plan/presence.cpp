#include "plan/presence.h"
namespace thalweg {
void announce_presence() {}
Presence find_presence(double) { return Presence::all; }
const char* presence_reason() { return ""; }
void set_interception_complete(bool) {}
}  // namespace thalweg
