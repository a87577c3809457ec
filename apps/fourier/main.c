/* Fourier transforms of a cube that is cut into slabs, forward and back, over and over with other data.
 *
 * Each rank has whole planes of constant x, transforms them over y and z, and sends to every rank the part of
 * its planes that this rank's range of y needs: an alltoallv. Then it has whole planes of constant y and
 * transforms over x. Back is the same the other way round.
 *
 * Plain MPI. Two forms of the same program: MPI_Alltoallv in every iteration, and MPI_Alltoallv_init once
 * with MPI_Start and MPI_Wait in every iteration. Every iteration transforms another sum of plane waves,
 * whose spectrum is known exactly, and the way back must give the waves again: each rank checks both. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/whole_number.h"
#include "fourier/fft.h"

enum { waves = 3, default_n = 32, default_iterations = 20 };
static const double two_pi = 6.283185307179586476925286766559;

typedef struct transform {
    size_t n;
    int rank, ranks;
    fft_plan* line;
    /* x_planes[(x * n + y) * n + z] and y_planes[(y * n + x) * n + z], x and y counted from this rank's first
     */
    fft_complex *x_planes, *y_planes;
    fft_complex *near_x,
        *near_y; /* blocks as they travel: near_x packed from x_planes, near_y from y_planes */
    size_t x_begin, x_end, y_begin, y_end;
    int *x_counts, *x_places, *y_counts, *y_places; /* doubles of near_x and near_y, by peer */
    MPI_Request forward, backward;                  /* of the persistent form */
    double exchange_seconds;                        /* of this iteration */
} transform;

static void fail(const char* why) {
    fprintf(stderr, "fourier: %s\n", why);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static void* reserve(size_t count, size_t bytes) {
    void* memory = calloc(count > 0 ? count : 1, bytes);
    if (memory == NULL) fail("not enough memory for this cube");
    return memory;
}

static void make(transform* t, size_t n) {
    memset(t, 0, sizeof *t);
    t->n = n;
    MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t->ranks);
    t->line = fft_make(n);
    if (t->line == NULL) fail("not enough memory for this cube");
    t->x_begin = t->y_begin = block_begin(n, t->ranks, t->rank);
    t->x_end = t->y_end = block_begin(n, t->ranks, t->rank + 1);
    const size_t elements = (t->x_end - t->x_begin) * n * n;
    t->x_planes = reserve(elements, sizeof(fft_complex));
    t->y_planes = reserve(elements, sizeof(fft_complex));
    t->near_x = reserve(elements, sizeof(fft_complex));
    t->near_y = reserve(elements, sizeof(fft_complex));
    t->x_counts = reserve((size_t)t->ranks, sizeof(int));
    t->x_places = reserve((size_t)t->ranks, sizeof(int));
    t->y_counts = reserve((size_t)t->ranks, sizeof(int));
    t->y_places = reserve((size_t)t->ranks, sizeof(int));
    size_t at = 0;
    for (int peer = 0; peer < t->ranks; ++peer) {
        const size_t theirs = block_begin(n, t->ranks, peer + 1) - block_begin(n, t->ranks, peer);
        const size_t doubles = 2 * (t->x_end - t->x_begin) * theirs * n;
        if (at + doubles > 0x7fffffff) fail("this cube has too many elements per rank for MPI_Alltoallv");
        t->x_counts[peer] = t->y_counts[peer] = (int)doubles;
        t->x_places[peer] = t->y_places[peer] = (int)at;
        at += doubles;
    }
    t->forward = t->backward = MPI_REQUEST_NULL;
}

static void free_plans(transform* t) {
    if (t->forward != MPI_REQUEST_NULL) MPI_Request_free(&t->forward);
    if (t->backward != MPI_REQUEST_NULL) MPI_Request_free(&t->backward);
}

static void release(transform* t) {
    fft_free(t->line);
    void* memory[] = {t->x_planes, t->y_planes, t->near_x,   t->near_y,
                      t->x_counts, t->x_places, t->y_counts, t->y_places};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; ++i) free(memory[i]);
}

/* From planes of x to blocks by the receiver's y, or from planes of y to blocks by the receiver's x; and
 * back. Both sides keep a block in the order (x, y, z). */
static void pack_x(transform* t, int unpack) {
    fft_complex* at = t->near_x;
    const size_t n = t->n;
    for (int peer = 0; peer < t->ranks; ++peer)
        for (size_t x = 0; x < t->x_end - t->x_begin; ++x)
            for (size_t y = block_begin(n, t->ranks, peer); y < block_begin(n, t->ranks, peer + 1);
                 ++y, at += n) {
                fft_complex* const line = t->x_planes + (x * n + y) * n;
                memcpy(unpack ? line : at, unpack ? at : line, n * sizeof *at);
            }
}

static void pack_y(transform* t, int unpack) {
    fft_complex* at = t->near_y;
    const size_t n = t->n;
    for (int peer = 0; peer < t->ranks; ++peer)
        for (size_t x = block_begin(n, t->ranks, peer); x < block_begin(n, t->ranks, peer + 1); ++x)
            for (size_t y = 0; y < t->y_end - t->y_begin; ++y, at += n) {
                fft_complex* const line = t->y_planes + (y * n + x) * n;
                memcpy(unpack ? line : at, unpack ? at : line, n * sizeof *at);
            }
}

static void plan_exchanges(transform* t) {
    MPI_Alltoallv_init(t->near_x, t->x_counts, t->x_places, MPI_DOUBLE, t->near_y, t->y_counts, t->y_places,
                       MPI_DOUBLE, MPI_COMM_WORLD, MPI_INFO_NULL, &t->forward);
    MPI_Alltoallv_init(t->near_y, t->y_counts, t->y_places, MPI_DOUBLE, t->near_x, t->x_counts, t->x_places,
                       MPI_DOUBLE, MPI_COMM_WORLD, MPI_INFO_NULL, &t->backward);
}

static void exchange(transform* t, int backward) {
    MPI_Request* const plan = backward ? &t->backward : &t->forward;
    const double began = MPI_Wtime();
    if (*plan != MPI_REQUEST_NULL) {
        MPI_Start(plan);
        MPI_Wait(plan, MPI_STATUS_IGNORE);
    } else if (backward) {
        MPI_Alltoallv(t->near_y, t->y_counts, t->y_places, MPI_DOUBLE, t->near_x, t->x_counts, t->x_places,
                      MPI_DOUBLE, MPI_COMM_WORLD);
    } else {
        MPI_Alltoallv(t->near_x, t->x_counts, t->x_places, MPI_DOUBLE, t->near_y, t->y_counts, t->y_places,
                      MPI_DOUBLE, MPI_COMM_WORLD);
    }
    t->exchange_seconds += MPI_Wtime() - began;
}

static void transform_planes(transform* t, int sign) {
    const size_t n = t->n;
    for (size_t x = 0; x < t->x_end - t->x_begin; ++x) {
        fft_complex* const plane = t->x_planes + x * n * n;
        for (size_t y = 0; y < n; ++y) fft_line(t->line, plane + y * n, 1, sign);
        for (size_t z = 0; z < n; ++z) fft_line(t->line, plane + z, n, sign);
    }
}

static void transform_across(transform* t, int sign) {
    const size_t n = t->n;
    for (size_t y = 0; y < t->y_end - t->y_begin; ++y)
        for (size_t z = 0; z < n; ++z) fft_line(t->line, t->y_planes + y * n * n + z, n, sign);
}

/* Wave w of an iteration: its frequencies and its height. No two waves of one iteration are alike. */
typedef struct wave {
    size_t x, y, z;
    double height;
} wave;

static wave wave_of(const transform* t, int iteration, int w) {
    const size_t i = (size_t)iteration;
    const wave made = {(i * 5 + (size_t)w * 7) % t->n, (i * 3 + (size_t)w * 11 + 1) % t->n,
                       (i + (size_t)w * 13 + 2) % t->n, 1.0 + w + 0.25 * (double)(i % 8)};
    return made;
}

static fft_complex value_at(const transform* t, int iteration, size_t x, size_t y, size_t z) {
    fft_complex sum = {0, 0};
    for (int w = 0; w < waves; ++w) {
        const wave one = wave_of(t, iteration, w);
        const double angle = two_pi * (double)((one.x * x + one.y * y + one.z * z) % t->n) / (double)t->n;
        sum.re += one.height * cos(angle);
        sum.im += one.height * sin(angle);
    }
    return sum;
}

/* Each wave is one point of the spectrum, as high as the cube has elements. */
static fft_complex spectrum_at(const transform* t, int iteration, size_t x, size_t y, size_t z) {
    fft_complex sum = {0, 0};
    for (int w = 0; w < waves; ++w) {
        const wave one = wave_of(t, iteration, w);
        if (one.x == x && one.y == y && one.z == z) sum.re += one.height * pow((double)t->n, 3);
    }
    return sum;
}

typedef fft_complex (*expectation)(const transform*, int, size_t, size_t, size_t);

/* The largest difference on this rank. planes of x, or of y. */
static double difference(const transform* t, const fft_complex* planes, int of_y, int iteration, double scale,
                         expectation expected) {
    const size_t n = t->n, begin = of_y ? t->y_begin : t->x_begin, end = of_y ? t->y_end : t->x_end;
    double worst = 0;
    for (size_t a = begin; a < end; ++a)
        for (size_t b = 0; b < n; ++b)
            for (size_t z = 0; z < n; ++z) {
                const fft_complex is = planes[((a - begin) * n + b) * n + z];
                const fft_complex right = expected(t, iteration, of_y ? b : a, of_y ? a : b, z);
                const double off = fabs(is.re * scale - right.re) + fabs(is.im * scale - right.im);
                /* No number must not hide behind a maximum. */
                if (!(off <= worst)) worst = isnan(off) ? INFINITY : off;
            }
    return worst;
}

static void poison(transform* t) {
    const size_t bytes = (t->x_end - t->x_begin) * t->n * t->n * sizeof(fft_complex);
    memset(t->y_planes, 0xa5, bytes);
    memset(t->near_y, 0xa5, bytes);
}

/* One iteration, there and back. The largest difference from what is right, by the height of what is
 * compared. */
static double iterate(transform* t, int iteration, int damage, double* seconds) {
    const size_t n = t->n;
    const double all = pow((double)n, 3);
    for (size_t x = t->x_begin; x < t->x_end; ++x)
        for (size_t y = 0; y < n; ++y)
            for (size_t z = 0; z < n; ++z)
                t->x_planes[((x - t->x_begin) * n + y) * n + z] = value_at(t, iteration, x, y, z);
    poison(t);
    t->exchange_seconds = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    transform_planes(t, -1);
    pack_x(t, 0);
    exchange(t, 0);
    pack_y(t, 1);
    transform_across(t, -1);
    seconds[0] = MPI_Wtime() - began;
    if (damage && t->y_end > t->y_begin) t->y_planes[0].re += 1e-6 * all;
    const double forth = difference(t, t->y_planes, 1, iteration, 1, spectrum_at) / all;
    const double again = MPI_Wtime();
    transform_across(t, 1);
    pack_y(t, 0);
    memset(t->near_x, 0xa5, (t->x_end - t->x_begin) * n * n * sizeof(fft_complex));
    exchange(t, 1);
    pack_x(t, 1);
    transform_planes(t, 1);
    seconds[0] += MPI_Wtime() - again;
    seconds[1] = t->exchange_seconds;
    const double back = difference(t, t->x_planes, 0, iteration, 1 / all, value_at);
    return forth > back ? forth : back;
}

static int by_size(const void* a, const void* b) {
    const double left = *(const double*)a, right = *(const double*)b;
    return (left > right) - (left < right);
}

typedef struct outcome {
    double init, iteration, exchange, worst; /* seconds: medians of the last rank's */
} outcome;

static outcome run(size_t n, int iterations, int persistent, int damage) {
    transform t;
    outcome result = {0, 0, 0, 0};
    make(&t, n);
    double* const seconds = reserve(2 * (size_t)iterations, sizeof(double));
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    if (persistent) plan_exchanges(&t);
    result.init = MPI_Wtime() - began;
    for (int i = 0; i < iterations; ++i) {
        double own[3] = {0, 0, 0}, most[3];
        own[2] = iterate(&t, i, damage && i == iterations - 1, own);
        MPI_Allreduce(own, most, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        seconds[i] = most[0];
        seconds[iterations + i] = most[1];
        if (!(most[2] <= result.worst)) result.worst = most[2];
    }
    const double freed = MPI_Wtime();
    free_plans(&t);
    result.init += persistent ? MPI_Wtime() - freed : 0;
    release(&t);
    MPI_Allreduce(MPI_IN_PLACE, &result.init, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(seconds, (size_t)iterations, sizeof(double), by_size);
    qsort(seconds + iterations, (size_t)iterations, sizeof(double), by_size);
    result.iteration = seconds[iterations / 2];
    result.exchange = seconds[iterations + iterations / 2];
    free(seconds);
    return result;
}

static void show(const char* form, const outcome* seen) {
    printf("%-12s %12.3f ms %12.3f ms %12.3f ms   %.1e\n", form, 1e3 * seen->iteration, 1e3 * seen->exchange,
           1e3 * seen->init, seen->worst);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, damage = 0, repeated = 1, persistent = 1, bad = 0;
    long n = default_n, iterations = default_iterations;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i < argc; ++i) {
        const char* const value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--damage") == 0) {
            damage = 1;
        } else if (strcmp(argv[i], "--n") == 0) {
            n = whole_number(value), ++i;
        } else if (strcmp(argv[i], "--iterations") == 0) {
            iterations = whole_number(value), ++i;
        } else if (strcmp(argv[i], "--form") == 0) {
            repeated = strcmp(value, "persistent") != 0;
            persistent = strcmp(value, "repeated") != 0;
            bad |= strcmp(value, "persistent") != 0 && strcmp(value, "repeated") != 0 &&
                   strcmp(value, "both") != 0;
            ++i;
        } else {
            bad = 1;
        }
    }
    if (bad || n < 1 || n > 4096 || iterations < 1 || iterations > 1000000) {
        if (rank == 0)
            fprintf(
                stderr,
                "usage: fourier [--n 1..4096] [--iterations N] [--form repeated|persistent|both] [--damage]\n"
                "Transforms a cube of n * n * n numbers forward and back, in every iteration another one.\n");
        MPI_Finalize();
        return 2;
    }
    outcome once = {0, 0, 0, 0}, plan = {0, 0, 0, 0};
    if (repeated) once = run((size_t)n, (int)iterations, 0, damage);
    if (persistent) plan = run((size_t)n, (int)iterations, 1, damage);
    const double worst = once.worst > plan.worst ? once.worst : plan.worst;
    const int right = worst < 1e-9;
    if (rank == 0) {
        printf("%-12s %15s %15s %15s   %s\n", "form", "iteration", "of it exchange", "plans",
               "largest error");
        if (repeated) show("repeated", &once);
        if (persistent) show("persistent", &plan);
        const double gain = once.exchange - plan.exchange;
        if (repeated && persistent && gain > 0)
            printf("the plans have paid for themselves after %.2f iterations\n", plan.init / gain);
        else if (repeated && persistent)
            printf("the plans never pay: an iteration with them is not faster\n");
        printf("%s\n", right ? "right" : "WRONG");
        fflush(stdout);
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
