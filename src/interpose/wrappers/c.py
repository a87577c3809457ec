"""The wrapper of a call in C: one template per kind of call."""

from wrappers.call import AROUND, ask_back, lines, native_timed, wait_all, wait_some


COMPLETING = ("wait", "test", "wait_all", "wait_some", "start", "end")


def with_shortcut(call, head, kind=None, unasked=None):
    """The wrapper of `head` as a function apart, where it has a shortcut of its own with one of that kind beside it,
    and one of the kind `unasked` for what a trial leaves to it."""
    beside = f"static {kind} shortcut_{call.name};\n" if kind else ""
    beside += f"static {unasked} unasked_{call.name};\n" if unasked else ""
    return head.replace(f"\nint wrap_{call.name}(", f"{beside}\nstatic int THALWEG_APART\nask_{call.name}(")


def pass_unasked(call):
    """A function between both, for exchanges that a trial leaves to the wrapper, which counts none that is refused."""
    name, arguments = call.name, call.c_arguments()
    return [
        "}",
        "",
        "static int THALWEG_APART",
        f"pass_{name}({call.c_parameters()}) {{",
        "    void* holder = NULL;",
        f"    void* native = thalweg_native_of_unasked(&shortcut_{name}, comm, &holder);",
        f"    if (native == NULL) return ask_{name}({arguments});",
        f"    int error = ((Next_{name}*)native)({arguments});",
        "    if (error == 0) return 0;",
        "    void* trial = thalweg_trial_of(holder, comm);",
        "    if (trial == NULL) return error;",
        *ask_back(call),
        "    return error;",
    ]


def way_past(call, natives, apart=(), other=None):
    """The end of that function, and the wrapper: the way of a call that nobody wants to see has no frame of its own and
    is as short as can be. It goes by the first of `natives`; where there is none, by the first of those that are looked
    for in a function between both, or by `other`, which stands there already."""
    name, arguments = call.name, call.c_arguments()

    def go_by(natives, other):
        first, *more = natives
        return [
            f"    void* native = {first};",
            *(f"    if (native == NULL) native = {one};" for one in more),
            f"    if (native != NULL) return ((Next_{name}*)native)({arguments});",
            f"    return {other}_{name}({arguments});",
        ]

    between = [
        "}",
        "",
        "static int THALWEG_APART THALWEG_IN_A_LINE",
        f"pass_{name}({call.c_parameters()}) {{",
        *go_by(apart, "ask"),
    ] if apart else []
    return [
        *between,
        "}",
        "",
        f"int THALWEG_IN_A_LINE wrap_{name}({call.c_parameters()}) {{",
        *go_by(natives, other or ("pass" if apart else "ask")),
    ]


def remember_unasked(call):
    """Where the answer is that nobody need ask for the next calls that are described as this one is."""
    return [
        "    if (answer == 2 && trial != NULL) {",
        f"        thalweg_remember_broadcast(&unasked_{call.name}, (void*)next, trial, count, datatype);",
        f"        return next({call.c_arguments()});",
        "    }",
    ]


def c_wrapper(call):
    name, arguments = call.name, call.c_arguments()
    out = lines(
        "",
        f"typedef int Next_{name}({call.c_parameters()});",
        f"Next_{name} wrap_{name} THALWEG_WRAPS({name});",
        f"static ThalwegNext next_{name} = {{\"{name}\", (void*)wrap_{name}, NULL}};",
        "",
        f"int wrap_{name}({call.c_parameters()}) {{",
    )
    get_next = [
        f"    Next_{name}* next = (Next_{name}*)thalweg_next(&next_{name});",
        "    if (next == NULL) return thalweg_missing_error();",
    ]
    # Of those about requests the frequent ones.
    passes = call.template in COMPLETING and call.library == "core"
    past = []
    if passes:
        out = with_shortcut(call, out)
        get_next.append(f"    thalweg_remember_completion(thalweg_completion_{name}, (void*)next);")
        past = way_past(call, [f"thalweg_native_of_completion(thalweg_completion_{name})"])
    if call.template == "request" and not call.persistent():
        out = with_shortcut(call, out, "ThalwegRequestShortcut")
        out += lines(
            "    int error;",
            f"    int answer = thalweg_take_{call.entry()}({arguments}, &error);",
            "    if (answer == 1) return error;",
            *get_next,
            f"    if (answer >= thalweg_handed_on) thalweg_remember_request(&shortcut_{name}, (void*)next, answer);",
            f"    return next({arguments});",
            *way_past(call, [f"thalweg_native_of_request(&shortcut_{name})"]),
        )
    elif call.template == "end":
        out += lines(
            *get_next,
            "    int error;",
            f"    if (thalweg_take_{call.entry()}({arguments}, &error)) return error;",
            f"    return next({arguments});",
            *past,
        )
    elif call.template == "request":
        out += lines(
            "    int error;",
            f"    if (thalweg_take_{call.entry()}({arguments}, &error)) return error;",
            *get_next,
            f"    return next({arguments});",
        )
    elif call.template == "blocking":
        out = with_shortcut(call, out, "ThalwegExchangeShortcut")
        out += lines(
            "    int error;",
            "    void* trial = NULL;",
            f"    int answer = thalweg_take_{call.entry()}({arguments}, &error, &trial);",
            "    if (answer == 1) return error;",
            *get_next,
            f"    if (answer == 2) trial = thalweg_remember_exchange(&shortcut_{name}, (void*)next, trial);",
            *native_timed(call),
            *pass_unasked(call),
            *way_past(call, [f"thalweg_native_of_exchange(&shortcut_{name})"], other="pass"),
        )
    elif call.template == "collective":
        # Where long ones are looked at, short ones take another way past, if one argument tells them.
        message = {"MPI_Allgather": "recvcount, recvtype"}.get(call.entry(), "count, datatype")
        tells = "gatherv" not in name
        # With more arguments than registers the way past would have a frame.
        at_once = tells and len(call.parameters) <= 6
        short = f"(&shortcut_{name}, {message})"
        remembered = "thalweg_of_" + call.entry().removesuffix("_c").removeprefix("MPI_").lower()
        left = call.entry() == "MPI_Bcast"  # those that a trial leaves to the wrapper
        out = with_shortcut(call, out, "ThalwegShortcut", "ThalwegBroadcastShortcut" if left else None)
        natives = [f"thalweg_native_of(&shortcut_{name})"]
        if at_once:
            natives.append(f"thalweg_native_of_plainly_short{short}")
        apart = [
            f"thalweg_native_of_short{short}",
            f"thalweg_native_of_broadcast(&unasked_{name}, {arguments})",
        ] if left else []
        asks_itself = tells and not apart
        out += lines(
            f"    Next_{name}* direct = (Next_{name}*)thalweg_native_of_short{short};" if asks_itself else None,
            f"    if (direct != NULL) return direct({arguments});" if asks_itself else None,
            "    int error;",
            "    void* trial = NULL;",
            f"    int answer = thalweg_take_{call.entry()}({arguments}, &error, &trial);",
            "    if (answer == 1) return error;",
            *get_next,
            *(remember_unasked(call) if left else []),
            f"    if (answer == 2) thalweg_remember(&shortcut_{name}, (void*)next, {remembered});",
            *native_timed(call),
            *way_past(call, natives, apart),
        )
    elif call.template in ("wait", "test") and call.completes():
        lends, lent, returns = call.lend_statuses(False, arguments)
        out += lines(
            *get_next,
            "    ThalwegFailed* failed = NULL;",
            f"    {call.ask(False)}",
            *lends,
            f"    int error = next({lent});",
            *returns,
            f"    return {call.tell('error', False)};",
            *past,
        )
    elif call.template == "test":
        count, requests = call.requests(False)
        # MPI_Request_get_status has its request by value.
        one = ("ThalwegHandle", "request") in call.parameters
        out += lines(
            *get_next,
            f"    thalweg_before_test_of_one({requests});" if one else f"    thalweg_before_test({count}, {requests});",
            f"    return next({arguments});",
            *past,
        )
    elif call.template == "wait_all":
        out += lines(*get_next, *wait_all(call, False), *past)
    elif call.template == "wait_some":
        out += lines(
            *get_next,
            *wait_some(call, False),
            f"    int error = next({arguments});",
            f"    return {call.tell('error', False)};",
            *past,
        )
    elif call.template == "start":
        count, requests = call.requests(False)
        out += lines(
            *get_next,
            f"    int error = next({arguments});",
            f"    if (error == 0) thalweg_after_start({count}, {requests});",
            "    return error;",
            *past,
        )
    elif call.template == "meeting":
        out = with_shortcut(call, out, "ThalwegMeetingShortcut")
        reduces = call.entry() == "MPI_Reduce"
        met = "meeting_of_reduce(sendbuf, recvbuf, count, datatype, root, comm" if reduces else "meeting(comm"
        out += lines(
            "    int error;",
            f"    int answer = thalweg_{met}, &error);",
            "    if (answer == 1) return error;",
            *get_next,
            f"    if (answer == 2) thalweg_remember_meeting(&shortcut_{name}, (void*)next);",
            f"    return next({arguments});",
            *way_past(call, [f"thalweg_native_of_meeting(&shortcut_{name})"]),
        )
    elif call.template == "creation":
        parent = call.parent()
        of_group, group = ("_of_group", f"{call.group()}, ") if call.group() else ("", "")
        out += lines(
            *get_next,
            "    int error;" if parent else None,
            f"    if (thalweg_before_creation({parent}, &error)) return error;" if parent else None,
            f"    {'' if parent else 'int '}error = next({arguments});",
            f"    thalweg_after_creation{of_group}({parent}, error, {group}{call.new_communicator()});"
            if parent
            else f"    if (error == 0) thalweg_after_creation_in_group(comm, {call.new_communicator()});",
            "    return error;",
        )
    elif call.template == "descent":
        out += lines(
            *get_next,
            f"    int error = next({arguments});",
            f"    if (error == 0) thalweg_after_descent({call.parent()}, {call.new_communicator()});",
            "    return error;",
        )
    elif call.template == "session_comm":
        out += lines(
            *get_next,
            "    int begun_late = thalweg_before_session_comm();",
            f"    int error = next({arguments});",
            f"    if (error == 0) thalweg_after_session_comm(begun_late, {call.new_communicator()});",
            "    return error;",
        )
    elif call.template == "finalize":
        out += lines(*get_next, "    thalweg_before_finalize();", f"    return next({arguments});")
    elif call.template == "free":
        out += lines(
            *get_next,
            "    int error;",
            f"    if (thalweg_before_MPI_Comm_free({arguments}, &error)) return error;",
            f"    error = next({arguments});",
            "    thalweg_after_MPI_Comm_free();",
            "    return error;",
        )
    else:
        before, after = AROUND[call.template]
        out += lines(
            *get_next,
            f"    if (!thalweg_enter(__builtin_frame_address(0))) return next({arguments});",
            f"    {before}" if before else None,
            f"    int error = next({arguments});",
            "    thalweg_leave();",
            f"    if (error == 0) {after}" if after else None,
            "    return error;",
        )
    return out + "}\n"
