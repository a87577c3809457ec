#include "amr/options.h"

#include <string.h>

#include "common/whole_number.h"

/* "isend,init"; 0: not all of these are versions. */
static int read_versions(const char* names, int* chosen) {
    memset(chosen, 0, amr_versions * sizeof *chosen);
    for (;;) {
        const size_t length = strcspn(names, ",");
        int found = 0;
        for (int i = 0; i < amr_versions; ++i)
            if (strlen(amr_names[i]) == length && strncmp(names, amr_names[i], length) == 0)
                chosen[i] = found = 1;
        if (!found) return 0;
        if (names[length] == '\0') return 1;
        names += length + 1;
    }
}

int amr_read_options(int argc, char** argv, int ranks, AmrOptions* options) {
    *options = (AmrOptions){{{4, 4, 4}, 8, 2, 20, 5, ranks}, 3, 0, {1, 1, 1, 1, 1}, NULL};
    AmrProblem* const problem = &options->problem;
    for (int i = 1; i < argc; ++i) {
        const int more = argc - i - 1;
        if (strcmp(argv[i], "--blocks") == 0 && more >= 3) {
            for (int d = 0; d < amr_axes; ++d) problem->blocks[d] = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--cells") == 0 && more >= 1) {
            problem->cells = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--levels") == 0 && more >= 1) {
            problem->levels = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--steps") == 0 && more >= 1) {
            problem->steps = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--refine-every") == 0 && more >= 1) {
            problem->refine_every = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--repeat") == 0 && more >= 1) {
            options->repeat = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--version") == 0 && more >= 1) {
            if (!read_versions(argv[++i], options->chosen)) return 0;
        } else if (strcmp(argv[i], "--json") == 0 && more >= 1) {
            options->json = argv[++i];
        } else if (strcmp(argv[i], "--damage") == 0) {
            options->damage = 1;
        } else {
            return 0;
        }
    }
    int good = 1;
    for (int d = 0; d < amr_axes; ++d) good = good && problem->blocks[d] > 0 && problem->blocks[d] <= 64;
    return good && problem->cells > 0 && problem->cells % 2 == 0 && problem->levels >= 0 &&
           problem->levels <= amr_most_levels && problem->steps > 0 && problem->refine_every > 0 &&
           options->repeat > 0;
}

void amr_print_usage(FILE* file) {
    fprintf(file,
            "usage: amr [--blocks X Y Z] [--cells EVEN] [--levels 0..%d] [--steps N] [--refine-every N]\n"
            "           [--repeat N] [--version isend|waitall|persistent|neighbor|init,...] [--json FILE]\n"
            "           [--damage]\n"
            "Numbers from 1 on, at most 64 blocks in a dimension.\n",
            amr_most_levels);
}
