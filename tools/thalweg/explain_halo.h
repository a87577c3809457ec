// The part of `thalweg explain` that is about halo exchanges, whose cost depends on which neighbours share a
// host.
#pragma once

namespace thalweg::tool {

// argv[0] is "halo". The exit status.
int explain_halo(int argc, char** argv);

}  // namespace thalweg::tool
