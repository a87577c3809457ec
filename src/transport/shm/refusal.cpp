#include "transport/shm/refusal.h"

#include <fcntl.h>
#include <unistd.h>

namespace thalweg::shm {

const char* why_rings_only(const char* ptrace_scope) {
    char scope = '0';
    const int file = open(ptrace_scope, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, &scope, 1) != 1) scope = '0';
        close(file);
    }
    switch (scope) {
        case '1':
            return "rings only: process_vm_readv is refused, kernel.yama.ptrace_scope is 1";
        case '2':
            return "rings only: process_vm_readv is refused, kernel.yama.ptrace_scope is 2";
        case '3':
            return "rings only: process_vm_readv is refused, kernel.yama.ptrace_scope is 3";
        default:
            return "rings only: process_vm_readv is refused";
    }
}

}  // namespace thalweg::shm
