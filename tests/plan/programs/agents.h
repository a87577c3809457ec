/* How many progress threads of Thalweg this process has now. */
#ifndef AGENTS_H
#define AGENTS_H

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static int agents(void) {
    DIR* const tasks = opendir("/proc/self/task");
    int found = 0;
    for (struct dirent* task; (task = readdir(tasks)) != NULL;) {
        char path[300], name[64] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE* const file = fopen(path, "r");
        if (file == NULL) continue;
        found += fgets(name, sizeof name, file) != NULL && strncmp(name, "thalweg-agent", 13) == 0;
        fclose(file);
    }
    closedir(tasks);
    return found;
}

#endif
