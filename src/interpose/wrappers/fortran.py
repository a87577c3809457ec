"""The wrapper of a call in Fortran: one body, and a name for every spelling that is Fortran's alone."""

from wrappers.call import AROUND, lines, wait_all, wait_some


# Templates whose C wrapper would ask again where the native binding calls the C function.
ASKED = ("collective", "request", "blocking")


def fortran_wrapper(call):
    """One static body per call; the exported names only say which definition comes next."""
    low = call.name.lower()
    names, last = call.fortran, call.fortran[-1]
    # Compilers pass the lengths of texts by value, behind everything else.
    lengths = [f"{n}_length" for n in names if n in call.texts]
    parameters = ", ".join([("void* " if n in call.buffers else "int* ") + n for n in names] + [f"size_t {n}" for n in lengths])
    arguments = ", ".join(names + lengths)
    becomes_test = call.template in ("wait_all", "wait_some")
    asked = call.template in ASKED
    more = "ThalwegNext* test_record, " if becomes_test else "int calls_c, " if asked else ""
    out = lines(
        "",
        f"#define PARAMETERS_{low} {parameters}",
        f"#define ARGUMENTS_{low} {arguments}",
        f"typedef void Next_{low}(PARAMETERS_{low});",
        "",
        f"static void body_{low}(ThalwegNext* record, {more}PARAMETERS_{low}) {{",
    )
    get_next = [
        f"    Next_{low}* next = (Next_{low}*)thalweg_next(record);",
        "    if (next == NULL) {",
        f"        if ({last} != NULL) *{last} = thalweg_missing_error();",
        "        return;",
        "    }",
    ]
    own_error = [
        "    int own_error = 0; /* mpi_f08 may leave ierror out */",
        f"    if ({last} == NULL) {last} = &own_error;",
    ]

    def answered(ask):
        """Where the native library is not called at all."""
        return [
            "    int error;",
            f"    if ({ask}) {{",
            f"        if ({last} != NULL) *{last} = error;",
            "        return;",
            "    }",
        ]

    if asked or call.template == "end":
        timed, blocking = call.timed(), call.template == "blocking"
        # What C has as a pointer stays one: buffers, arrays, results.
        pointers = {name for kind, name in call.parameters if kind.endswith("*")}
        passed = ", ".join(n if n in pointers else "*" + n for n in names[:-1])
        refused = [
            f"    if (!lives || *{last} == 0) return;",
            f"    error = *{last};",
            f"    thalweg_take_{low}({passed}, &error, &trial);",
        ]
        leaves = "!(calls_c && thalweg_leaves_requests()) && " if call.template == "request" and not call.persistent() else ""
        out += lines(
            "    void* trial = NULL;" if timed else None,
            *answered(f"{leaves}thalweg_take_{low}({passed}, &error{', &trial' if timed else ''})"),
            *get_next,
            *(own_error if blocking else []),
            "    if (calls_c) thalweg_pass_on(__builtin_frame_address(0));" if asked else None,
            "    if (trial != NULL) thalweg_native_begins(trial);" if timed else None,
            f"    next({arguments});",
            "    if (trial != NULL) thalweg_native_ended(trial);" if timed and not blocking else None,
            "    int lives = trial != NULL && thalweg_native_ended(trial);" if blocking else None,
            "    if (calls_c) thalweg_passed_on();" if asked else None,
            *(refused if blocking else []),
        )
    elif call.template in ("wait", "test") and call.completes():
        lends, lent, returns = call.lend_statuses(True, arguments)
        out += lines(
            *get_next,
            *own_error,
            "    ThalwegFailed* failed = NULL;",
            f"    {call.ask(True)}",
            *lends,
            f"    next({lent});",
            *returns,
            f"    *{last} = {call.tell('*' + last, True)};",
        )
    elif call.template == "test":
        count, requests = call.requests(True)
        out += lines(*get_next, f"    thalweg_before_test_fortran({count}, {requests});", f"    next({arguments});")
    elif becomes_test:
        out += lines(*get_next, *own_error)
        if call.template == "wait_all":
            out += lines(*wait_all(call, True))
        else:
            out += lines(
                *wait_some(call, True),
                f"    next({arguments});",
                f"    *{last} = {call.tell('*' + last, True)};",
            )
    elif call.template == "start":
        count, requests = call.requests(True)
        out += lines(
            *get_next,
            *own_error,
            "    thalweg_before_start_fortran();",
            f"    next({arguments});",
            f"    if (*{last} == 0) thalweg_after_start_fortran({count}, {requests});",
        )
    elif call.template == "meeting":
        reduces = call.entry() == "MPI_Reduce"
        met = "of_reduce_fortran(sendbuf, recvbuf, *count, *datatype, *root, *comm" if reduces else "fortran(*comm"
        out += lines(*answered(f"thalweg_meeting_{met}, &error)"), *get_next, f"    next({arguments});")
    elif call.template == "creation":
        made = call.new_communicator()
        of_group, group = ("_of_group", f"*{call.group()}, ") if call.group() else ("", "")
        out += lines(
            *get_next,
            *([] if call.parent() is None else answered(f"thalweg_before_creation_fortran(*{names[0]}, &error)")),
            *own_error,
            f"    next({arguments});",
            f"    if (*{last} == 0) thalweg_after_creation_in_group_fortran(*comm, *{made});"
            if call.parent() is None
            else f"    thalweg_after_creation{of_group}_fortran(*{names[0]}, *{last}, {group}*{made});",
        )
    elif call.template == "descent":
        out += lines(
            *get_next,
            *own_error,
            f"    next({arguments});",
            f"    if (*{last} == 0) thalweg_after_descent_fortran(*{call.parent()}, *{call.new_communicator()});",
        )
    elif call.template == "session_comm":
        out += lines(
            *get_next,
            *own_error,
            "    int begun_late = thalweg_before_session_comm();",
            f"    next({arguments});",
            f"    if (*{last} == 0) thalweg_after_session_comm_fortran(begun_late, *{call.new_communicator()});",
        )
    elif call.template == "finalize":
        out += lines(*get_next, "    thalweg_before_finalize();", f"    next({arguments});")
    elif call.template == "free":
        out += lines(
            *get_next,
            *answered(f"thalweg_before_mpi_comm_free(*{names[0]}, &error)"),
            f"    next({arguments});",
            "    thalweg_after_MPI_Comm_free();",
        )
    else:
        before, after = AROUND[call.template]
        out += lines(
            *get_next,
            *own_error,
            "    if (!thalweg_enter(__builtin_frame_address(0))) {",
            f"        next({arguments});",
            "        return;",
            "    }",
            f"    {before}" if before else None,
            f"    next({arguments});",
            "    thalweg_leave();",
            f"    if (*{last} == 0) {after}" if after else None,
        )
    out += "}\n\n"
    # Where mpi_f08 passes a descriptor of a buffer, the MPICH family's procedure (mpi_bcast_f08ts_) reaches the C
    # function, which is where the call is taken; Open MPI's passes the address to a symbol of its own.
    # Those of the standard ABI have handles as wide as the library chose, eight bytes in Intel MPI's: they are left to
    # the library, and a program that starts MPI by them is passed by.
    of_f08 = [s for s in fortran_symbols(call) if "f08" in s]
    for symbol in fortran_symbols(call):
        if symbol == of_f08[0]:
            out += "#if defined(OPEN_MPI)\n" if call.buffers else "#if !defined(MPI_ABI_VERSION)\n"
        if becomes_test:
            out += lines(f"THALWEG_FORTRAN_PAIR({symbol}, {low}, {twin(symbol)})")
        elif asked:
            calls_c = "0" if symbol in of_f08 else "THALWEG_BINDING_CALLS_C"
            out += lines(f"THALWEG_FORTRAN_ASKED({symbol}, {low}, {calls_c})")
        else:
            out += lines(f"THALWEG_FORTRAN_NAME({symbol}, {low})")
    return out + "#endif\n"


def twin(symbol):
    """The test that a waiting call becomes, in the same spelling."""
    return symbol.replace("waitall", "test").replace("wait", "test")


def fortran_symbols(call):
    """Not the names without an underscore: a library in C may have a mpi_barrier of its own, with other arguments, and
    whatever is preloaded comes before it. Who calls MPI by such names is found in unseen_calls.cpp."""
    low = call.name.lower()
    return [low + "_", low + "__", low + "_f08", low + "_f08_"]
