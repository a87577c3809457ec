// The part of the report about who advances nonblocking operations, what that cost, and what became of the
// ports.
#pragma once

#include <string>

namespace thalweg {

// A JSON object.
void append_agent_json(std::string& text);

// Lines of the table; none where there is no agent.
void append_agent_table(std::string& text);

}  // namespace thalweg
