/* Allreduces of types beyond integers and real numbers against MPI's definition of their operations,
 * nonblocking, persistent and blocking. THALWEG_TEST_TAKEN=1: all were taken.
 */
#include "ways.h"

typedef int AllreduceInit(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request*);
static AllreduceInit* allreduce_init;

/* What rank `rank` gives as element i of a vector of `type`; all of it small integers, so that no order of
 * them shows. */
typedef union {
    signed char boolean;
    MPI_Aint address;
    long double long_real;
    float complex_[2];
    double large_complex[2];
    int pair[2];
} Element;

static Element element_of(MPI_Datatype type, int rank, int i) {
    Element element;
    memset(&element, 0, sizeof element);
    if (type == MPI_C_BOOL) element.boolean = (i >> rank % 4 & 1) != 0;
    if (type == MPI_AINT || type == MPI_OFFSET || type == MPI_COUNT)
        element.address = (MPI_Aint)(i + 1) << 33 | (MPI_Aint)(rank + 1);
    if (type == MPI_LONG_DOUBLE) element.long_real = i + rank + 0.5L;
    if (type == MPI_C_FLOAT_COMPLEX)
        element.complex_[0] = (float)(i % 3), element.complex_[1] = (float)(rank - 1);
    if (type == MPI_C_DOUBLE_COMPLEX) element.large_complex[0] = rank - 2, element.large_complex[1] = i % 5;
    if (type == MPI_2INT) element.pair[0] = (rank + i) % 3, element.pair[1] = 7 * check_size - rank;
    return element;
}

/* left op right, from MPI's definition. */
static Element result_of(MPI_Datatype type, MPI_Op op, Element left, Element right) {
    Element result = left;
    if (type == MPI_C_BOOL) {
        if (op == MPI_LAND) result.boolean = left.boolean && right.boolean;
        if (op == MPI_LOR) result.boolean = left.boolean || right.boolean;
        if (op == MPI_LXOR) result.boolean = left.boolean != right.boolean;
    } else if (type == MPI_LONG_DOUBLE) {
        result.long_real = op == MPI_SUM                      ? left.long_real + right.long_real
                           : left.long_real > right.long_real ? left.long_real
                                                              : right.long_real;
    } else if (type == MPI_C_FLOAT_COMPLEX || type == MPI_C_DOUBLE_COMPLEX) {
        const int large = type == MPI_C_DOUBLE_COMPLEX;
        const double a = large ? left.large_complex[0] : left.complex_[0];
        const double b = large ? left.large_complex[1] : left.complex_[1];
        const double c = large ? right.large_complex[0] : right.complex_[0];
        const double d = large ? right.large_complex[1] : right.complex_[1];
        const double real = op == MPI_SUM ? a + c : a * c - b * d,
                     imaginary = op == MPI_SUM ? b + d : a * d + b * c;
        if (large)
            result.large_complex[0] = real, result.large_complex[1] = imaginary;
        else
            result.complex_[0] = (float)real, result.complex_[1] = (float)imaginary;
    } else if (type == MPI_2INT) {
        const int first = op == MPI_MINLOC ? left.pair[0] < right.pair[0] : left.pair[0] > right.pair[0];
        const int equal = left.pair[0] == right.pair[0];
        if (equal ? right.pair[1] < left.pair[1] : !first) result = right;
    } else {
        if (op == MPI_SUM) result.address = left.address + right.address;
        if (op == MPI_MAX && right.address > left.address) result.address = right.address;
        if (op == MPI_BXOR) result.address = left.address ^ right.address;
    }
    return result;
}

/* A zero may have either sign, and a long double bytes that say nothing. */
static int same(MPI_Datatype type, const unsigned char* got, const Element* wanted) {
    Element element;
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    memcpy(&element, got, (size_t)bytes);
    if (type == MPI_LONG_DOUBLE) return element.long_real == wanted->long_real;
    if (type == MPI_C_FLOAT_COMPLEX)
        return element.complex_[0] == wanted->complex_[0] && element.complex_[1] == wanted->complex_[1];
    if (type == MPI_C_DOUBLE_COMPLEX)
        return element.large_complex[0] == wanted->large_complex[0] &&
               element.large_complex[1] == wanted->large_complex[1];
    return memcmp(got, wanted, (size_t)bytes) == 0;
}

static void reduction(int way, MPI_Datatype type, MPI_Op op, const char* name) {
    enum { count = 301 };
    int bytes = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Type_size(type, &bytes);
    const size_t each = (size_t)bytes;
    unsigned char* const own = guarded_new(count * each);
    unsigned char* const all = guarded_new(count * each);
    for (int i = 0; i < count; ++i) {
        const Element element = element_of(type, check_rank, i);
        memcpy(own + (size_t)i * each, &element, each);
    }
    memset(all, poison_value, count * each);
    if (way == persistent)
        allreduce_init(own, all, count, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else if (way == nonblocking)
        MPI_Iallreduce(own, all, count, type, op, MPI_COMM_WORLD, &request);
    else
        MPI_Allreduce(own, all, count, type, op, MPI_COMM_WORLD);
    expect_taken(1, name);
    begin(way, &request);
    end(way, &request, 1);
    for (int i = 0; i < count; ++i) {
        Element wanted = element_of(type, 0, i);
        for (int rank = 1; rank < check_size; ++rank)
            wanted = result_of(type, op, wanted, element_of(type, rank, i));
        CHECK(same(type, all + (size_t)i * each, &wanted), "%s: element %d is wrong", name, i);
    }
    guarded_free(own, count * each);
    guarded_free(all, count * each);
}

static void reductions(int way) {
    reduction(way, MPI_C_BOOL, MPI_LAND, "logical and");
    reduction(way, MPI_C_BOOL, MPI_LOR, "logical or");
    reduction(way, MPI_C_BOOL, MPI_LXOR, "logical exclusive or");
    reduction(way, MPI_AINT, MPI_SUM, "a sum of addresses");
    reduction(way, MPI_OFFSET, MPI_MAX, "the largest offset");
    reduction(way, MPI_COUNT, MPI_BXOR, "bits of counts");
    reduction(way, MPI_LONG_DOUBLE, MPI_SUM, "a sum of long numbers");
    reduction(way, MPI_LONG_DOUBLE, MPI_MAX, "the largest long number");
    reduction(way, MPI_C_FLOAT_COMPLEX, MPI_SUM, "a complex sum");
    reduction(way, MPI_C_FLOAT_COMPLEX, MPI_PROD, "a complex product");
    reduction(way, MPI_C_DOUBLE_COMPLEX, MPI_SUM, "a large complex sum");
    reduction(way, MPI_C_DOUBLE_COMPLEX, MPI_PROD, "a large complex product");
    reduction(way, MPI_2INT, MPI_MINLOC, "where the least is");
    reduction(way, MPI_2INT, MPI_MAXLOC, "where the most is");
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    *(void**)&allreduce_init = dlsym(RTLD_DEFAULT, "MPI_Allreduce_init");
    set_up_world();
    /* Plans that are native are not ours to judge (collectives.c). */
    const int plans = allreduce_init != NULL && check_size > 1 && getenv("THALWEG_TEST_TAKEN") != NULL;
    for (int way = nonblocking; way <= blocking; ++way)
        if (way != persistent || plans) reductions(way);
    return check_end();
}
