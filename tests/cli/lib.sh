# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# lib.sh - what the script tests of single commands share: an empty directory, and an exit code with a text. Sourced.
cd "$NAMI_SCRATCH" || exit 99
failed=0

# expect STATUS TEXT ARGUMENT...: nami exits with STATUS and says TEXT somewhere
expect() {
    status=$1 text=$2
    shift 2
    "$NAMI_PROGRAM" "$@" >out 2>&1
    got=$?
    if [ $got != "$status" ] || ! grep -qF -- "$text" out; then
        echo "nami $*: status $got, expected $status with '$text':"
        cat out
        failed=1
    fi
}
