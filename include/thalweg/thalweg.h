/* Thalweg: makes MPI programs communicate faster without changing them.
 *
 * A program needs nothing from this header: Thalweg speaks MPI. It is for programs and tools that want to
 * observe what was done, or to steer it. All functions are safe to call at any time from any thread unless
 * stated; none communicates unless stated. Return codes: 0 success, positive = fine but nothing done,
 * negative = error.
 *
 * The functions live in the preload object. A program that may also run without it looks them up with dlsym.
 *
 * Structures are the caller's and may grow at their end, so functions that fill one are given its size, as in
 * thalweg_get_last_call(&call, sizeof call). A program made with an older header than the object gets the
 * fields that it knows, and nothing behind them is written; in one made with a newer header the fields that
 * the object does not know are 0.
 */
#ifndef THALWEG_H
#define THALWEG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define THALWEG_VERSION_MAJOR 0
#define THALWEG_VERSION_MINOR 1
#define THALWEG_VERSION_PATCH 0

#define THALWEG_OK 0
#define THALWEG_IN_PROGRESS 1
#define THALWEG_DECLINED 2
#define THALWEG_NOT_FOUND 3
#define THALWEG_ERR_ARGUMENT (-1)
#define THALWEG_ERR_MEMORY (-2)
#define THALWEG_ERR_UNSUPPORTED (-3)

/* "0.1.0", static storage. */
const char* thalweg_version(void);

/* One sentence for a return code, static storage, never null. */
const char* thalweg_strerror(int code);

/* Sets one option at run time, e.g. thalweg_set_option("THALWEG_BCAST", "chain:chunk_bytes=64K"). `value`
 * NULL restores the value the process started with. The call is local and does not communicate, but the new
 * value must be set to the same text by all ranks between the same two collective calls, because choices
 * follow from it (not of THALWEG_LOG and THALWEG_INSIDE, which are each process's own). Returns THALWEG_OK;
 * THALWEG_NOT_FOUND: no such option; THALWEG_ERR_ARGUMENT: `name` is null, or the value malformed;
 * THALWEG_ERR_UNSUPPORTED: the option cannot change after MPI_Init, or Thalweg does nothing in this process:
 * before MPI_Init, with THALWEG=off, or where the ranks left every call to the MPI library;
 * THALWEG_ERR_MEMORY. Otherwise than with THALWEG_OK nothing changes. */
int thalweg_set_option(const char* name, const char* value);

/* What happened to this process's last intercepted collective call on any communicator, by the calling
 * thread. */
typedef struct thalweg_last_call {
    int accelerated;     /* 1: ran on a schedule of ours; 0: left to the native MPI */
    uint64_t bytes;      /* size of the collective by its definition in the standard */
    char algorithm[128]; /* "chain:chunk_bytes=64K", or empty when declined */
    char reason[128];    /* why it was chosen or declined, one short phrase */
    char transport[16];  /* what carried it: "mpi", "ucx", "shm", "shm and ucx", "windows"; or empty */
    char waits[8];       /* how a thread waits for it: "spin", "naps" between polls, "sleep" until something
                            arrives; or empty when declined */
    uint64_t number;     /* how many calls of this thread have been looked at; where it is the same after
                            another call, that one was not */
} thalweg_last_call;

/* Fills `call`, of `size` bytes: sizeof *call. Returns THALWEG_OK; THALWEG_NOT_FOUND: the calling thread has
 * made no such call; THALWEG_DECLINED: nor has it, but broadcasts go to the native MPI without being looked
 * at, and `reason` says why and up to which size (short ones, where no report is written, and those on one
 * host, unless THALWEG_BCAST asks for an algorithm); everything else is 0. Calls that are not looked at, as
 * long ones are not behind a trial that found the native call faster, leave the latest as it was;
 * THALWEG_ERR_ARGUMENT: `call` is null, or smaller than up to `reason`. Otherwise than with THALWEG_OK and
 * THALWEG_DECLINED nothing is written. */
int thalweg_get_last_call(thalweg_last_call* call, size_t size);

/* What one persistent operation of this process has cost and gained so far: after how many starts the plan
 * has paid for itself, N* = init / (once - plan). And what the alltoalls have that a communicator repeats,
 * once they have been tried as plans: their times are then of the slowest rank. */
typedef struct thalweg_plan_stats {
    char operation[32];  /* "alltoallv_init"; "alltoallv": repeated calls */
    char algorithm[128]; /* "spread" */
    uint64_t starts;     /* completed ones */
    double init_seconds; /* the _init call; of repeated calls the set-up of their communicator */
    /* Medians, of an even number of samples the mean of the two in the middle. A start and its completion,
     * the time inside those calls of this process, of the latest 64 without the first; 0: no start. The
     * native blocking call that does the same, on the slowest rank; 0: not known. */
    double plan_seconds, once_seconds;
    int once_measured; /* 1: measured on this communicator (blocking calls that ran natively); 0: a model */
    double break_even; /* N*, not rounded; infinity: the plan never pays; NaN: not known */
    /* Its 95 % interval, as far as the samples tell; NaN: they do not, as of repeated calls whose sizes take
     * turns. */
    double break_even_low, break_even_high;
} thalweg_plan_stats;

/* Fills `stats`, of `size` bytes (sizeof *stats), for the plan with this number: plans count from 0 in the
 * order in which this process made them, freed ones too, native ones not. Takes milliseconds. Returns
 * THALWEG_OK; THALWEG_NOT_FOUND: there is no such plan (the first 1024 are kept); THALWEG_ERR_ARGUMENT:
 * `stats` is null, or smaller than up to `break_even_high`; THALWEG_ERR_MEMORY. Otherwise than with
 * THALWEG_OK nothing is written. */
int thalweg_get_plan_stats(size_t plan, thalweg_plan_stats* stats, size_t size);

#ifdef __cplusplus
}
#endif
#endif
