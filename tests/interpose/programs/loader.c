/* loader PLUGIN [global] [close]: opens it for itself alone, or for everybody, runs it and closes it where
 * that is asked for. This program is linked with no MPI. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
    int global = 0, close = 0;
    for (int i = 2; i < argc; ++i) {
        global = global || strcmp(argv[i], "global") == 0;
        close = close || strcmp(argv[i], "close") == 0;
    }
    void* plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL)) : NULL;
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    int (*run)(void);
    *(void**)&run = dlsym(plugin, "plugin_main");
    int status = run != NULL ? run() : 2;
    if (close && dlclose(plugin) != 0) status = 3;
    return status;
}
