// The part of the report about neighbourhood collectives: by communicator, what its exchanges took with each
// peer (transport/peer_account.h), and where the time went.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plan/statistics.h"

namespace thalweg {

using Records = std::vector<std::shared_ptr<CommunicatorRecord>>;

// Communicators with a topology and neighbourhood collectives, those that moved most bytes first: the first
// 64, and what is left out. A member of a JSON object, after a comma; nothing where there are none.
void append_neighbours_json(std::string& text, const Records& records);

// Lines of the table: 8 communicators, 8 peers of each.
void append_neighbours_table(std::string& text, const Records& records);

}  // namespace thalweg
