# shellcheck shell=sh disable=SC2034
# What every script needs: words to its user, logs, an end. Plain POSIX sh, no `local`: the variables of a function begin with its
# initials. The caller has set -eu and ROOT, the checkout.

BUILD=$ROOT/build
PYTHON=/usr/bin/python3 # Debian's own: it has the packages that scripts/lib/packages.sh lists; another python3 in PATH may not

say() {
    printf '%s\n' "$*" >&2
}

die() {
    printf 'receiptd: %s\n' "$*" >&2
    exit 1
}

# quietly LOG COMMAND…: the output goes to build/log/LOG, and to the terminal when the command fails.
quietly() {
    qu_log=$BUILD/log/$1
    shift
    mkdir -p "$BUILD/log"
    if "$@" > "$qu_log" 2>&1 < /dev/null; then
        return 0
    else
        qu_status=$?
    fi
    tail -n 60 "$qu_log" >&2
    say "receiptd: failed with status $qu_status: $* (whole output: $qu_log)"
    return "$qu_status"
}

# attempts N COMMAND…: tries the command up to N times, since registries fail now and then.
attempts() {
    at_left=$1
    shift
    until "$@"; do
        at_left=$((at_left - 1))
        [ "$at_left" -gt 0 ] || return 1
        say "once more: $*"
        sleep 3
    done
}

is_root() {
    [ "$(id -u)" = 0 ]
}

as_root() {
    if is_root; then
        "$@"
    else
        sudo "$@"
    fi
}

# on_exit COMMAND…: runs the command at the end, also after Ctrl-C and a kill; the exit status stays.
on_exit() {
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    # shellcheck disable=SC2064 # now is right
    trap "$*" EXIT
}
