// Where a report goes: a file that is there whole or as it was before.
#pragma once

#include <string>
#include <string_view>

namespace thalweg {

// In MPI_Init: relative names of reports are of the folder that the program is in now, wherever it goes
// later.
void note_report_folder();

// `path`, absolute if a folder was noted.
std::string report_path(std::string path);

// Where a world made by MPI_Comm_spawn writes that was asked for `path`: beside its parent's report, not over
// it, and several of them beside each other: "report.json" becomes "report.spawned-node0-4711.json" with the
// host and process of its rank 0. There itself, where nothing is written over: in what a process has open,
// and in a device.
std::string path_of_spawned(std::string path);

// Replaces the file at `path` by `text` in one step, so that of several jobs that end together one's report
// stands there, whole, and a disk that is full leaves the old one. What is no ordinary file (a terminal, a
// pipe), or cannot be replaced, is written as it is; a file that the process has open (/dev/stdout) goes on
// with the report. Returns an empty text, or what went wrong as the system says it; then nothing is left
// behind.
std::string write_report_file(const std::string& path, std::string_view text);

}  // namespace thalweg
