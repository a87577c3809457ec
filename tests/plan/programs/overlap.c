/* Operations advance while their rank is outside MPI, for next to nothing, and nothing runs while none is
 * pending. One part per argument:
 *
 *   sleeping   an allgather, then a sleep as long as it takes: the wait after it is short
 *   computing  the same, and the rank computes; where each rank has a core that is not idle, only told
 *   idle       the agent's thread is not scheduled once in a second after it had work
 *   rests      the same for five seconds in a row
 *   late       what the root sent leaves it while it sleeps, though its own part was over long before
 *   apart      and while it sits in a native call, when the others join seconds later
 *   freed      and when it has freed its communicator, or its plan
 *   killed     a rank is killed with operations in flight (ended.py says what must become of the job)
 *   fork       children: without the thread, and gone at once; the parent's operations go on
 */
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { rounds = 12 };

static double pure_time(const unsigned char* own, unsigned char* all, int bytes) {
    double best = 1e9;
    for (int round = 0; round < rounds; ++round) {
        MPI_Request request;
        MPI_Barrier(MPI_COMM_WORLD);
        const double began = seconds_now();
        MPI_Iallgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        const double took = seconds_now() - began;
        if (took < best) best = took;
    }
    MPI_Allreduce(MPI_IN_PLACE, &best, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return best;
}

static void compute(double span) {
    const double until = seconds_now() + span;
    volatile double x = 0;
    while (seconds_now() < until) x += 1;
}

/* The least of several rounds, because the machine has other things to do: what is hidden in none of them is
 * not hidden. Returns whether it was. */
static int is_hidden(unsigned char* own, unsigned char* all, int bytes, int computes) {
    const double pure = pure_time(own, all, bytes);
    double least = 1e9;
    for (int round = 0; round < rounds; ++round) {
        MPI_Request request;
        memset(all, poison_value, (size_t)bytes * (size_t)check_size);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Iallgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
        CHECK(was_accelerated(), "%s", last_reason());
        if (computes)
            compute(3 * pure + 0.02);
        else
            usleep((useconds_t)((3 * pure + 0.02) * 1e6));
        const double began = seconds_now();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        double took = seconds_now() - began;
        MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (took < least) least = took;
        for (int rank = 0; rank < check_size; ++rank)
            verify(all + (size_t)bytes * (size_t)rank, bytes, (unsigned)rank, "a block of an allgather");
    }
    if (check_rank == 0)
        printf("%d steps: %.3f ms, of which %.3f ms remain after the %s\n", check_size - 1, 1e3 * pure,
               1e3 * least, computes ? "computation" : "sleep");
    return least < 0.2 * pure;
}

static void overlap(int computes) {
    enum { bytes = 4 << 20, attempts = 5 };
    unsigned char* const own = guarded_new(bytes);
    unsigned char* const all = guarded_new((size_t)bytes * (size_t)check_size);
    fill(own, bytes, (unsigned)check_rank);
    int hidden = 0;
    for (int attempt = 0; !hidden && attempt < (computes ? 1 : attempts); ++attempt)
        hidden = is_hidden(own, all, bytes, computes);
    if (!computes) CHECK(hidden, "more than a fifth was hidden in none of %d attempts", (int)attempts);
    guarded_free(own, bytes);
    guarded_free(all, (size_t)bytes * (size_t)check_size);
}

/* How often the agent's thread was given a CPU; -1: there is none. */
static long turns_of_agent(void) {
    DIR* const tasks = opendir("/proc/self/task");
    long turns = -1;
    for (struct dirent* task; (task = readdir(tasks)) != NULL;) {
        char path[300], line[200];
        long found = 0, some;
        int is_agent = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE* const status = fopen(path, "r");
        if (status == NULL) continue;
        while (fgets(line, sizeof line, status) != NULL) {
            if (strncmp(line, "Name:\tthalweg-agent", 19) == 0) is_agent = 1;
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &some) == 1) found += some;
            if (sscanf(line, "nonvoluntary_ctxt_switches: %ld", &some) == 1) found += some;
        }
        fclose(status);
        if (is_agent) turns = found;
    }
    closedir(tasks);
    return turns;
}

static void one_broadcast(unsigned seed) {
    enum { bytes = 300000 };
    unsigned char* const data = guarded_new(bytes);
    MPI_Request request;
    if (check_rank == 0) fill(data, bytes, seed);
    MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    CHECK(was_accelerated(), "%s", last_reason());
    usleep(1000); /* some of it is the agent's */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    verify(data, bytes, seed, "a broadcast");
    guarded_free(data, bytes);
}

static void idle(int wanted_s) {
    for (unsigned round = 0; round < 20; ++round) one_broadcast(round);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(turns_of_agent() > 0, "there is no agent");
    /* What was sent may need its ear for a second, and on a busy machine it may not have had a core since. */
    int silent_s = 0;
    long before = turns_of_agent(), woken = 0;
    for (int second = 0; silent_s < wanted_s && second < 30; ++second) {
        sleep(1);
        const long turns = turns_of_agent();
        woken = turns - before;
        before = turns;
        silent_s = woken == 0 ? silent_s + 1 : 0;
    }
    CHECK(silent_s == wanted_s, "%d idle seconds in a row, not %d; %ld wake-ups in the last one", silent_s,
          wanted_s, woken);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* With socket buffers of a few kilobytes (the caller's setting) the last chunk lies in libucp's when the
 * root's part is over. The root sleeps for longer where the others were not done when it came back: a busy
 * machine is late at times, and what does not leave never is in time. */
static void late(void) {
    enum { bytes = 600000, longest_s = 30 };
    unsigned char* const data = guarded_new(bytes);
    double sleeps_s = 1.5;
    for (unsigned round = 0; round < 5; ++round) {
        MPI_Request request;
        if (check_rank == 0) fill(data, bytes, round);
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank != 0) usleep(100000);
        MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
        if (check_rank == 0) usleep((useconds_t)(1e6 * sleeps_s));
        const double returned = seconds_now();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify(data, bytes, round, "a broadcast");
        if (done_before_return(seconds_now(), returned)) continue;
        CHECK(sleeps_s < longest_s, "a broadcast was not over while its root slept for %.1f s", sleeps_s);
        sleeps_s *= 2;
        --round;
        if (check_rank != 0) memset(data, poison_value, bytes);
    }
    guarded_free(data, bytes);
}

/* What the root has sent lies in its sockets and, the end of it, in libucp when its part is over; the others
 * join after `joins_s`. The root frees what it may and blocks in a native call that needs them to be done.
 * Returns whether its part was over before they joined. */
typedef enum { nothing, plan, communicator } Freed;
static int (*bcast_init)(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);
static int leaves(Freed freed, int bytes, double joins_s) {
    unsigned char* const data = guarded_new((size_t)bytes);
    MPI_Request request;
    MPI_Comm comm = MPI_COMM_WORLD;
    if (freed == communicator) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Ibarrier(comm, &request); /* with what comes next it is set up */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(comm);
    }
    memset(data, poison_value, (size_t)bytes);
    if (check_rank == 0) fill(data, (size_t)bytes, (unsigned)bytes);
    if (freed == plan) bcast_init(data, bytes, MPI_BYTE, 0, comm, MPI_INFO_NULL, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank != 0) usleep((useconds_t)(1e6 * joins_s));
    if (freed == plan)
        MPI_Start(&request);
    else
        MPI_Ibcast(data, bytes, MPI_BYTE, 0, comm, &request);
    CHECK(was_accelerated(), "%s", last_reason());
    const double began = seconds_now();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int over = seconds_now() - began < joins_s / 2;
    if (freed == plan) MPI_Request_free(&request);
    if (freed == communicator) MPI_Comm_free(&comm);
    alarm(60); /* whoever hangs is ended by it */
    if (check_rank == 0) MPI_Recv(NULL, 0, MPI_BYTE, check_size - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (check_rank == check_size - 1) MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
    alarm(0);
    verify(data, (size_t)bytes, (unsigned)bytes, "a broadcast whose root was gone");
    guarded_free(data, (size_t)bytes);
    MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return over;
}

/* In one of some attempts: where others have the cores, a root that need not wait comes back late, too. */
static int leaves_before(Freed freed, int bytes, double joins_s) {
    enum { attempts = 3 };
    int over = 0;
    for (int attempt = 0; !over && attempt < attempts; ++attempt) over = leaves(freed, bytes, joins_s);
    return over;
}

/* Of all sizes up to the first that does not leave before the others join, the last one's end has not left.
 */
static void leaves_early(Freed freed) {
    enum { chunk = 512, most = 4 << 20 };
    int bytes = chunk;
    (void)leaves(nothing, bytes, 0); /* connects them */
    while (bytes < most && leaves_before(freed, bytes, 0.02))
        bytes += bytes < 64 * chunk ? chunk : bytes / 64;
    CHECK(bytes > chunk && bytes < most, "a root's part of %d bytes was %s", bytes,
          bytes < most ? "never over early" : "always over early");
    if (freed != nothing) return;
    for (int before = 1; before <= 2 && bytes > before * chunk; ++before)
        leaves(freed, bytes - before * chunk, 2.5);
}

static void expect_gone(pid_t child, const char* what) {
    int status = 0;
    CHECK(child > 0, "fork");
    const double began = seconds_now();
    while (waitpid(child, &status, WNOHANG) == 0) {
        CHECK(seconds_now() - began < 10, "a child %s does not end", what);
        usleep(1000);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "a child %s ended with %x", what, (unsigned)status);
}

static void with_children(void) {
    one_broadcast(1);
    for (int round = 0; round < 3; ++round) {
        enum { bytes = 300000 };
        unsigned char* const data = guarded_new(bytes);
        MPI_Request request;
        if (check_rank == 0) fill(data, bytes, 40 + (unsigned)round);
        MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
        fflush(NULL);
        pid_t child = fork(); /* while something is pending */
        if (child == 0) _exit(turns_of_agent() == -1 ? 7 : 8);
        expect_gone(child, "that leaves by _exit");
        child = fork();
        if (child == 0) {
            execl("/bin/sh", "sh", "-c", "exit 7", (char*)NULL);
            _exit(9);
        }
        expect_gone(child, "that runs another program");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify(data, bytes, 40 + (unsigned)round, "a broadcast beside a fork");
        guarded_free(data, bytes);
    }
    one_broadcast(2);
}

static void killed(void) {
    enum { bytes = 1 << 20, dies_at = 10 };
    unsigned char* const own = guarded_new(bytes);
    unsigned char* const all = guarded_new((size_t)bytes * (size_t)check_size);
    for (int round = 0; round < 1000; ++round) {
        MPI_Request request;
        MPI_Iallgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
        CHECK(was_accelerated(), "%s", last_reason());
        if (round == dies_at && check_rank == check_size - 1) die();
        usleep(20000);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char** argv) {
    const int wanted = wanted_level();
    check_start(&argc, &argv, wanted);
    int before = -1, after = -1;
    MPI_Query_thread(&before);
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "sleeping") == 0) overlap(0);
        if (strcmp(argv[i], "computing") == 0) overlap(1);
        if (strcmp(argv[i], "idle") == 0) idle(1);
        if (strcmp(argv[i], "rests") == 0) idle(5);
        if (strcmp(argv[i], "late") == 0) late();
        if (strcmp(argv[i], "apart") == 0) leaves_early(nothing);
        if (strcmp(argv[i], "freed") == 0) {
            leaves_early(communicator);
            *(void**)&bcast_init = find_or_skip("MPI_Bcast_init");
            leaves_early(plan);
        }
        if (strcmp(argv[i], "killed") == 0) killed();
        if (strcmp(argv[i], "fork") == 0) with_children();
    }
    MPI_Query_thread(&after);
    CHECK(before == after, "thread level %d became %d", before, after);
    return check_end();
}
