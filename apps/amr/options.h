/* The command line of amr. No MPI here. */
#ifndef APPS_AMR_OPTIONS_H
#define APPS_AMR_OPTIONS_H

#include "amr/exchange.h"
#include "amr/report.h"

typedef struct {
    AmrProblem problem;
    int repeat;               /* runs of each version, behind one that warms up */
    int damage;               /* 1: one bit of each block is changed before the check */
    int chosen[amr_versions]; /* 1: it runs */
    const char* json;         /* the file to append to, a word of the command line; null: none */
} AmrOptions;

/* 1; 0: these are no options. */
int amr_read_options(int argc, char** argv, int ranks, AmrOptions* options);
void amr_print_usage(FILE* file);

#endif
