/* A library that has nothing to do with MPI, nor with Fortran, and has functions by names of both: with other
 * arguments, which its own callers pass. Whatever stands in front of it must not come before them. */
#include <string.h>

/* What the last call got. */
static int got_phase, got_last;
static double got_weight;

double mpi_barrier(int phase, double weight, int a, int b, int c, int d, int e, int f, int last) {
    got_phase = phase, got_weight = weight, got_last = last;
    return weight + a + b + c + d + e + f;
}
int mpi_init(int phase) {
    got_phase = phase;
    return -phase;
}
long mpi_test(const char* what, long count) { return count + (long)strlen(what); }
int MPI_START(int phase) { return phase + 1; }

/* How many of them did what they are for. */
int call_namesakes(int phase) {
    int right = mpi_init(phase) == -phase && got_phase == phase;
    right += mpi_barrier(phase + 1, 0.5, 1, 2, 3, 4, 5, 6, 7) == 21.5 && got_phase == phase + 1 &&
             got_weight == 0.5 && got_last == 7;
    right += mpi_test("four", 1L << 40) == (1L << 40) + 4;
    right += MPI_START(phase) == phase + 1;
    return right;
}
