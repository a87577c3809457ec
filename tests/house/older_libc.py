"""What every centre's nodes get can be built with glibc 2.28, as on systems like RHEL 8: no program or object that is
installed calls what glibc has got since, those that need libdl or libpthread, which are parts of glibc's libc from 2.34
on, are linked to them, and the sources bring the numbers of system calls that older headers lack.

    older_libc.py SOURCE_ROOT BUILD_ROOT
"""
import pathlib
import re
import subprocess
import sys

OLDEST = (2, 28)
# Under another version, or in a library of its own, glibc has these for longer than their version says.
OLDER_THAN_THEIR_VERSION = set("""
    dladdr dladdr1 dlclose dlerror dlopen dlsym exp fmod fstat fstat64 log lstat lstat64 pow pthread_attr_getstacksize
    pthread_attr_setstacksize pthread_create pthread_detach pthread_getcpuclockid pthread_getspecific pthread_join
    pthread_key_create pthread_key_delete pthread_kill pthread_mutex_trylock pthread_once pthread_setname_np
    pthread_setspecific pthread_sigmask stat stat64 __pthread_key_create""".split())
# The compiler's own libraries and start files take them where glibc has them, and headers give strtol and its like such
# names from glibc 2.38 on.
RENAMED = "__isoc23_"
COMPILERS = {"__libc_single_threaded", "__libc_start_main", "_dl_find_object", "arc4random"}
# Of those that the sources name, system calls that the headers of glibc 2.28 and Linux 4.18 know.
OLD_CALLS = {"clone", "exit", "futex", "rt_sigaction", "rt_sigprocmask"}


def called(path):
    """Of the functions of glibc that a file calls: name and version."""
    told = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True, text=True, check=True).stdout
    found = re.findall(r" (\w+)@+GLIBC_([0-9.]+)$", told, flags=re.MULTILINE)
    return {name: tuple(int(part) for part in version.split(".")) for name, version in found}


def linked_by(ninja):
    """By output of a build.ninja: all that the linker is given."""
    blocks = re.findall(r"^build (\S+): \w+_(?:EXECUTABLE|SHARED_LIBRARY)_LINKER_(.*?)^$", ninja, re.MULTILINE | re.DOTALL)
    return {output: " ".join(re.findall(r"^  LINK_(?:FLAGS|LIBRARIES) = (.*)$", block, re.MULTILINE))
            for output, block in blocks}


def check_file(name, functions, linked):
    errors = [f"{name} calls {function}, which glibc has from {'.'.join(map(str, version))} on"
              for function, version in sorted(functions.items())
              if version > OLDEST and function not in OLDER_THAN_THEIR_VERSION | COMPILERS
              and not function.startswith(RENAMED)]
    for library, beginning in (("dl", "dl"), ("pthread", "pthread_")):
        needing = sorted(function for function, version in functions.items()
                         if version > OLDEST and function.startswith(beginning))
        if needing and not re.search(rf"-l?{library}\b", linked):
            errors.append(f"{name} calls {', '.join(needing)} and is not linked with -l{library}")
    return errors


def check_source(name, text):
    return [f"{name}: older headers have no {call}: define its number where it is missing"
            for call in sorted(set(re.findall(r"\bSYS_\w+", text)))
            if call.removeprefix("SYS_") not in OLD_CALLS and f"#ifndef {call}" not in text]


def main(source, build):
    if not (build / "build.ninja").is_file():
        print(f"SKIPPED: {build} was not configured for Ninja")
        return 77
    links = linked_by((build / "build.ninja").read_text())
    installed = [output for output in links if re.match(
        r"bin/(thalweg|thalweg-sim)$|lib/(liblabwait|libthalweg-(?!probe-)\S+)\.so$", output) and (build / output).is_file()]
    errors = [] if "bin/thalweg" in installed and len(installed) > 1 else [f"{build} has only {installed}"]
    for output in installed:
        errors += check_file(output, called(build / output), links[output])
    files = [path for room in ("src", "tools", "sim") for path in sorted((source / room).rglob("*.[ch]*"))
             if path.suffix in (".c", ".h", ".cpp")]
    for path in files:
        errors += check_source(path.relative_to(source), path.read_text())
    print("\n".join(errors) or f"{len(installed)} programs and objects, {len(files)} files: nothing to object to")
    return 1 if errors or not files else 0


if __name__ == "__main__":
    sys.exit(main(*(pathlib.Path(argument) for argument in sys.argv[1:3])))
