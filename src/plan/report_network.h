// The part of the report that says what was found out about the network between hosts.
#pragma once

#include <string>

#include "plan/world.h"

namespace thalweg {

// Nothing where nobody asked the network. As another member of a JSON object; as a line of the table.
void append_network_json(std::string& text, const World& world);
void append_network_table(std::string& text, const World& world);

}  // namespace thalweg
