// The part of `thalweg explain` that is about exchanges, whose cost depends on who sends how much to whom.
#pragma once

namespace thalweg::tool {

// For a command line with --pattern. argv[0] is "alltoallv". The exit status.
int explain_alltoallv(int argc, char** argv);

}  // namespace thalweg::tool
