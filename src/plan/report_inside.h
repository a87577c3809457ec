// The part of the report about messages inside a host: which protocols carried the large ones of each peer,
// why, and what they took beside the wire.
#pragma once

#include <string>

#include "plan/attendance.h"

namespace thalweg {

// Members of a JSON object, each after a comma; nothing where there was nothing to tell.
void append_inside_json(std::string& text, const Attendance::Account& account);

// Lines of the table.
void append_inside_table(std::string& text, const Attendance::Account& account);

}  // namespace thalweg
