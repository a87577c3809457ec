/* Fourier transforms of one dimension, and blocks of planes. No MPI here. */
#ifndef THALWEG_APPS_FOURIER_FFT_H
#define THALWEG_APPS_FOURIER_FFT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A complex number, as C's and C++'s own are laid out. */
typedef struct fft_complex {
    double re, im;
} fft_complex;

/* The caller's for as long as transforms of length n are wanted; free with fft_free. NULL: no memory, or n is
 * 0. Powers of two take n log n steps, other lengths n * n. */
typedef struct fft_plan fft_plan;
fft_plan* fft_make(size_t n);
void fft_free(fft_plan* plan);

/* X[k] = sum over j of x[j] exp(sign * 2 pi i j k / n), not scaled, in place: `line` has n elements, `stride`
 * elements apart. sign: -1 forward, +1 backward. */
void fft_line(const fft_plan* plan, fft_complex* line, size_t stride, int sign);

/* n items over `parts` in blocks that differ by at most one: where block i begins; i = parts: n. */
size_t block_begin(size_t n, int parts, int i);

#ifdef __cplusplus
}
#endif
#endif
