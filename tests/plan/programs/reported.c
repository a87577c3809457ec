/* A known number of broadcasts of each kind; report.py looks for them in the report. */
#include <locale.h>

#include "check.h"

int main(int argc, char** argv) {
    setlocale(LC_ALL, ""); /* the report must not depend on it */
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    static unsigned char data[200000];
    char small[8] = "";
    MPI_Comm twin, foreign;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_set_name(twin, "twin");
    /* A name in Latin-1, which is no UTF-8, with what JSON must escape, and one character of UTF-8 at the
     * end. */
    MPI_Comm_dup(MPI_COMM_WORLD, &foreign);
    MPI_Comm_set_name(foreign, "caf\xe9 \"\\\t \xc3\xa9");
    MPI_Datatype strided;
    MPI_Type_vector(1000, 100, 200, MPI_BYTE, &strided);
    MPI_Type_commit(&strided);
    for (int i = 0; i < 7; ++i) MPI_Bcast(data, 100000, MPI_BYTE, i % check_size, MPI_COMM_WORLD);
    for (int i = 0; i < 2; ++i) MPI_Bcast(data, 1, strided, i, MPI_COMM_WORLD);
    for (int i = 0; i < 3; ++i) MPI_Bcast(data, 100000, MPI_BYTE, 0, MPI_COMM_SELF);
    for (int i = 0; i < 11; ++i) MPI_Bcast(small, sizeof small, MPI_BYTE, 0, MPI_COMM_WORLD);
    set_option("THALWEG_BCAST", "linear");
    for (int i = 0; i < 5; ++i) MPI_Bcast(data, 100000, MPI_BYTE, 0, twin);
    for (int i = 0; i < 4; ++i) MPI_Bcast(data, 100000, MPI_BYTE, 0, foreign);
    MPI_Comm_free(&foreign);
    MPI_Comm_free(&twin);
    MPI_Type_free(&strided);
    return check_end();
}
