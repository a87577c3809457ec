#!/bin/sh
# again.sh LAUNCHER ARGUMENT…
#
# Open MPI 5's launcher says now and then, mostly where others start beside it, that its listener thread failed to start,
# and ends before anything of the job has run: then it is tried again. Signals go to the launcher, its exit status and
# what it says come back.
said=$(mktemp)
told=
trap 'told=yes; kill -TERM "$launcher"' TERM INT
for attempt in 1 2 3; do
    "$@" 2>"$said" &
    launcher=$!
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
rm -f "$said"
exit "$status"
