/* What amr prints for people, and writes for machines as a JSON line per version. No MPI here. */
#ifndef APPS_AMR_REPORT_H
#define APPS_AMR_REPORT_H

#include <stdio.h>

#include "amr/traffic.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int blocks[amr_axes], cells, levels, steps, refine_every, ranks;
} AmrProblem;

/* One mesh of a run: how many steps exchange on it, and what of each exchange crosses between hosts. */
typedef struct {
    int exchanges, blocks;
    AmrTraffic stages[amr_axes];
} AmrMeshReport;

/* One run of one version, in seconds. A step's communication is its exchange and, where the mesh is new,
 * giving up what the mesh before had of communicators, requests and plans, and making the new ones; in the
 * last step also giving these up. It begins behind a barrier, and is that of the rank that takes longest for
 * it. */
typedef struct {
    double communication; /* of all steps */
    double* steps;        /* of each; the caller's */
    /* Of the rank on which it is longest, of all steps: */
    double slowest;    /* communication */
    double exchanging; /* exchanges, packing included */
    double inside;     /* of these inside MPI */
    double making;     /* making and giving up */
    double total;      /* the run */
} AmrSample;

typedef struct {
    const char* name;
    int count;          /* of runs */
    AmrSample* samples; /* the caller's */
    long wrong;         /* cells, of all runs */
} AmrSeries;

/* How often a run exchanges: once in every step, and once behind the last. */
int amr_exchanges(const AmrProblem* problem);
/* How many meshes it does that on, and how often on one of them. */
int amr_meshes(const AmrProblem* problem);
int amr_exchanges_on(const AmrProblem* problem, int mesh);

/* Medians, a line per version. Pre: every series has a sample. */
void amr_print(FILE* file, const AmrProblem* problem, const AmrMeshReport* meshes, const AmrSeries* series,
               int count);
/* One line of JSON, as docs/guide/applications.md describes it. `library`: a name up to its first line's end.
 * What cannot be written shows in ferror. */
void amr_write_line(FILE* file, const AmrProblem* problem, const AmrMeshReport* meshes, const char* library,
                    const AmrSeries* series);

#ifdef __cplusplus
}
#endif

#endif
