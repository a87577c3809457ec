/* Numbers on the command lines of the programs in C. */
#ifndef THALWEG_APPS_COMMON_WHOLE_NUMBER_H
#define THALWEG_APPS_COMMON_WHOLE_NUMBER_H

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/* -1 for a text that is no number from 0 to INT_MAX, or more than one. */
static inline int whole_number(const char* text) {
    char* end = NULL;
    errno = 0;
    const long value = strtol(text, &end, 10);
    return end == text || *end != '\0' || errno != 0 || value < 0 || value > INT_MAX ? -1 : (int)value;
}

#endif
