/* A call by which the ranks agree fails on one of them (faults.c), and the error handler that hears of it
 * jumps: what we have thrown and caught for it is given back before, as nobody could do so afterwards. */
#define _GNU_SOURCE
#include <link.h>

#include "check.h"
#include "jumping.h"

extern void* __libc_malloc(size_t);
extern void __libc_free(void*);

/* What our object has had of memory since this thread began to watch, and has not given back. */
enum { most = 256 };
static uintptr_t our_begin, our_end;
static __thread int watching;
static void* held[most];
static int had;

void* malloc(size_t bytes) {
    void* const memory = __libc_malloc(bytes);
    const uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    if (watching && caller >= our_begin && caller < our_end && had < most) held[had++] = memory;
    return memory;
}
void free(void* memory) {
    for (int i = 0; watching && i < had; ++i)
        if (held[i] == memory) held[i] = NULL;
    __libc_free(memory);
}

static int find_ours(struct dl_phdr_info* object, size_t size, void* inside) {
    (void)size;
    our_begin = our_end = object->dlpi_addr;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)* const part = &object->dlpi_phdr[i];
        const uintptr_t end = object->dlpi_addr + part->p_vaddr + part->p_memsz;
        if (part->p_type == PT_LOAD && end > our_end) our_end = end;
    }
    return (uintptr_t)inside >= our_begin && (uintptr_t)inside < our_end;
}

/* As agreement.c does it outside of what is made. */
static __attribute__((noinline)) void create(MPI_Comm parent, MPI_Group some, MPI_Comm* part) {
    setenv("THALWEG_TEST_FAULT", "Allreduce:1:1", 1);
    watching = 1;
    if (setjmp(back) == 0) MPI_Comm_create(parent, some, part);
    watching = 0;
    unsetenv("THALWEG_TEST_FAULT");
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    const int victim = 1;
    int left = 0;
    MPI_Comm parent, part = MPI_COMM_NULL;
    MPI_Group all, some;
    MPI_Errhandler jumps = jumping_handler();
    CHECK(look_last_call != NULL && dl_iterate_phdr(find_ours, (void*)look_last_call) != 0,
          "nothing of ours");
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Comm_set_errhandler(parent, jumps);
    MPI_Comm_group(parent, &all);
    MPI_Group_excl(all, 1, &victim, &some);
    create(parent, some, &part);
    CHECK(heard == (check_rank == victim), "the error handler ran %d times", heard);
    CHECK(had > 0 || !heard, "nothing was thrown, or its memory is not seen");
    for (int i = 0; heard && i < had; ++i) left += held[i] != NULL;
    CHECK(left == 0, "%d of %d pieces of memory stay behind the jump", left, had);
    if (part != MPI_COMM_NULL) MPI_Comm_free(&part);
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    MPI_Errhandler_free(&jumps);
    MPI_Comm_free(&parent);
    return check_end();
}
