/* Allreduces of types beyond integers and real numbers against MPI's definition of their operations,
 * nonblocking, persistent and blocking. THALWEG_TEST_TAKEN=1: all were taken.
 */
#include "ways.h"

typedef int AllreduceInit(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request*);
static AllreduceInit* allreduce_init;

static int all_taken;

/* LOGICAL as the library has it. */
static int logicals[2];

/* Whether this library has the type: some are built without Fortran. */
static int has(MPI_Datatype type, MPI_Op op) {
    long long from = 1, to = 0;
    int bytes = 0;
    if (type == MPI_DATATYPE_NULL) return 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int known = MPI_Type_size(type, &bytes) == MPI_SUCCESS && bytes > 0 &&
                MPI_Reduce_local(&from, &to, 1, type, op) == MPI_SUCCESS;
    if (known && type == MPI_LOGICAL) {
        int one = 1;
        MPI_Reduce_local(&one, &logicals[1], 1, type, MPI_LOR);
        known = bytes == sizeof one && logicals[1] != logicals[0];
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return known;
}

/* What rank `rank` gives as element i of a vector of `type`; all of it small integers, so that no order of
 * them shows. */
typedef union {
    signed char boolean;
    MPI_Aint address;
    float complex_[2];
    double large_complex[2];
    int pair[2];
    long long large;
    double real;
    /* What MPI defines these types to be (MPI 4.1, section 6.9.4). */
    struct {
        float value;
        int place;
    } float_int;
    struct {
        double value;
        int place;
    } double_int;
    struct {
        long value;
        int place;
    } long_int;
    struct {
        short value;
        int place;
    } short_int;
    /* Of a long double, and of one and an int: gcc 12 copies what has a long double as that, without the
     * bytes that say nothing in it. */
    unsigned char long_real[2 * sizeof(long double)];
} Element;

static int is_pair(MPI_Datatype type) {
    return type == MPI_FLOAT_INT || type == MPI_DOUBLE_INT || type == MPI_LONG_INT || type == MPI_SHORT_INT ||
           type == MPI_LONG_DOUBLE_INT;
}

static long double long_of(const Element* element) {
    long double value;
    memcpy(&value, element->long_real, sizeof value);
    return value;
}
static void set_long(Element* element, long double value) {
    memcpy(element->long_real, &value, sizeof value);
}

/* Of a pair: its value and its place. */
static int value_of(MPI_Datatype type, const Element* element) {
    if (type == MPI_FLOAT_INT) return (int)element->float_int.value;
    if (type == MPI_DOUBLE_INT) return (int)element->double_int.value;
    if (type == MPI_LONG_INT) return (int)element->long_int.value;
    if (type == MPI_SHORT_INT) return element->short_int.value;
    return (int)long_of(element);
}
static int* place_in(MPI_Datatype type, Element* element) {
    if (type == MPI_FLOAT_INT) return &element->float_int.place;
    if (type == MPI_DOUBLE_INT) return &element->double_int.place;
    if (type == MPI_LONG_INT) return &element->long_int.place;
    if (type == MPI_SHORT_INT) return &element->short_int.place;
    return (int*)(void*)(element->long_real + sizeof(long double));
}

static int is_bool(MPI_Datatype type) { return type == MPI_C_BOOL || type == MPI_CXX_BOOL; }

/* Intel's Fortran has -1 for a LOGICAL(C_BOOL) that is true, and MPICH takes whatever is not 0 for that, and
 * writes 1. What other libraries make of others than 1 is their own. */
static signed char true_of(int rank, int i) {
    static const signed char all[] = {1, -1, 2, 64};
    return all_taken ? all[(i / 16 + rank) % 4] : 1;
}

static Element element_of(MPI_Datatype type, int rank, int i) {
    Element element;
    memset(&element, 0, sizeof element);
    if (is_bool(type) && (i >> rank % 4 & 1) != 0) element.boolean = true_of(rank, i);
    if (type == MPI_AINT || type == MPI_OFFSET || type == MPI_COUNT)
        element.address = (MPI_Aint)(i + 1) << 33 | (MPI_Aint)(rank + 1);
    if (type == MPI_LONG_DOUBLE) set_long(&element, i + rank + 0.5L);
    if (type == MPI_C_FLOAT_COMPLEX)
        element.complex_[0] = (float)(i % 3), element.complex_[1] = (float)(rank - 1);
    if (type == MPI_C_DOUBLE_COMPLEX) element.large_complex[0] = rank - 2, element.large_complex[1] = i % 5;
    if (type == MPI_LOGICAL) element.pair[0] = logicals[i >> rank % 4 & 1];
    if (type == MPI_INTEGER8) element.large = ((long long)(i + 1) << 40) + rank;
    if (type == MPI_REAL8) element.real = i + rank + 0.5;
    if (is_pair(type)) {
        const int value = (rank * 5 + i) % 4 - 1;
        if (type == MPI_FLOAT_INT) element.float_int.value = (float)value;
        if (type == MPI_DOUBLE_INT) element.double_int.value = value;
        if (type == MPI_LONG_INT) element.long_int.value = value;
        if (type == MPI_SHORT_INT) element.short_int.value = (short)value;
        if (type == MPI_LONG_DOUBLE_INT) set_long(&element, value);
        *place_in(type, &element) = 1000 - 3 * rank;
    }
    if (type == MPI_2INT) element.pair[0] = (rank + i) % 3, element.pair[1] = 7 * check_size - rank;
    return element;
}

/* left op right, from MPI's definition. */
static Element result_of(MPI_Datatype type, MPI_Op op, Element left, Element right) {
    Element result = left;
    if (is_bool(type)) {
        if (op == MPI_LAND) result.boolean = left.boolean && right.boolean;
        if (op == MPI_LOR) result.boolean = left.boolean || right.boolean;
        if (op == MPI_LXOR) result.boolean = !left.boolean != !right.boolean;
    } else if (type == MPI_LONG_DOUBLE) {
        const long double a = long_of(&left), b = long_of(&right);
        set_long(&result, op == MPI_SUM ? a + b : a > b ? a : b);
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
    } else if (type == MPI_LOGICAL) {
        const int a = left.pair[0] == logicals[1], b = right.pair[0] == logicals[1];
        result.pair[0] = logicals[op == MPI_LAND ? a && b : op == MPI_LOR ? a || b : a != b];
    } else if (type == MPI_INTEGER8) {
        result.large = op == MPI_SUM              ? left.large + right.large
                       : left.large > right.large ? left.large
                                                  : right.large;
    } else if (type == MPI_REAL8) {
        result.real = op == MPI_SUM            ? left.real + right.real
                      : left.real < right.real ? left.real
                                               : right.real;
    } else if (is_pair(type)) {
        const int a = value_of(type, &left), b = value_of(type, &right);
        const int place = *place_in(type, &left), other = *place_in(type, &right);
        if (a == b ? other < place : op == MPI_MINLOC ? b < a : b > a) result = right;
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

/* A zero may have either sign, a long double has bytes that say nothing, and so has the gap of a pair, where
 * ours writes nothing. */
static int same(MPI_Datatype type, const unsigned char* got, const Element* wanted) {
    Element element;
    MPI_Aint lower, bytes;
    MPI_Type_get_extent(type, &lower, &bytes);
    memcpy(&element, got, (size_t)bytes);
    if (is_pair(type)) {
        const unsigned char* const place = (const unsigned char*)place_in(type, &element);
        const int kept = type == MPI_SHORT_INT         ? place[-1] == poison_value
                         : type == MPI_FLOAT_INT       ? 1
                         : type == MPI_LONG_DOUBLE_INT ? place[4] == poison_value && place[15] == poison_value
                                                       : place[4] == poison_value && place[7] == poison_value;
        return value_of(type, &element) == value_of(type, wanted) &&
               memcmp(place, place_in(type, (Element*)wanted), sizeof(int)) == 0 && (kept || !all_taken);
    }
    if (type == MPI_LONG_DOUBLE) return long_of(&element) == long_of(wanted);
    if (type == MPI_C_FLOAT_COMPLEX)
        return element.complex_[0] == wanted->complex_[0] && element.complex_[1] == wanted->complex_[1];
    if (type == MPI_C_DOUBLE_COMPLEX)
        return element.large_complex[0] == wanted->large_complex[0] &&
               element.large_complex[1] == wanted->large_complex[1];
    return memcmp(got, wanted, (size_t)bytes) == 0;
}

static void reduction(int way, MPI_Datatype type, MPI_Op op, const char* name) {
    enum { count = 301 };
    MPI_Aint lower, extent;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Type_get_extent(type, &lower, &extent);
    const size_t each = (size_t)extent;
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
    reduction(way, MPI_FLOAT_INT, MPI_MINLOC, "the least float and its place");
    reduction(way, MPI_FLOAT_INT, MPI_MAXLOC, "the largest float and its place");
    reduction(way, MPI_DOUBLE_INT, MPI_MINLOC, "the least double and its place");
    reduction(way, MPI_DOUBLE_INT, MPI_MAXLOC, "the largest double and its place");
    reduction(way, MPI_LONG_INT, MPI_MAXLOC, "the largest long and its place");
    reduction(way, MPI_SHORT_INT, MPI_MINLOC, "the least short and its place");
    reduction(way, MPI_LONG_DOUBLE_INT, MPI_MAXLOC, "the largest long double and its place");
    /* What a library without Fortran does of these is its own. */
    if (!all_taken) return;
    if (has(MPI_CXX_BOOL, MPI_LXOR)) reduction(way, MPI_CXX_BOOL, MPI_LXOR, "exclusive or of C++");
    if (has(MPI_INTEGER8, MPI_SUM)) reduction(way, MPI_INTEGER8, MPI_SUM, "a sum of INTEGER(8)");
    if (has(MPI_INTEGER8, MPI_MAX)) reduction(way, MPI_INTEGER8, MPI_MAX, "the largest INTEGER(8)");
    if (has(MPI_REAL8, MPI_SUM)) reduction(way, MPI_REAL8, MPI_SUM, "a sum of REAL(8)");
    if (has(MPI_REAL8, MPI_MIN)) reduction(way, MPI_REAL8, MPI_MIN, "the least REAL(8)");
    if (has(MPI_LOGICAL, MPI_LAND)) {
        reduction(way, MPI_LOGICAL, MPI_LAND, "LOGICAL and");
        reduction(way, MPI_LOGICAL, MPI_LOR, "LOGICAL or");
        reduction(way, MPI_LOGICAL, MPI_LXOR, "LOGICAL exclusive or");
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    *(void**)&allreduce_init = dlsym(RTLD_DEFAULT, "MPI_Allreduce_init");
    set_up_world();
    all_taken = getenv("THALWEG_TEST_TAKEN") != NULL;
    /* Plans that are native are not ours to judge (collectives.c). */
    const int plans = allreduce_init != NULL && check_size > 1 && all_taken;
    for (int way = nonblocking; way <= blocking; ++way)
        if (way != persistent || plans) reductions(way);
    return check_end();
}
