#!/bin/sh
# open_mpi.sh LAUNCHER ARGUMENT…
#
# Open MPI's launchers beside others of their kind. Those of Open MPI 4 share one folder of sessions per user, which the
# one that ends removes, also while another makes its own in there ("mkdir …/ompi.HOST.UID/pid.N: No such file or
# directory"): each gets a folder to itself, which goes when it ends. Open MPI 5's says now and then that its listener
# thread failed to start, and ends before anything of the job has run: then it is tried again. Signals go to the
# launcher, its exit status and what it says come back.
OMPI_MCA_orte_tmpdir_base=$(mktemp -d "${TMPDIR:-/tmp}/ompi.XXXXXX") || exit
export OMPI_MCA_orte_tmpdir_base
said=$OMPI_MCA_orte_tmpdir_base/said
told=
launcher=
trap 'told=yes; [ -z "$launcher" ] || kill -TERM "$launcher"' TERM INT
for attempt in 1 2 3; do
    launcher=
    "$@" 2>"$said" &
    launcher=$!
    [ -z "$told" ] || kill -TERM "$launcher" 2>/dev/null # told before it was known whom to tell
    wait "$launcher"
    status=$?
    if [ -n "$told" ]; then # that ended the first wait
        wait "$launcher"
        second=$?
        [ "$second" -eq 127 ] || status=$second
    fi
    cat "$said" >&2
    [ -z "$told" ] && grep -q 'listener thread failed to start' "$said" || break
done
rm -rf "$OMPI_MCA_orte_tmpdir_base"
exit "$status"
