/* Device memory, faked: a stand-in for a driver (fake_device.h) owns a range that the CPU may not touch. Only
 * one rank has such memory; the others' calls are plain. */
#include "check.h"

static void* (*device_alloc)(size_t);
static unsigned long (*device_copies)(void);
static void (*device_share)(void);
static void (*device_write)(void*, const void*, size_t);
static void (*device_read)(void*, const void*, size_t);

/* More runs than are copied one by one: the MPI library moves them, as far as it can reach them. */
static void many_runs(unsigned char* device) {
    enum { runs = 140000, bytes = 2 * runs };
    unsigned char* const data = device == NULL ? guarded_new(bytes) : device;
    MPI_Datatype every_other;
    MPI_Type_vector(runs, 1, 2, MPI_BYTE, &every_other);
    MPI_Type_commit(&every_other);
    for (int root = 0; root < check_size; ++root) {
        for (int i = 0; i < bytes; ++i)
            data[i] =
                check_rank == root && i % 2 == 0 ? pattern(i / 2, 70 + root) : (unsigned char)poison_value;
        MPI_Bcast(data, 1, every_other, root, MPI_COMM_WORLD);
        CHECK(was_accelerated(), "native: %s", last_reason());
        for (int i = 0; i < bytes; ++i) {
            const unsigned char want = i % 2 == 0 ? pattern(i / 2, 70 + root) : (unsigned char)poison_value;
            if (data[i] != want) FAIL("byte %d of many runs is %02x, not %02x", i, data[i], want);
        }
    }
    MPI_Type_free(&every_other);
    if (device == NULL) guarded_free(data, bytes);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2) FAIL("usage: device FAKE_DRIVER");
    enum { bytes = 500000, columns = 2500 };
    static unsigned char data[bytes];
    const int owner = check_size - 1;
    MPI_Datatype vector;
    MPI_Type_vector(columns, 50, 200, MPI_BYTE, &vector);
    MPI_Type_commit(&vector);
    if (check_rank == owner) {
        void* const driver = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
        CHECK(driver != NULL, "%s", dlerror());
        *(void**)&device_alloc = dlsym(driver, "fake_alloc");
        *(void**)&device_copies = dlsym(driver, "fake_copies");
        *(void**)&device_share = dlsym(driver, "fake_share");
        *(void**)&device_write = dlsym(driver, "fake_write");
        *(void**)&device_read = dlsym(driver, "fake_read");
        unsigned char* const device = device_alloc(bytes);
        for (int root = 0; root < check_size; ++root) {
            memset(data, poison_value, bytes);
            if (check_rank == root) fill(data, bytes, root);
            device_write(device, data, bytes);
            MPI_Bcast(device, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
            CHECK(was_accelerated(), "native: %s", last_reason());
            device_read(data, device, bytes);
            verify(data, bytes, root, "device memory");

            memset(data, poison_value, bytes);
            if (check_rank == root)
                for (int i = 0; i < columns * 50; ++i) data[i / 50 * 200 + i % 50] = pattern(i, 90 + root);
            device_write(device, data, bytes);
            MPI_Bcast(device, 1, vector, root, MPI_COMM_WORLD);
            CHECK(was_accelerated(), "native: %s", last_reason());
            device_read(data, device, bytes);
            for (int i = 0; i < bytes; ++i) {
                const int inside = i % 200 < 50 && i / 200 < columns;
                const unsigned char want =
                    inside ? pattern(i / 200 * 50 + i % 200, 90 + root) : (unsigned char)poison_value;
                if (data[i] != want)
                    FAIL("byte %d of a vector in device memory is %02x, not %02x", i, data[i], want);
            }
        }
        const unsigned long copied = device_copies();
        CHECK(copied > 0, "the driver copied nothing");
        device_share();
        many_runs(device);
        CHECK(device_copies() == copied, "%lu copies of single runs", device_copies() - copied);
    } else {
        for (int root = 0; root < check_size; ++root) {
            memset(data, poison_value, bytes);
            if (check_rank == root) fill(data, bytes, root);
            MPI_Bcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
            verify(data, bytes, root, "host memory");
            for (int i = 0; i < columns * 50; ++i)
                data[i] = check_rank == root ? pattern(i, 90 + root) : (unsigned char)poison_value;
            MPI_Bcast(data, columns * 50, MPI_BYTE, root, MPI_COMM_WORLD);
            verify(data, columns * 50, 90 + root, "host memory, packed");
        }
        many_runs(NULL);
    }
    MPI_Type_free(&vector);
    return check_end();
}
