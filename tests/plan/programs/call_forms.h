/* Collectives that are called by their addresses, blocking, nonblocking and persistent, with counts of int or
 * of MPI_Count; and arrays that they are given and that die behind the call. What arrives are ints, but where
 * types say what.
 */
#ifndef CALL_FORMS_H
#define CALL_FORMS_H

#include "check.h"

typedef enum { blocking, nonblocking, persistent, times } Time;

/* Arrays of int and of MPI_Count are pointers alike. */
typedef int Alike(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
typedef int AlikeC(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm);
typedef int AlikeSoon(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Request*);
typedef int AlikeSoonC(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm,
                       MPI_Request*);
typedef int AlikeInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                      MPI_Request*);
typedef int AlikeInitC(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm,
                       MPI_Info, MPI_Request*);
typedef int Ragged(const void*, const void*, const void*, MPI_Datatype, void*, const void*, const void*,
                   MPI_Datatype, MPI_Comm);
typedef int RaggedSoon(const void*, const void*, const void*, MPI_Datatype, void*, const void*, const void*,
                       MPI_Datatype, MPI_Comm, MPI_Request*);
typedef int RaggedInit(const void*, const void*, const void*, MPI_Datatype, void*, const void*, const void*,
                       MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
typedef int Typed(const void*, const void*, const void*, const MPI_Datatype*, void*, const void*, const void*,
                  const MPI_Datatype*, MPI_Comm);
typedef int TypedSoon(const void*, const void*, const void*, const MPI_Datatype*, void*, const void*,
                      const void*, const MPI_Datatype*, MPI_Comm, MPI_Request*);
typedef int TypedInit(const void*, const void*, const void*, const MPI_Datatype*, void*, const void*,
                      const void*, const MPI_Datatype*, MPI_Comm, MPI_Info, MPI_Request*);
typedef int Gather(const void*, int, MPI_Datatype, void*, const void*, const void*, MPI_Datatype, MPI_Comm);
typedef int GatherC(const void*, MPI_Count, MPI_Datatype, void*, const void*, const void*, MPI_Datatype,
                    MPI_Comm);
typedef int GatherSoon(const void*, int, MPI_Datatype, void*, const void*, const void*, MPI_Datatype,
                       MPI_Comm, MPI_Request*);
typedef int GatherSoonC(const void*, MPI_Count, MPI_Datatype, void*, const void*, const void*, MPI_Datatype,
                        MPI_Comm, MPI_Request*);
typedef int GatherInit(const void*, int, MPI_Datatype, void*, const void*, const void*, MPI_Datatype,
                       MPI_Comm, MPI_Info, MPI_Request*);
typedef int GatherInitC(const void*, MPI_Count, MPI_Datatype, void*, const void*, const void*, MPI_Datatype,
                        MPI_Comm, MPI_Info, MPI_Request*);

/* What a call is given and that dies behind it. */
enum { most_arrays = 6 };
static struct {
    void* data;
    size_t bytes;
} arrays[most_arrays];
static int array_count;
static void* array_new(int count, size_t each) {
    arrays[array_count].bytes = each * (size_t)count;
    return arrays[array_count++].data = malloc(each * (size_t)count);
}
_Static_assert(sizeof(MPI_Count) == sizeof(MPI_Aint), "counts and places are as wide");
static const void* numbers(int count, const int* from, int times_as_much, int wide) {
    int* const narrow = array_new(count, wide ? sizeof(MPI_Count) : sizeof(int));
    for (int i = 0; i < count; ++i)
        if (wide)
            ((MPI_Count*)narrow)[i] = (MPI_Count)from[i] * times_as_much;
        else
            narrow[i] = from[i] * times_as_much;
    return narrow;
}
/* What lies there afterwards is no handle, and as a count or place leads far away. */
static void let_go(MPI_Datatype* type) {
    for (int i = 0; i < array_count; ++i) {
        memset(arrays[i].data, 0x3b, arrays[i].bytes);
        free(arrays[i].data);
    }
    array_count = 0;
    MPI_Type_free(type);
}

static void call_alike(void* function, Time time, int wide, MPI_Comm comm, const int* from, int sent,
                       MPI_Datatype type, int* to, int count, MPI_Request* request) {
    if (time == blocking && !wide) (*(Alike*)function)(from, sent, type, to, count, MPI_INT, comm);
    if (time == blocking && wide) (*(AlikeC*)function)(from, sent, type, to, count, MPI_INT, comm);
    if (time == nonblocking && !wide)
        (*(AlikeSoon*)function)(from, sent, type, to, count, MPI_INT, comm, request);
    if (time == nonblocking && wide)
        (*(AlikeSoonC*)function)(from, sent, type, to, count, MPI_INT, comm, request);
    if (time == persistent && !wide)
        (*(AlikeInit*)function)(from, sent, type, to, count, MPI_INT, comm, MPI_INFO_NULL, request);
    if (time == persistent && wide)
        (*(AlikeInitC*)function)(from, sent, type, to, count, MPI_INT, comm, MPI_INFO_NULL, request);
}
static void call_gather(void* function, Time time, int wide, MPI_Comm comm, const int* from, int sent,
                        MPI_Datatype type, int* to, const void* counts, const void* places,
                        MPI_Request* request) {
    if (time == blocking && !wide) (*(Gather*)function)(from, sent, type, to, counts, places, MPI_INT, comm);
    if (time == blocking && wide) (*(GatherC*)function)(from, sent, type, to, counts, places, MPI_INT, comm);
    if (time == nonblocking && !wide)
        (*(GatherSoon*)function)(from, sent, type, to, counts, places, MPI_INT, comm, request);
    if (time == nonblocking && wide)
        (*(GatherSoonC*)function)(from, sent, type, to, counts, places, MPI_INT, comm, request);
    if (time == persistent && !wide)
        (*(GatherInit*)function)(from, sent, type, to, counts, places, MPI_INT, comm, MPI_INFO_NULL, request);
    if (time == persistent && wide)
        (*(GatherInitC*)function)(from, sent, type, to, counts, places, MPI_INT, comm, MPI_INFO_NULL,
                                  request);
}
static void call_ragged(void* function, Time time, MPI_Comm comm, const int* from, const void* sent,
                        const void* sent_at, MPI_Datatype type, int* to, const void* counts,
                        const void* places, MPI_Request* request) {
    if (time == blocking) (*(Ragged*)function)(from, sent, sent_at, type, to, counts, places, MPI_INT, comm);
    if (time == nonblocking)
        (*(RaggedSoon*)function)(from, sent, sent_at, type, to, counts, places, MPI_INT, comm, request);
    if (time == persistent)
        (*(RaggedInit*)function)(from, sent, sent_at, type, to, counts, places, MPI_INT, comm, MPI_INFO_NULL,
                                 request);
}
static void call_typed(void* function, Time time, MPI_Comm comm, const int* from, const void* sent,
                       const void* sent_at, const MPI_Datatype* sent_types, int* to, const void* counts,
                       const void* places, const MPI_Datatype* types, MPI_Request* request) {
    if (time == blocking)
        (*(Typed*)function)(from, sent, sent_at, sent_types, to, counts, places, types, comm);
    if (time == nonblocking)
        (*(TypedSoon*)function)(from, sent, sent_at, sent_types, to, counts, places, types, comm, request);
    if (time == persistent)
        (*(TypedInit*)function)(from, sent, sent_at, sent_types, to, counts, places, types, comm,
                                MPI_INFO_NULL, request);
}

#endif
