#include "common/work.h"

#include <sys/prctl.h>

namespace thalweg::apps {

void sharpen_sleep() { prctl(PR_SET_TIMERSLACK, 1); }

}  // namespace thalweg::apps
