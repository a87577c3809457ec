/* Where the main object of Thalweg lies in memory: for a program that refuses what is asked for from there.
 */
#ifndef THALWEG_TESTS_PLAN_OUR_OBJECT_H
#define THALWEG_TESTS_PLAN_OUR_OBJECT_H

#ifndef _GNU_SOURCE
#error "link.h needs _GNU_SOURCE in front of all headers"
#endif
#include <link.h>
#include <stdint.h>
#include <string.h>

static uintptr_t ours_begin, ours_end; /* after dl_iterate_phdr(find_ours, NULL) */

static int find_ours(struct dl_phdr_info* object, size_t size, void* data) {
    (void)size;
    (void)data;
    /* Its optional companions have a further word: libthalweg-mpich-bigcount.so. */
    const char* const name = strstr(object->dlpi_name, "libthalweg-");
    if (name == NULL || strchr(name + strlen("libthalweg-"), '-') != NULL) return 0;
    ours_begin = ours_end = object->dlpi_addr;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)* const part = &object->dlpi_phdr[i];
        const uintptr_t end = object->dlpi_addr + part->p_vaddr + part->p_memsz;
        if (part->p_type == PT_LOAD && end > ours_end) ours_end = end;
    }
    return 1;
}

#endif
