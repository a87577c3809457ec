#include <dlfcn.h>
#include <stdio.h>
#include <thalweg/thalweg.h>

int main(void) {
    /* An address, not a link-time symbol: the program also runs where Thalweg is not loaded. */
    const char* (*version)(void) = (const char* (*)(void))dlsym(RTLD_DEFAULT, "thalweg_version");
    printf("%s\n", version ? version() : "not loaded");
    return THALWEG_OK;
}
