"""An intercepted call as the MPI standard has it, and what its C and its Fortran wrapper share."""

import re

import pympistandard as standard


# Calls that complete requests, and which of those that they are given.
COMPLETES = {f"MPI_{verb}{kind if kind != 'one' else ''}": kind
             for verb in ("Wait", "Test") for kind in ("one", "all", "any", "some")}


class Call:
    def __init__(self, name, template, library):
        self.name, self.template, self.library = name, template, library
        big = name.endswith("_c")
        procedure = standard.PROCEDURES[(name[:-2] if big else name).lower()]
        express = procedure.express.embiggen if big else procedure.express
        prototype = re.fullmatch(r"int (\w+)\((.*)\)", str(express.iso_c))
        assert prototype and prototype[1] == name, express.iso_c
        text = prototype[2]
        self.parameters = [self.passed(p) for p in text.split(", ")] if text not in ("", "void") else []
        # mpi_f08 is the only Fortran binding with large counts, and it reaches the C function.
        self.fortran = None
        if not big:
            head = str(procedure.express.f90).splitlines()[0]
            self.fortran = [a.strip().lower() for a in re.search(r"\((.*)\)", head)[1].split(",")]
        # Where mpi_f08 passes a descriptor of a buffer, the MPICH family's procedure (mpi_bcast_f08ts_) reaches the C
        # function, which is where the call is taken; Open MPI's passes the address to a symbol of its own.
        self.arrays = [p for p in text.split(", ") if p.endswith("[]")]
        self.texts = {p.split()[-1] for p in text.split(", ") if p.startswith("const char* ")}
        self.buffers = {p.split()[-1] for p in text.split(", ") if p.split()[:-1][-1:] == ["void*"]}

    @staticmethod
    def passed(parameter):
        """(type, name) as any family passes the argument: see ThalwegHandle in runtime.h."""
        kind, name = parameter.rsplit(" ", 1)
        if name.endswith("[]"):
            return "const void*" if kind.startswith("const ") else "void*", name[:-2]
        if kind == "MPI_Count":
            return "ThalwegCount", name
        if kind.startswith("MPI_"):
            return "void*" if kind.endswith("*") else "ThalwegHandle", name
        return kind, name

    def c_parameters(self):
        return ", ".join(f"{kind} {name}" for kind, name in self.parameters) or "void"

    def c_arguments(self):
        return ", ".join(name for _, name in self.parameters)

    def requests(self, fortran):
        """The requests that the call is about: how many, and where they are."""
        count = next((name for _, name in self.parameters if name in ("count", "incount")), None)
        if count is None:
            return "1", "request"
        return ("*" if fortran else "") + count, "array_of_requests"

    def parent(self):
        """The communicator whose ranks all take part in making one; None where only those of a group do."""
        return None if self.name == "MPI_Comm_create_group" else self.parameters[0][1]

    def group(self):
        """The group of whose ranks all of the parent make one; None where there is none, or only its ranks do."""
        return "group" if self.name == "MPI_Comm_create" else None

    def new_communicator(self):
        return next(name for kind, name in reversed(self.parameters) if kind == "void*")

    def persistent(self):
        return "_init" in self.name

    def completes(self):
        """Whether it completes requests, of which it tells what has failed."""
        return self.name in COMPLETES

    def ask(self, fortran):
        """What is asked in front of the native call, where it waits for one request or tests some that it completes."""
        suffix = "_fortran" if fortran else ""
        count, requests = self.requests(fortran)
        if self.name == "MPI_Wait":
            return f"thalweg_before_wait{suffix}({requests}, &failed);"
        return f"thalweg_before_end{suffix}({count}, {requests}, &failed);"

    def lend_statuses(self, fortran, arguments):
        """Lines in front of the native call, its arguments and lines behind it: MPI_Testall has statuses of its own where
        the program wants none (runtime.h)."""
        if self.name != "MPI_Testall":
            return [], arguments, []
        suffix = "_fortran" if fortran else ""
        count, _ = self.requests(fortran)
        kind = "int" if fortran else "void"
        return (
            [f"    {kind}* own = thalweg_lend_statuses{suffix}({count}, array_of_statuses);"],
            arguments.replace("array_of_statuses", "own != NULL ? own : array_of_statuses"),
            ["    thalweg_take_statuses_back(own);"],
        )

    def tell(self, error, fortran, flag=None):
        """What the call returns behind the native one, which has returned `error`."""
        count, requests = self.requests(fortran)
        flag = flag or ("flag" if "Test" in self.name else "NULL")
        kind = COMPLETES[self.name]
        form = "record->name, " if fortran and kind in ("any", "some") else ""  # by which indices are counted
        arguments = {
            "one": f"{flag}, {requests}",
            "all": f"{flag}, {count}, {requests}, array_of_statuses",
            "any": f"{flag}, index, {requests}",
            "some": f"outcount, array_of_indices, {requests}, array_of_statuses",
        }[kind]
        return f"thalweg_after_{kind}{'_fortran' if fortran else ''}({error}, {form}{arguments}, failed)"

    def timed(self):
        """Whether native calls may be timed against ours, in turns."""
        return self.template in ("blocking", "collective")

    def entry(self):
        """The name of the function of runtime.h that may take the call. Arrays of large counts have one of their own."""
        large_arrays = self.name.endswith("_c") and self.arrays
        return self.name if large_arrays or not self.name.endswith("_c") else self.name[:-2]


AROUND = {
    "init": ("thalweg_before_init();", "thalweg_after_init();"),
    "session_open": ("thalweg_before_init();", "thalweg_after_session_init();"),
    "session_close": ("thalweg_before_session_finalize();", ""),
}


def folded(text):
    """A line of at most 110 columns, or several: broken behind commas."""
    if len(text) <= 110:
        return text
    end = " \\" if text.startswith("#define") else ""
    indent = " " * (len(text) - len(text.lstrip()) + 8)
    if ", " not in text and " = " in text:
        return text.replace(" = ", f" =\n{indent}", 1)
    if ", " not in text and " THALWEG_WRAPS(" in text:
        return text.replace(" THALWEG_WRAPS(", f"\n{indent}THALWEG_WRAPS(", 1)
    out, line = [], ""
    for piece in re.split(r"(?<=,) ", text):
        if len(line) + 1 + len(piece) + len(end) > 110:
            out.append(line + end)
            line = indent + piece
        else:
            line += (" " if line else "") + piece
    return "\n".join(out + [line])


def lines(*texts):
    return "".join(folded(text) + "\n" for text in texts if text is not None)


def native_timed(call):
    """The end of a C wrapper whose native call is timed where that is wanted."""
    arguments = call.c_arguments()
    return [
        f"    if (trial == NULL) return next({arguments});",
        "    thalweg_native_begins(trial);",
        f"    error = next({arguments});",
        *exchange_ended(call),
        "    return error;",
    ]


def exchange_ended(call):
    """Behind that call, of which a trial may have counted one that the library refuses."""
    if call.template != "blocking":
        return ["    thalweg_native_ended(trial);"]
    return ["    if (!thalweg_native_ended(trial) || error == 0) return error;", *ask_back(call)]


def ask_back(call):
    return [
        "    int returned = error;",
        f"    thalweg_take_{call.entry()}({call.c_arguments()}, &returned, &trial);",
    ]


def wait_some(call, fortran):
    """While some of ours are pending and nothing is done, the native wait would not see them complete: the test of the
    same requests is asked again and again instead. Not where the program has no place for a count: that is an error,
    which the native call tells."""
    test = call.name.replace("Wait", "Test")
    suffix = "_fortran" if fortran else ""
    count, requests = call.requests(fortran)
    some = call.name == "MPI_Waitsome"
    parameters = call.fortran if fortran else [name for _, name in call.parameters]
    arguments = ", ".join(parameters)
    if not some:
        arguments = arguments.replace("index, ", "index, &flag, ")
    done = "*outcount != 0" if some else "flag"
    given = "outcount != NULL && " if some and not fortran else ""
    test_name = test.lower() if fortran else test
    out = [
        "    ThalwegFailed* failed = NULL;",
        f"    if ({given}thalweg_would_wait{suffix}({count}, {requests}, &failed)) {{",
        f"        Next_{test_name}* test = (Next_{test_name}*)thalweg_next("
        + ("test_record" if fortran else f"&next_{test}")
        + ");",
        "        uint64_t began = 0;",
        "        int flag = 0;" if not some else None,
        "        while (test != NULL) {",
    ]
    if fortran:
        out += [
            f"            test({arguments});",
            f"            if ({done} || *{call.fortran[-1]} != 0) {{",
            f"                *{call.fortran[-1]} = {call.tell('*' + call.fortran[-1], True, '&flag')};",
            "                return;",
            "            }",
        ]
    else:
        out += [
            f"            int error = test({arguments});",
            f"            if ({done} || error != 0) return {call.tell('error', False, '&flag')};",
        ]
    return [line for line in out if line is not None] + [
        "            began = thalweg_pause(began);",
        f"            thalweg_before_end{suffix}({count}, {requests}, &failed);",
        "        }",
        "    }",
    ]


def wait_all(call, fortran):
    """While some of ours are pending, others may be waiting for a test of their own: they are tested now and then."""
    suffix = "_fortran" if fortran else ""
    count, requests = call.requests(fortran)
    record = "test_record" if fortran else "&next_MPI_Test"
    arguments = ", ".join(call.fortran if fortran else [name for _, name in call.parameters])
    out = [
        "    ThalwegFailed* failed = NULL;",
        "    ThalwegEarly* early = NULL;",
        f"    for (int again = 0; !thalweg_before_waitall{suffix}({count}, {requests}, again, &failed); again = 1)",
        f"        thalweg_test_others{suffix}({count}, {requests}, thalweg_next({record}), &early);",
    ]
    if fortran:
        error = call.fortran[-1]
        return out + [
            f"    next({arguments});",
            f"    if (early != NULL) *{error} = thalweg_add_early_fortran(*{error}, {count}, array_of_statuses, early);",
            f"    *{error} = {call.tell('*' + error, True)};",
        ]
    return out + [
        f"    int error = next({arguments});",
        f"    if (early != NULL) error = thalweg_add_early(error, {count}, array_of_statuses, early);",
        f"    return {call.tell('error', False)};",
    ]
