#include "plan/report_inside.h"

#include <cinttypes>

#include "base/clock.h"
#include "plan/report_text.h"

namespace thalweg {
void append_inside_json(std::string& text, const Attendance::Account& account) {
    if (!account.why_not_shm.empty()) text += ", \"no_host_memory\": " + quoted(account.why_not_shm);
    if (account.shm.empty()) return;
    text += ", \"inside_hosts\": {\"through\": " + quoted(account.shm);
    text += ", \"seconds_on_wire\": " + seconds_text(account.wire_ns) + ", \"peers\": [";
    bool first = true;
    for (const ShmAccount& peer : account.shm_peers) {
        append(text, "%s{\"process\": %u, \"protocol\": \"%s\", \"because\": \"%s\", \"switches\": %" PRIu64,
               first ? "" : ", ", peer.process, peer.protocol, peer.because, peer.switches);
        text += ", \"seconds_copying\": " + seconds_text(peer.copy_ns) +
                ", \"seconds_under_way\": " + seconds_text(peer.transfer_ns) + ", \"bytes\": {";
        const char* before = "";
        for (int i = 0; i < ShmAccount::protocols; ++i) {
            if (peer.messages[i] == 0) continue;
            append(text, "%s\"%s\": %" PRIu64, before, ShmAccount::name_of(i), peer.bytes[i]);
            before = ", ";
        }
        text += "}, \"messages_because\": {";
        before = "";
        for (int i = 0; i < ShmAccount::reasons; ++i) {
            const std::uint64_t messages = peer.messages_because[static_cast<std::size_t>(i)];
            if (messages == 0) continue;
            append(text, "%s\"%s\": %" PRIu64, before, ShmAccount::reason_of(i), messages);
            before = ", ";
        }
        text += "}}";
        first = false;
    }
    text += "]}";
}

void append_inside_table(std::string& text, const Attendance::Account& account) {
    if (!account.why_not_shm.empty())
        text += "  not through the host's memory: " + account.why_not_shm + "\n";
    if (account.shm.empty()) return;
    append(text, "  inside the host: %s; %.6f s with something on the wire\n", account.shm.c_str(),
           seconds(account.wire_ns));
    for (const ShmAccount& peer : account.shm_peers)
        append(text, "    rank %u: %s, because %s (%" PRIu64 " changes); copied for %.6f s of %.6f s\n",
               peer.process, peer.protocol, peer.because, peer.switches, seconds(peer.copy_ns),
               seconds(peer.transfer_ns));
}

}  // namespace thalweg
