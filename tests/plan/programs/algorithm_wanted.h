/* THALWEG_TEST_ALGORITHM=NAME: by what calls are to run. Some may have to learn first. */
#pragma once

#include "check.h"

static inline const char* wanted_algorithm(void) { return getenv("THALWEG_TEST_ALGORITHM"); }

/* Whether the last call ran by that. */
static inline int ran_as_wanted(void) {
    thalweg_last_call call;
    return wanted_algorithm() != NULL && look_last_call != NULL && look_last_call(&call, sizeof call) == 0 &&
           strcmp(call.algorithm, wanted_algorithm()) == 0;
}

/* Of the calls of a form: how many did. */
static inline void expect_some_as_wanted(int as_wanted, const char* form) {
    if (wanted_algorithm() != NULL && expect_thalweg())
        CHECK(as_wanted > 0, "no %s call ran by %s", form, wanted_algorithm());
}
