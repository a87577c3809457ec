/* Linked to a small shared library whose file elf.cpp damages. */
#include <math.h>

int thalweg_fuzz_sample_first(int x) { return x + 1; }
double thalweg_fuzz_sample_second(double x) { return sqrt(x) + thalweg_fuzz_sample_first((int)x); }
