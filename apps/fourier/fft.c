#include "fourier/fft.h"

#include <math.h>
#include <stdlib.h>

struct fft_plan {
    size_t n;
    fft_complex* roots; /* exp(-2 pi i k / n) */
    fft_complex* work;  /* n elements */
};

static const double two_pi = 6.283185307179586476925286766559;

static fft_complex times(fft_complex a, fft_complex b) {
    const fft_complex product = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    return product;
}

fft_plan* fft_make(size_t n) {
    if (n == 0) return NULL;
    fft_plan* plan = malloc(sizeof *plan);
    if (plan == NULL) return NULL;
    plan->n = n;
    plan->roots = malloc(n * sizeof *plan->roots);
    plan->work = malloc(n * sizeof *plan->work);
    if (plan->roots == NULL || plan->work == NULL) {
        fft_free(plan);
        return NULL;
    }
    for (size_t k = 0; k < n; ++k) {
        const double angle = two_pi * (double)k / (double)n;
        plan->roots[k].re = cos(angle);
        plan->roots[k].im = -sin(angle);
    }
    return plan;
}

void fft_free(fft_plan* plan) {
    if (plan == NULL) return;
    free(plan->roots);
    free(plan->work);
    free(plan);
}

static fft_complex root(const fft_plan* plan, size_t k, int sign) {
    fft_complex value = plan->roots[k % plan->n];
    if (sign > 0) value.im = -value.im;
    return value;
}

/* By definition. */
static void slow(const fft_plan* plan, fft_complex* work, int sign, fft_complex* line, size_t stride) {
    for (size_t k = 0; k < plan->n; ++k) {
        fft_complex sum = {0, 0};
        for (size_t j = 0; j < plan->n; ++j) {
            const fft_complex term = times(work[j], root(plan, j * k, sign));
            sum.re += term.re;
            sum.im += term.im;
        }
        line[k * stride] = sum;
    }
}

/* Butterflies, after the elements were put in the order of their mirrored indices. */
static void fast(const fft_plan* plan, fft_complex* work, int sign) {
    const size_t n = plan->n;
    for (size_t i = 1, mirrored = 0; i < n; ++i) {
        size_t bit = n >> 1;
        for (; mirrored & bit; bit >>= 1) mirrored ^= bit;
        mirrored ^= bit;
        if (i < mirrored) {
            const fft_complex swapped = work[i];
            work[i] = work[mirrored];
            work[mirrored] = swapped;
        }
    }
    for (size_t half = 1; half < n; half *= 2)
        for (size_t begin = 0; begin < n; begin += 2 * half)
            for (size_t k = 0; k < half; ++k) {
                const fft_complex even = work[begin + k];
                const fft_complex odd = times(work[begin + half + k], root(plan, k * (n / (2 * half)), sign));
                work[begin + k].re = even.re + odd.re;
                work[begin + k].im = even.im + odd.im;
                work[begin + half + k].re = even.re - odd.re;
                work[begin + half + k].im = even.im - odd.im;
            }
}

void fft_line(const fft_plan* plan, fft_complex* line, size_t stride, int sign) {
    for (size_t j = 0; j < plan->n; ++j) plan->work[j] = line[j * stride];
    if ((plan->n & (plan->n - 1)) != 0) {
        slow(plan, plan->work, sign, line, stride);
        return;
    }
    fast(plan, plan->work, sign);
    for (size_t j = 0; j < plan->n; ++j) line[j * stride] = plan->work[j];
}

size_t block_begin(size_t n, int parts, int i) {
    const size_t p = (size_t)parts, at = (size_t)i, more = n % p;
    return at * (n / p) + (at < more ? at : more);
}
