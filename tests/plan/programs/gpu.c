/* Memory of a CUDA device, under an MPI library that need not know it: contiguous and strided, of cuMemAlloc
 * and of a memory pool, in blocking, nonblocking and repeated operations. No library is linked: the driver is
 * looked up, and a machine without one skips. The ranks share the device. Buffers are poisoned; what lies
 * between the elements of a datatype must stay poison.
 *
 *     gpu [DRIVER [MEBIBYTES]]   the driver's file: strict_cuda.c stands in where there is none. Broadcasts
 * of so many are timed too, from and to the device, against the same in host memory.
 */
#include "check.h"

typedef unsigned long long Address; /* CUdeviceptr */

static int (*start_driver)(unsigned);
static int (*get_device)(int*, int);
static int (*retain_context)(void**, int);
static int (*set_context)(void*);
static int (*allocate_plain)(Address*, size_t);
static int (*allocate_in_pool)(Address*, size_t, void*);
static int (*write_device)(Address, const void*, size_t);
static int (*read_device)(void*, Address, size_t);
static int (*synchronize)(void);
/* Of the stand-in only: how often it copied, and how many copies to the device nobody waited for. */
static unsigned long (*count_copies)(void);
static int (*count_under_way)(void);

static void look_up(void* driver, const char* name, void* function) {
    *(void**)function = dlsym(driver, name);
    CHECK(*(void**)function != NULL, "the driver has no %s", name);
}

static void good(int error, const char* what) { CHECK(error == 0, "%s: CUDA error %d", what, error); }

static void open_device(const char* file) {
    void* const driver = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
    int devices = 0;
    int (*count_devices)(int*) = NULL;
    if (driver != NULL) {
        look_up(driver, "cuInit", &start_driver);
        look_up(driver, "cuDeviceGetCount", &count_devices);
        if (start_driver(0) != 0 || count_devices(&devices) != 0) devices = 0;
    }
    int fewest = 0;
    MPI_Allreduce(&devices, &fewest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (fewest == 0) SKIP("no CUDA device here");
    look_up(driver, "cuDeviceGet", &get_device);
    look_up(driver, "cuDevicePrimaryCtxRetain", &retain_context);
    look_up(driver, "cuCtxSetCurrent", &set_context);
    look_up(driver, "cuMemAlloc_v2", &allocate_plain);
    look_up(driver, "cuMemAllocAsync", &allocate_in_pool);
    look_up(driver, "cuMemcpyHtoD_v2", &write_device);
    look_up(driver, "cuMemcpyDtoH_v2", &read_device);
    look_up(driver, "cuCtxSynchronize", &synchronize);
    *(void**)&count_copies = dlsym(driver, "strict_copies");
    *(void**)&count_under_way = dlsym(driver, "strict_under_way");
    int device = 0;
    void* context = NULL;
    good(get_device(&device, 0), "cuDeviceGet");
    good(retain_context(&context, device), "cuDevicePrimaryCtxRetain");
    good(set_context(context), "cuCtxSetCurrent");
}

/* A buffer on the device and what it should hold, in host memory. */
typedef struct {
    size_t bytes;
    Address device;
    unsigned char *want, *got;
} Buffer;

static Buffer buffer_new(size_t bytes, int pool) {
    Buffer buffer = {bytes, 0, malloc(bytes), malloc(bytes)};
    CHECK(buffer.want != NULL && buffer.got != NULL, "no memory");
    if (pool) {
        good(allocate_in_pool(&buffer.device, bytes, NULL), "cuMemAllocAsync");
        good(synchronize(), "cuCtxSynchronize");
    } else {
        good(allocate_plain(&buffer.device, bytes), "cuMemAlloc");
    }
    return buffer;
}

static void* at(const Buffer* buffer, size_t offset) { return (void*)(uintptr_t)(buffer->device + offset); }

/* Brings to the device what `want` says. */
static void send_up(const Buffer* buffer) {
    good(write_device(buffer->device, buffer->want, buffer->bytes), "cuMemcpyHtoD");
}

static void poison(Buffer* buffer) {
    memset(buffer->want, poison_value, buffer->bytes);
    send_up(buffer);
}

static void compare(const Buffer* buffer, const char* what) {
    if (count_under_way != NULL)
        CHECK(count_under_way() == 0, "%s: %d copies may be under way", what, count_under_way());
    good(read_device(buffer->got, buffer->device, buffer->bytes), "cuMemcpyDtoH");
    ++check_count;
    for (size_t i = 0; i < buffer->bytes; ++i)
        if (buffer->got[i] != buffer->want[i])
            FAIL("%s: byte %zu is %02x, not %02x", what, i, buffer->got[i], buffer->want[i]);
}

static void taken(const char* what) {
    CHECK(!expect_thalweg() || was_accelerated(), "%s: native: %s", what, last_reason());
}

/* A thread of ours that never saw CUDA moves the bytes while this one sleeps. */
static void finish(MPI_Request* request) {
    const struct timespec pause = {0, 20000000};
    nanosleep(&pause, NULL);
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void broadcasts(int pool) {
    enum { bytes = 700001, columns = 3000, width = 70, stride = 200 };
    Buffer buffer = buffer_new(bytes, pool);
    MPI_Datatype vector;
    MPI_Type_vector(columns, width, stride, MPI_BYTE, &vector);
    MPI_Type_commit(&vector);
    for (int root = 0; root < check_size; ++root)
        for (int later = 0; later < 2; ++later) {
            MPI_Request request;
            poison(&buffer);
            for (size_t i = 0; i < bytes; ++i) buffer.want[i] = pattern(i, root);
            if (check_rank == root) send_up(&buffer);
            if (later) {
                MPI_Ibcast(at(&buffer, 0), bytes, MPI_BYTE, root, MPI_COMM_WORLD, &request);
                taken("Ibcast");
                finish(&request);
            } else {
                MPI_Bcast(at(&buffer, 0), bytes, MPI_BYTE, root, MPI_COMM_WORLD);
                taken("Bcast");
            }
            compare(&buffer, later ? "Ibcast" : "Bcast");
            poison(&buffer);
            for (size_t i = 0; i < columns; ++i)
                for (size_t j = 0; j < width; ++j)
                    buffer.want[i * stride + j] = pattern(i * width + j, 40 + root);
            if (check_rank == root) send_up(&buffer);
            if (later) {
                MPI_Ibcast(at(&buffer, 0), 1, vector, root, MPI_COMM_WORLD, &request);
                taken("Ibcast of a vector");
                finish(&request);
            } else {
                MPI_Bcast(at(&buffer, 0), 1, vector, root, MPI_COMM_WORLD);
                taken("Bcast of a vector");
            }
            compare(&buffer, later ? "Ibcast of a vector" : "Bcast of a vector");
        }
    MPI_Type_free(&vector);
}

/* One datatype for parts of two arrays, at equal distances however far these are apart. */
static void apart(int pool) {
    enum { bytes = 50000, block = 20000, at_offset = 1000 };
    Buffer first = buffer_new(bytes, pool), second = buffer_new(bytes, pool);
    MPI_Aint places[2] = {(MPI_Aint)(first.device + at_offset), (MPI_Aint)(second.device + at_offset)};
    MPI_Datatype both;
    MPI_Type_create_hindexed_block(2, block, places, MPI_BYTE, &both);
    MPI_Type_commit(&both);
    for (int root = 0; root < check_size; ++root) {
        Buffer* const buffers[2] = {&first, &second};
        for (int i = 0; i < 2; ++i) {
            poison(buffers[i]);
            for (size_t j = 0; j < block; ++j)
                buffers[i]->want[at_offset + j] = pattern(i * block + j, 60 + root);
            if (check_rank == root) send_up(buffers[i]);
        }
        MPI_Bcast(MPI_BOTTOM, 1, both, root, MPI_COMM_WORLD);
        taken("Bcast of two arrays");
        compare(&first, "the first of two arrays");
        compare(&second, "the second of two arrays");
    }
    MPI_Type_free(&both);
}

static void allgathers(int pool) {
    enum { block = 60007 };
    const size_t bytes = (size_t)block * (size_t)check_size;
    Buffer sent = buffer_new(block, pool), received = buffer_new(bytes, pool);
    for (int form = 0; form < 3; ++form) {
        const char* const what = form == 0 ? "Allgather" : form == 1 ? "Allgather in place" : "Iallgather";
        for (size_t i = 0; i < block; ++i) sent.want[i] = pattern(i, 100 + form + 10 * check_rank);
        send_up(&sent);
        poison(&received);
        const size_t own = (size_t)check_rank * block;
        if (form == 1) {
            memcpy(received.want + own, sent.want, block);
            send_up(&received);
        }
        for (int rank = 0; rank < check_size; ++rank)
            for (size_t i = 0; i < block; ++i)
                received.want[(size_t)rank * block + i] = pattern(i, 100 + form + 10 * rank);
        if (form == 0)
            MPI_Allgather(at(&sent, 0), block, MPI_BYTE, at(&received, 0), block, MPI_BYTE, MPI_COMM_WORLD);
        if (form == 1)
            MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, at(&received, 0), block, MPI_BYTE, MPI_COMM_WORLD);
        if (form == 2) {
            MPI_Request request;
            MPI_Iallgather(at(&sent, 0), block, MPI_BYTE, at(&received, 0), block, MPI_BYTE, MPI_COMM_WORLD,
                           &request);
            taken(what);
            finish(&request);
        } else {
            taken(what);
        }
        compare(&received, what);
        compare(&sent, "what Allgather sent");
    }
}

static void alltoalls(int pool) {
    enum { block = 40009 };
    const size_t bytes = (size_t)block * (size_t)check_size;
    Buffer sent = buffer_new(bytes, pool), received = buffer_new(bytes, pool);
    for (int round = 0; round < 6; ++round) { /* repeated: plans are kept */
        for (int rank = 0; rank < check_size; ++rank)
            for (size_t i = 0; i < block; ++i)
                sent.want[(size_t)rank * block + i] = pattern(i, round + 20 * check_rank + 400 * rank);
        send_up(&sent);
        poison(&received);
        for (int rank = 0; rank < check_size; ++rank)
            for (size_t i = 0; i < block; ++i)
                received.want[(size_t)rank * block + i] = pattern(i, round + 20 * rank + 400 * check_rank);
        if (round % 2 == 0) {
            MPI_Alltoall(at(&sent, 0), block, MPI_BYTE, at(&received, 0), block, MPI_BYTE, MPI_COMM_WORLD);
            taken("Alltoall");
        } else {
            MPI_Request request;
            MPI_Ialltoall(at(&sent, 0), block, MPI_BYTE, at(&received, 0), block, MPI_BYTE, MPI_COMM_WORLD,
                          &request);
            taken("Ialltoall");
            finish(&request);
        }
        compare(&received, round % 2 ? "Ialltoall" : "Alltoall");
    }
}

/* Faces of a periodic line of cubes, sent from and received into strided places of one array. A cube has
 * nothing for itself, whose place, before that of the faces, is no memory of the device. */
static void halos(int pool) {
    enum { n = 66, rows = n * n };
    const size_t bytes = (size_t)n * n * n * 8;
    Buffer array = buffer_new(bytes, pool);
    const int dims[2] = {1, check_size}, periodic[2] = {1, 1};
    MPI_Comm line;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periodic, 0, &line);
    MPI_Datatype types[4], nothing; /* sent down, sent up, received from below, from above */
    const int places[4] = {1, n - 2, 0, n - 1};
    const int sizes[3] = {n, n, n}, face[3] = {n, n, 1};
    for (int i = 0; i < 4; ++i) {
        const int starts[3] = {0, 0, places[i]};
        MPI_Type_create_subarray(3, sizes, face, starts, MPI_ORDER_C, MPI_DOUBLE, &types[i]);
        MPI_Type_commit(&types[i]);
    }
    MPI_Type_contiguous(0, MPI_DOUBLE, &nothing);
    MPI_Type_commit(&nothing);
    const MPI_Datatype sent[4] = {nothing, nothing, types[0], types[1]};
    const MPI_Datatype received[4] = {nothing, nothing, types[2], types[3]};
    const int counts[4] = {1, 1, 1, 1};
    const MPI_Aint host = (MPI_Aint)array.want - (MPI_Aint)array.device, begins[4] = {host, host, 0, 0};
    int below, above;
    MPI_Cart_shift(line, 1, 1, &below, &above);
    for (int round = 0; round < 5; ++round) {
        for (size_t i = 0; i < bytes; ++i) array.want[i] = pattern(i, round + 50 * check_rank);
        send_up(&array);
        for (size_t row = 0; row < rows; ++row)
            for (size_t i = 0; i < 8; ++i) {
                const size_t first = row * n * 8 + i, last = first + (n - 1) * 8;
                array.want[first] = pattern(first + (n - 2) * 8, round + 50 * below);
                array.want[last] = pattern(first + 8, round + 50 * above);
            }
        const unsigned long before = count_copies != NULL ? count_copies() : 0;
        MPI_Neighbor_alltoallw(at(&array, 0), counts, begins, sent, at(&array, 0), counts, begins, received,
                               line);
        taken("Neighbor_alltoallw");
        /* Two faces leave and two come, whatever their rows; a large one may go in pieces. */
        if (expect_thalweg() && count_copies != NULL)
            CHECK(count_copies() - before <= 40, "%lu copies of %d rows", count_copies() - before, 4 * rows);
        compare(&array, "Neighbor_alltoallw");
    }
    for (int i = 0; i < 4; ++i) MPI_Type_free(&types[i]);
    MPI_Type_free(&nothing);
    MPI_Comm_free(&line);
}

static void time_broadcasts(size_t bytes) {
    Buffer buffer = buffer_new(bytes, 0);
    unsigned char* const host = malloc(bytes);
    CHECK(host != NULL, "no memory");
    for (size_t i = 0; i < bytes; ++i) buffer.want[i] = pattern(i, 3);
    memcpy(host, buffer.want, bytes);
    send_up(&buffer);
    double best[2] = {1e9, 1e9};
    for (int round = 0; round < 10; ++round)
        for (int where = 0; where < 2; ++where) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double begin = seconds_now();
            MPI_Bcast(where ? at(&buffer, 0) : host, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
            double took = seconds_now() - begin, slowest = 0;
            MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (slowest < best[where]) best[where] = slowest;
        }
    compare(&buffer, "timed broadcasts");
    if (check_rank == 0)
        printf("broadcast of %zu bytes: %.3f ms in host memory, %.3f ms on the device\n", bytes,
               1e3 * best[0], 1e3 * best[1]);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    open_device(argc > 1 ? argv[1] : "libcuda.so.1");
    for (int pool = 0; pool < 2; ++pool) {
        broadcasts(pool);
        apart(pool);
        allgathers(pool);
        alltoalls(pool);
        halos(pool);
    }
    if (argc > 2) time_broadcasts((size_t)atoi(argv[2]) << 20);
    return check_end();
}
