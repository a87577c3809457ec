/* What is known beforehand of calls that are tried: natively until a set-up pays, then sixteen in both ways
 * in turns, then all in the way that was faster. */
#ifndef THALWEG_TESTS_PLAN_TRIED_H
#define THALWEG_TESTS_PLAN_TRIED_H

#include "check.h"

enum { calls_before = 8, trial_calls = 16, until_set_up = 80 };

/* Calls alike on one communicator, of so many bytes, and where the first of ours was; -1: none yet. */
typedef struct {
    MPI_Comm comm;
    const char* name;
    size_t bytes;
    int call, first, way;
} Series;

static Series begin(MPI_Comm comm, const char* name, size_t bytes) {
    const Series series = {comm, name, bytes, 0, -1, -1};
    return series;
}

/* What the next call has to do, where that does not follow from times. */
static void expect_turn(Series* series, int ran) {
    const int since = series->call++ - series->first - 1;
    if (series->first < 0) {
        CHECK(!ran || series->call > calls_before, "%s: call %d is one of ours", series->name, series->call);
        CHECK(series->call < until_set_up, "%s: none is tried (%s)", series->name, last_reason());
        if (ran) series->first = series->call - 1;
    } else if (since < trial_calls) {
        CHECK(ran == tried_as_schedule(since), "%s: call %d of the trial: %s", series->name, since,
              last_reason());
    } else {
        if (series->way < 0) series->way = ran;
        CHECK(ran == series->way, "%s: call %d changes its way: %s", series->name, since, last_reason());
    }
}

/* Behind a call of the series; `ran`: it was one of ours on this rank. Collective. */
static void look_at_turn(Series* series, int ran) {
    int ways[2] = {ran, -ran}, size;
    MPI_Comm_size(series->comm, &size);
    MPI_Allreduce(MPI_IN_PLACE, ways, 2, MPI_INT, MPI_MAX, series->comm);
    CHECK(ways[0] == -ways[1], "%s: some ranks ran call %d, others did not", series->name, series->call);
    if (expect_thalweg() && size > 1) expect_turn(series, ran);
}

static int is_judged(const Series* series) { return series->way >= 0 || !expect_thalweg(); }

#endif
