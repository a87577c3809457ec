/* Traps on the MPI library's calls of set-up: between set_traps() and lift_traps() whoever calls one of them,
 * in whatever way it found its address, ends the program with a sentence. On x86-64; elsewhere nothing is
 * watched. A program that makes some of these calls itself names the others, as TRAPPED. After
 * set_traps_below() the same goes for those of libucp, where it is loaded, and of the system. */
#ifndef SET_UP_CALLS_H
#define SET_UP_CALLS_H

#include "check.h"

#if defined(__x86_64__)
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef TRAPPED
#define TRAPPED                                                                                            \
    "Comm_create", "Comm_split", "Comm_dup", "Comm_create_group", "Group_incl", "Win_create", "Win_free",  \
        "Allreduce", "Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Bcast", "Barrier", "Send_init",  \
        "Type_contiguous", "Type_commit", "Type_free", "Comm_set_attr", "Comm_create_keyval",              \
        "Grequest_start", "Comm_get_parent", "Iallreduce", "Ibcast", "Ibarrier", "Recv_init", "Comm_idup", \
        "Comm_split_type", "Comm_group", "Win_allocate", "Win_allocate_shared", "Win_create_dynamic",      \
        "Win_attach", "Alloc_mem", "Gather", "Gatherv", "Scatter", "Reduce", "Iallgather", "Iallgatherv",  \
        "Ialltoall", "Ialltoallv", "Type_vector", "Type_create_struct", "Type_create_hindexed"
#endif
static const char* const trapped_names[] = {TRAPPED};
/* Memory is made known to the network, or to other processes. */
static const char* const trapped_of_libucp[] = {"ucp_mem_map", "ucp_rkey_pack", "ucp_ep_rkey_unpack"};
static const char* const trapped_of_system[] = {"shm_open", "memfd_create"};
#define NUMBER_OF(names) (int)(sizeof names / sizeof *names)
enum {
    trapped_count = NUMBER_OF(trapped_names) + NUMBER_OF(trapped_of_libucp) + NUMBER_OF(trapped_of_system)
};
static unsigned char* trapped_at[trapped_count];
static unsigned char trapped_byte[trapped_count];
static sigjmp_buf trap_control;
static volatile int trap_controls = 0;
static int barriers_pass = 0; /* not trapped: what is watched meets by them */

static void on_trap(int number, siginfo_t* info, void* context) {
    (void)number, (void)info, (void)context;
    if (trap_controls) siglongjmp(trap_control, 1);
    static const char text[] = "a call of set-up between a start and its completion\n";
    if (write(2, text, sizeof text - 1) < 0) _Exit(2);
    _Exit(1);
}

static void write_code(unsigned char* at, unsigned char byte) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void* const begin = (void*)((uintptr_t)at / page * page);
    if (mprotect(begin, page, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) FAIL("code cannot be written");
    *at = byte;
    if (mprotect(begin, page, PROT_READ | PROT_EXEC) != 0) FAIL("code cannot be protected");
}

static void set_trap(int which, void* function) {
    trapped_at[which] = (unsigned char*)function;
    trapped_byte[which] = *trapped_at[which];
    if (trapped_byte[which] != 0xcc) write_code(trapped_at[which], 0xcc); /* int3 */
}

static void set_traps(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGTRAP, &action, NULL);
    for (int i = 0; i < NUMBER_OF(trapped_names); ++i) {
        char name[64];
        if (barriers_pass && strstr(trapped_names[i], "arrier") != NULL) continue;
        snprintf(name, sizeof name, "PMPI_%s", trapped_names[i]);
        void* const function = dlsym(RTLD_DEFAULT, name);
        CHECK(function != NULL, "there is no %s", name);
        set_trap(i, function);
    }
}
/* Whether libucp is there. */
static inline int set_traps_below(void) {
    int place = NUMBER_OF(trapped_names);
    void* const libucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    for (int i = 0; i < NUMBER_OF(trapped_of_libucp) && libucp != NULL; ++i) {
        void* const function = dlsym(libucp, trapped_of_libucp[i]);
        CHECK(function != NULL, "there is no %s", trapped_of_libucp[i]);
        set_trap(place++, function);
    }
    for (int i = 0; i < NUMBER_OF(trapped_of_system); ++i) {
        void* const function = dlsym(RTLD_DEFAULT, trapped_of_system[i]);
        CHECK(function != NULL, "there is no %s", trapped_of_system[i]);
        set_trap(place++, function);
    }
    return libucp != NULL;
}
static void lift_traps(void) {
    for (int i = trapped_count - 1; i >= 0; --i) {
        if (trapped_at[i] != NULL) write_code(trapped_at[i], trapped_byte[i]);
        trapped_at[i] = NULL;
    }
}

/* That a trap springs at all. */
static void check_traps(void) {
    volatile int sprung = 0; /* kept over siglongjmp */
    set_traps();
    trap_controls = 1;
    if (sigsetjmp(trap_control, 1) == 0)
        PMPI_Barrier(MPI_COMM_SELF);
    else
        sprung = 1;
    trap_controls = 0;
    lift_traps();
    CHECK(sprung, "a trap does not spring");
}
#else
static int barriers_pass;
static void set_traps(void) {}
static inline int set_traps_below(void) { return 1; }
static void lift_traps(void) {}
static void check_traps(void) {}
#endif

#endif
