"""Installs the build tree into an empty folder, moves it elsewhere, and lets a small program use it through CMake
and through pkg-config: it must build, run without Thalweg, and find the installed object when that is preloaded. The
installed command must draw. The same through a DESTDIR whose name has a blank, but for what is preloaded. All users
reach what is installed, whatever the umask of who installs.

    install.py SOURCE_ROOT BUILD_ROOT CMAKE CC NINJA
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=280, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def with_cmake(cmake, cc, ninja, source, prefix, folder):
    run(cmake, "-S", source, "-B", folder, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}",
        f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={cc}")
    run(cmake, "--build", folder)
    return folder / "consumer"


def with_pkg_config(cc, source, prefix, folder):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    flags = shlex.split(run("pkg-config", "--cflags", "--libs", "thalweg", env=environment))
    folder.mkdir()
    run(cc, source / "main.c", "-o", folder / "consumer", *flags, "-ldl")
    return folder / "consumer"


def draws(prefix, source, picture):
    """The script that `bench plot` draws with is installed, and the command finds it beside itself."""
    for name in ("bench/plot.py", "sim/plot.py"):
        script = prefix / "share/thalweg" / name
        assert script.read_text() == (source / name).read_text(), f"{script} is not {name}"
    # Python and matplotlib are the system's there; here, those of the project.
    environment = dict(os.environ, PATH=f"{source / '.venv/bin'}:{os.environ['PATH']}")
    run(prefix / "bin/thalweg", "bench", "plot", "--out", picture, source / "bench/results/small-mpich.jsonl",
        source / "bench/results/onehost-mpich.jsonl", env=environment)
    assert picture.read_bytes().startswith(b"\x89PNG"), "no picture"


def files_below(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir())


def for_all_users(folder):
    """Folders may be entered, files be read, programs be started, by everybody."""
    for path in (folder, *folder.rglob("*")):
        wanted = 0o755 if path.is_dir() or path.parent.name == "bin" else 0o644
        rights = path.stat().st_mode & 0o777
        assert rights & wanted == wanted, f"{path} has the rights {rights:o}"


def staged(cmake, build, folder):
    """As a packager installs: below a folder that is not the prefix, named from here. Gives where the files are."""
    run(cmake, "--install", build, "--prefix", "/opt/thalweg", cwd=folder.parent, umask=0o077,
        env=dict(os.environ, DESTDIR=folder.name))
    for_all_users(folder)
    assert [path.name for path in folder.iterdir()] == ["opt"], f"more than the prefix: {list(folder.iterdir())}"
    return folder / "opt/thalweg"


def main(source, build, cmake, cc, ninja):
    header = (source / "include/thalweg/thalweg.h").read_text()
    version = ".".join(re.search(rf"#define THALWEG_VERSION_{part} (\d+)", header).group(1)
                       for part in ("MAJOR", "MINOR", "PATCH"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        run(cmake, "--install", build, "--prefix", folder / "first/0.1", umask=0o077)
        for_all_users(folder / "first")
        # Nothing may remember where it was installed.
        prefix = shutil.move(folder / "first/0.1", folder / "prefix")
        consumer = source / "tests/house/consumer"
        package = staged(cmake, build, folder / "of a package")
        assert files_below(package) == files_below(prefix), "other files are installed below a DESTDIR"
        programs = []
        for place, number in ((prefix, 1), (package, 2)):
            programs.append(with_cmake(cmake, cc, ninja, consumer, place, folder / f"by-cmake-{number}"))
            if shutil.which("pkg-config"):
                programs.append(with_pkg_config(cc, consumer, place, folder / f"by-pkg-config-{number}"))
        for program in programs:
            found = run(program).strip()
            assert found == "not loaded", found
        # What the build made must be installed, and be found where `thalweg run` looks: ../lib from the command.
        # (libthalweg-probe-*.so belong to the tests.)
        built = sorted(path.name for path in (build / "lib").glob("libthalweg-*.so") if "-probe-" not in path.name)
        installed = sorted(path.name for path in (prefix / "lib").glob("libthalweg-*.so"))
        assert built, f"no preload object in {build / 'lib'}"
        assert built == installed, f"built {built}, installed {installed}"
        assert (build / "bin/thalweg").exists() == (prefix / "bin/thalweg").exists(), "bin/thalweg is not installed"
        for name in installed:
            environment = dict(os.environ, LD_PRELOAD=str(prefix / "lib" / name))
            for program in programs:
                found = run(program, env=environment).strip()
                assert found == version, f"{name} says {found}, the header {version}"
        if (prefix / "bin/thalweg").exists():
            assert version in run(prefix / "bin/thalweg", "--version")
            draws(prefix, source, folder / "drawn.png")
        print(f"version {version}: {len(programs)} consumers, {len(installed)} preload objects")


if __name__ == "__main__":
    main(*(pathlib.Path(argument) for argument in sys.argv[1:3]), *sys.argv[3:6])
