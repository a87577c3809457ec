#include "amr/report.h"

#include <stddef.h>
#include <stdlib.h>

int amr_exchanges(const AmrProblem* problem) { return problem->steps + 1; }

int amr_meshes(const AmrProblem* problem) { return problem->steps / problem->refine_every + 1; }

int amr_exchanges_on(const AmrProblem* problem, int mesh) {
    const int left = amr_exchanges(problem) - mesh * problem->refine_every;
    return left < problem->refine_every ? left : problem->refine_every;
}

static int compare(const void* a, const void* b) {
    const double left = *(const double*)a, right = *(const double*)b;
    return (left > right) - (left < right);
}

/* The median of the member at that offset of a sample; 0 without memory. */
static double middle(const AmrSeries* series, size_t member) {
    double* const values = malloc((size_t)series->count * sizeof *values);
    if (values == NULL) return 0;
    for (int i = 0; i < series->count; ++i)
        values[i] = *(const double*)((const char*)&series->samples[i] + member);
    qsort(values, (size_t)series->count, sizeof *values, compare);
    const double value = values[series->count / 2];
    free(values);
    return value;
}

void amr_print(FILE* file, const AmrProblem* problem, const AmrMeshReport* meshes, const AmrSeries* series,
               int count) {
    const int made = amr_meshes(problem);
    const double exchanges = amr_exchanges(problem);
    double busiest = 0;
    int64_t largest = 0;
    for (int mesh = 0; mesh < made; ++mesh)
        for (int axis = 0; axis < amr_axes; ++axis) {
            const AmrTraffic* const stage = &meshes[mesh].stages[axis];
            busiest += (double)stage->busiest * meshes[mesh].exchanges;
            if (stage->largest > largest) largest = stage->largest;
        }
    fprintf(file,
            "%d x %d x %d blocks of %d cells each way, %d levels; %d blocks at the end; %d ranks, %d steps, "
            "%d meshes\n",
            problem->blocks[0], problem->blocks[1], problem->blocks[2], problem->cells, problem->levels,
            meshes[made - 1].blocks, problem->ranks, problem->steps, made);
    fprintf(file, "between hosts: %.0f bytes over the busiest link in an exchange, messages of up to %lld\n",
            busiest / exchanges, (long long)largest);
    fprintf(file, "%-12s %14s %14s %14s %14s %14s\n", "version", "communication", "exchanges", "inside MPI",
            "made", "total");
    fprintf(file, "%-12s %14s %14s %14s %14s %14s\n", "", "ms per step", "ms per step", "ms per step",
            "ms per mesh", "ms per step");
    for (int i = 0; i < count; ++i) {
        const AmrSeries* const own = &series[i];
        fprintf(file, "%-12s %14.4f %14.4f %14.4f %14.4f %14.4f\n", own->name,
                1e3 * middle(own, offsetof(AmrSample, communication)) / exchanges,
                1e3 * middle(own, offsetof(AmrSample, exchanging)) / exchanges,
                1e3 * middle(own, offsetof(AmrSample, inside)) / exchanges,
                1e3 * middle(own, offsetof(AmrSample, making)) / made,
                1e3 * middle(own, offsetof(AmrSample, total)) / exchanges);
    }
}

/* In quotes, up to the end of its line. */
static void write_text(FILE* file, const char* text) {
    fputc('"', file);
    for (; *text != '\0' && *text != '\n'; ++text) {
        if (*text == '"' || *text == '\\') fputc('\\', file);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
    }
    fputc('"', file);
}

static void write_meshes(FILE* file, const AmrMeshReport* meshes, int count) {
    for (int mesh = 0; mesh < count; ++mesh) {
        fprintf(file, "%s{\"exchanges\":%d,\"blocks\":%d,\"stages\":[", mesh > 0 ? "," : "",
                meshes[mesh].exchanges, meshes[mesh].blocks);
        for (int axis = 0; axis < amr_axes; ++axis) {
            const AmrTraffic* const stage = &meshes[mesh].stages[axis];
            fprintf(file, "%s{\"crossing\":%lld,\"busiest\":%lld,\"messages\":%lld,\"largest\":%lld}",
                    axis > 0 ? "," : "", (long long)stage->crossing, (long long)stage->busiest,
                    (long long)stage->messages, (long long)stage->largest);
        }
        fputs("]}", file);
    }
}

void amr_write_line(FILE* file, const AmrProblem* problem, const AmrMeshReport* meshes, const char* library,
                    const AmrSeries* series) {
    fprintf(file,
            "{\"app\":\"amr\",\"parameters\":{\"blocks\":[%d,%d,%d],\"cells\":%d,\"levels\":%d,\"steps\":%d,"
            "\"refine-every\":%d,\"ranks\":%d},\"library\":",
            problem->blocks[0], problem->blocks[1], problem->blocks[2], problem->cells, problem->levels,
            problem->steps, problem->refine_every, problem->ranks);
    write_text(file, library);
    fputs(",\"version\":", file);
    write_text(file, series->name);
    fputs(",\"checked\":\"every cell and every cell of the halos against one rank alone\",\"wrong\":\"",
          file);
    if (series->wrong > 0) fprintf(file, "%ld cells", series->wrong);
    fputs("\",\"meshes\":[", file);
    write_meshes(file, meshes, amr_meshes(problem));
    fputs("],\"samples\":[", file);
    for (int i = 0; i < series->count; ++i) {
        const AmrSample* const sample = &series->samples[i];
        fprintf(
            file,
            "%s{\"communication\":%.9g,\"slowest\":%.9g,\"exchanging\":%.9g,\"inside\":%.9g,\"making\":%.9g,"
            "\"total\":%.9g,\"steps\":[",
            i > 0 ? "," : "", sample->communication, sample->slowest, sample->exchanging, sample->inside,
            sample->making, sample->total);
        for (int step = 0; step < amr_exchanges(problem); ++step)
            fprintf(file, "%s%.9g", step > 0 ? "," : "", sample->steps[step]);
        fputs("]}", file);
    }
    fputs("]}\n", file);
}
