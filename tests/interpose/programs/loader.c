/* loader PLUGIN: opens it for itself alone and runs it. This program is linked with no MPI. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
    void* plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    int (*run)(void);
    *(void**)&run = dlsym(plugin, "plugin_main");
    return run != NULL ? run() : 2;
}
