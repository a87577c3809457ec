/* Device memory, faked: a stand-in for a driver (fake_device.h) owns a range that the CPU may not touch. Only
 * one rank has such memory; the others' calls are plain. */
#include "check.h"

static void* (*device_alloc)(size_t);
static unsigned long (*device_copies)(void);
static void (*device_write)(void*, const void*, size_t);
static void (*device_read)(void*, const void*, size_t);

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
        CHECK(device_copies() > 0, "the driver copied nothing");
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
    }
    MPI_Type_free(&vector);
    return check_end();
}
