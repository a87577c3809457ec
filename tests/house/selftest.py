"""The house's checkers on small trees that break their rules: each must object, and must not object to a clean one."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import docs
import hazards
import layers
import older_libc
import preload_objects
import style


class Tree(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


class Layers(Tree):
    def found(self, name, text):
        self.write("layers.txt", "base:\ntransport: base\nengine: base transport\nplan: engine base transport\napi: transport/mpi\n")
        self.write("src/base/a.h", '#include <vector>\n')
        self.write(name, text)
        return "\n".join(layers.check(self.root))

    def test_clean(self):
        self.assertEqual(self.found("src/engine/a.cpp", '// bcast\n#include "base/a.h"\n#include "transport/t.h"\n'), "")
        self.assertEqual(self.found("src/transport/mpi/a.cpp", "#include <mpi.h>\n"), "")

    def test_wrong_arrow(self):
        self.assertIn("must not include engine/e.h", self.found("src/base/b.cpp", '#include "engine/e.h"\n'))
        self.assertIn("must not include", self.found("src/base/c.cpp", '#include <transport/t.h>\n'))

    def test_part_of_a_room(self):
        self.assertEqual(self.found("src/api/a.cpp", '#include "transport/mpi/host.h"\n'), "")
        self.assertIn("must not include", self.found("src/api/a.cpp", '#include "transport/t.h"\n'))

    def test_mpi_too_low(self):
        self.assertIn("below transport/mpi", self.found("src/transport/inproc/a.cpp", "#include <mpi.h>\n"))

    def test_collective_in_engine(self):
        self.assertIn("names a collective", self.found("src/engine/a.cpp", "int bcast_slots;\n"))

    def test_unknown_room(self):
        self.assertIn("not in layers.txt", self.found("src/cellar/a.cpp", "\n"))

    def test_cycle(self):
        self.write("layers.txt", "base: engine\nengine: base\n")
        self.assertTrue(layers.read_layers(self.root / "layers.txt")[1])

    def test_rooms_without_a_row(self):
        self.write("layers.txt", "base:\nengine: base\nsim: base\n")
        self.write("src/base/a.h", "")
        self.write("src/engine/a.h", "")
        rows = "| folder | what |\n| `docs/` | pages |\n\n| room | what |\n|---|---|\n| `src/base/` | options |\n"
        self.write("CONTRIBUTING.md", rows + "| `src/engine/` | runs |\n| `sim/` | simulates |\n")
        self.assertEqual(layers.check_rooms(self.root), [])
        self.write("CONTRIBUTING.md", rows + "| `sim/` | simulates |\n")
        self.assertIn("CONTRIBUTING.md: its rooms are base, sim", layers.check_rooms(self.root)[0])
        self.write("src/cellar/a.h", "")
        self.assertIn("the room cellar is missing", layers.check_rooms(self.root)[0])


class Style(Tree):
    def test_objects(self):
        for text in ("int a; \n", "\tint a;\n", "int a;", "// " + "x" * 130 + "\n", "int a;\n" * 700):
            self.assertTrue(style.check_text(self.write("a.cpp", text), self.root)[0], text[:20])

    def test_clean_and_long(self):
        self.assertEqual(style.check_text(self.write("a.cpp", "int a;\n"), self.root), ([], []))
        self.assertEqual(len(style.check_text(self.write("a.cpp", "int a;\n" * 450), self.root)[1]), 1)

    def test_what_the_formatter_says(self):
        self.write("a.cpp", "int  a;\n")
        tool = self.write("clang-format", "#!/bin/sh\necho 'a.cpp:1:4: warning: [-Wclang-format-violations]' >&2\n")
        tool.chmod(0o755)
        self.assertEqual(style.misformatted(str(tool), ["a.cpp"], self.root), (["a.cpp"], []))
        self.write("clang-format", "#!/bin/sh\necho 'Error reading .clang-format' >&2\nexit 1\n")
        found, errors = style.misformatted(str(tool), ["a.cpp"], self.root)
        self.assertEqual((found, "Error reading .clang-format" in errors[0]), ([], True))


class Docs(Tree):
    def found(self, text):
        self.write("Makefile", "build:\ntest:\n")
        self.write("scripts/one", "")
        tool = self.write("build/bin/thalweg",
                          '#!/bin/sh\n[ "$2" = --help ] && case "$1" in bench) echo "--sizes LIST";; run) ;; *) exit 1;; esac\n')
        tool.chmod(0o755)
        self.write("README.md", text)
        return "\n".join(docs.check(self.root, self.root / "build").errors)

    def test_clean(self):
        self.assertEqual(self.found("`scripts/one` [a](Makefile)\n```sh\nmake test\nA=b mpiexec -n 2 thalweg run ./x\n"
                                    "build/bin/thalweg bench bcast --sizes 4M   # text\n```\n"), "")

    def test_objects(self):
        for block in ("make tset", "thalweg bnech", "thalweg bench bcast --szies 4M", "scripts/two", "frobnicate"):
            self.assertTrue(self.found(f"`scripts/one`\n```sh\n{block}\n```\n"), block)
        self.assertIn("does not exist", self.found("`scripts/gone`\n```sh\nmake test\n```\n"))
        self.assertIn("broken link", self.found("[a](gone.md)\n```sh\nmake test\n```\n"))
        self.assertIn("nothing checked", self.found("hello\n"))

    def test_tables(self):
        page = "`scripts/one`\n```sh\nmake test\n```\n```json\n{\"collective\": \"bcast\", \"rows\": []}\n```\n"
        self.assertIn("README.md:6: no tuning table", self.found(page))  # refused by the command
        self.assertIn("no tuning table: 'collective'", self.found(page.replace('"collective"', '"one"')))
        several = page.replace("{", '[{"collective": "barrier", "rows": []}, {').replace("}\n", "}]\n")
        self.assertEqual(self.found(several).count("README.md:6: no tuning table"), 2)  # asked of each collective
        self.assertIn("no tuning table: 'collective'", self.found(several.replace('"collective": "bcast"', '"one": 1')))
        self.assertIn("README.md:6: no tuning table", self.found(page.replace("{", "[7, {").replace("}\n", "}]\n")))

    def test_reasons(self):
        page = "`scripts/one`\n```sh\nmake test\n```\n"
        self.write("docs/guide/running.md", "| too small |\n")
        code = 'const char* text_of(Reason reason) {\n    return "too small (THALWEG_MIN)";\n    return "unknown";\n}\n'
        self.write("src/plan/statistics.cpp", code)
        self.assertEqual(self.found(page), "")
        self.write("src/plan/statistics.cpp", code.replace("too small", "too large"))
        self.assertIn("because of: too large (THALWEG_MIN)", self.found(page))
        self.write("src/plan/statistics.cpp", "")
        self.assertIn("no reasons found", self.found(page))

    def test_decisions(self):
        page = "`scripts/one`\n```sh\nmake test\n```\n"
        self.write("docs/decisions/0007-one.md", "# 7. One\n")
        self.assertEqual(self.found(page), "")
        self.write("docs/decisions/0007-two.md", "# 7. Two\n")
        self.assertIn("is that of 0007-one.md", self.found(page))
        self.write("docs/decisions/0007-two.md", "# 8. Two\n")
        self.assertIn("does not begin with # 7.", self.found(page))


class PreloadObjects(Tree):
    def library(self, name, source, *flags):
        code, library = self.write("a.c", source), self.root / name
        subprocess.run(["cc", "-shared", "-fPIC", code, "-o", library, "-Wl,--no-as-needed", *flags], check=True)
        return library

    def found(self, source, *flags):
        library = self.library("liba.so", source, *flags)
        return "\n".join(preload_objects.check_object(library, ["MPI_Bcast", "thalweg_*"], library))

    ours = "int MPI_Bcast(void) { return 0; } const char* thalweg_version(void) { return 0; }\n"

    def test_clean(self):
        self.assertEqual(self.found(self.ours), "")

    def test_leans_on_core_only(self):
        core = self.library("libcore.so", self.ours, "-Wl,-soname,libcore.so")
        source = "int MPI_Bcast(void); int MPI_Bcast_c(void) { return MPI_Bcast(); }\n"
        extra = self.library("libextra.so", source, core, f"-Wl,-rpath,{self.root}")
        self.assertEqual(preload_objects.check_object(extra, ["MPI_Bcast_c"], core), [])

    def test_objects(self):
        self.assertIn("exports stray", self.found(self.ours + "int stray;\n"))
        self.assertIn("strong unresolved symbol PMPI_Bcast",
                      self.found(self.ours + "int PMPI_Bcast(void); int thalweg_x(void) { return PMPI_Bcast(); }\n"))
        self.assertIn("NEEDED libstdc++.so.6", self.found(self.ours, "-l:libstdc++.so.6"))
        self.assertIn("/bin/true", self.found(self.ours + "#include <stdlib.h>\n"
                                              "__attribute__((constructor)) static void f(void) { _Exit(3); }\n"))
        self.assertIn("stripped", self.found(self.ours, "-s"))
        self.assertIn("dynamic initialiser _GLOBAL__sub_I_thalweg_x",
                      self.found(self.ours + "__attribute__((constructor)) static void _GLOBAL__sub_I_thalweg_x(void) {}\n"))

    def test_version_scripts(self):
        self.write("core.map", "# made\n{ global: MPI_Bcast; /* a; */ thalweg_version;\n local: *; };\n")
        self.write("more.map", "{ global: MPI_Bcast_c; local: *; };\n")
        self.assertEqual(preload_objects.listed_exports(self.root / "core.map"), ["MPI_Bcast", "thalweg_version"])
        found = preload_objects.check(self.root, self.root)
        self.assertEqual(len([line for line in found if "was not built" in line]), 6)
        self.assertEqual(len([line for line in found if "no object exports" in line]), 3)
        self.library("libthalweg-cellar.so", self.ours)
        self.assertIn("no version script names it", "\n".join(preload_objects.check(self.root, self.root)))


class OlderLibc(unittest.TestCase):
    ninja = ("build bin/thalweg: CXX_EXECUTABLE_LINKER__thalweg_Release a.o | liba.a\n  LINK_LIBRARIES = liba.a -lpthread\n"
             "  TARGET_FILE = bin/thalweg\n\nbuild lib/libx.so: C_SHARED_LIBRARY_LINKER__x_ b.o\n  LINK_LIBRARIES = -ldl\n\n")

    def test_link_lines(self):
        self.assertEqual(older_libc.linked_by(self.ninja), {"bin/thalweg": "liba.a -lpthread", "lib/libx.so": "-ldl"})

    def test_functions(self):
        old = {"dlsym": (2, 34), "pthread_create": (2, 34), "memcpy": (2, 14), "arc4random": (2, 36),
               "__isoc23_strtol": (2, 38)}
        self.assertEqual(older_libc.check_file("a", old, "-ldl liba.a -pthread"), [])
        found = "\n".join(older_libc.check_file("a", dict(old, close_range=(2, 34)), "liba.a"))
        self.assertIn("a calls close_range, which glibc has from 2.34 on", found)
        self.assertIn("calls dlsym and is not linked with -ldl", found)
        self.assertIn("calls pthread_create and is not linked with -lpthread", found)

    def test_numbers_of_calls(self):
        text = "syscall(SYS_futex); syscall(SYS_pidfd_open);\n"
        self.assertIn("no SYS_pidfd_open", "\n".join(older_libc.check_source("a.cpp", text)))
        number = "#ifndef SYS_pidfd_open\n#define SYS_pidfd_open 434\n#endif\n"
        self.assertEqual(older_libc.check_source("a.cpp", number + text), [])


class Hazards(Tree):
    def found(self, *lines, leads=True):
        self.write("README.md", "[hazards](docs/hazards.md)\n" if leads else "nothing\n")
        self.write("docs/conformance.md", "nothing\n")
        self.write("docs/hazards.md", "\n".join(["| hazard | what Thalweg does | tests |", "|---|---|---|", *lines, ""]))
        tests = {"plan.mpich5.threads.3": ["program"], "engine.all/each.one/(1, 2)": ["program"],
                 "plan.impi": ["sh", "-c", "echo 'skipped: impi is not installed'; exit 77"]}
        errors, found, absent = hazards.check(self.root, tests)
        return "\n".join(errors), found, absent

    def test_clean(self):
        self.assertEqual(self.found("| threads | nothing | `plan.*.threads.3`, `engine.all/each.*` |"), ("", 2, []))

    def test_names_that_are_none(self):
        self.assertIn("no test engine.nobody", self.found("| a | b | `plan.*.threads.3`, `engine.nobody` |")[0])
        self.assertIn("no test plan.mpich5.thread.3", self.found("| a | b | `plan.mpich5.thread.3` |")[0])

    def test_a_library_that_is_not_here(self):
        self.assertEqual(self.found("| a | b | `plan.impi.threads.3` |"), ("", 0, ["plan.impi.threads.3"]))

    def test_rows(self):
        self.assertIn("no test: a", self.found("| a | b | none |")[0])
        self.assertIn("3 cells", self.found("| a | `plan.mpich5.threads.3` |")[0])
        self.assertIn("no row", self.found()[0])

    def test_a_page_that_nobody_finds(self):
        self.assertIn("leads there", self.found("| a | b | `plan.*.threads.3` |", leads=False)[0])


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False).result.wasSuccessful())
