#!/bin/sh
# SPDX-License-Identifier: MIT
# test_help.sh - help and version without a launcher; unknown commands and flags; manual pages without faults.
failed=0
cd "$NAMI_SCRATCH" || exit 99

# expect CODE WORD ARGUMENT...: exit code, and a word in what is said
expect() {
    code=$1 word=$2
    shift 2
    "$NAMI_PROGRAM" "$@" >out 2>&1 </dev/null
    got=$?
    if [ $got = "$code" ] && grep -q -- "$word" out; then
        echo "ok   nami $*"
        return
    fi
    echo "FAIL nami $*: exit $got, expected $code and '$word' in:"
    sed 's/^/     /' out
    failed=1
}

expect 0 '^nami [0-9]' --version
built=$(sed -n 's/.*NAMI_SOURCE_ID "\(.*\)"/\1/p' "$NAMI_BUILD/source-id.h")
expect 0 "^nami [0-9.]* ($built)$" --version

# identity TEXT: what scripts/source-id says of the directory `tree`
identity() {
    said=$("$NAMI_SOURCE/scripts/source-id" tree 2>&1)
    # shellcheck disable=SC2254 # a pattern
    case $said in
    $1) echo "ok   the source is $said" ;;
    *) echo "FAIL the source is $said, expected $1"; failed=1 ;;
    esac
}
if command -v git >/dev/null; then
    mkdir tree
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
    echo one >tree/file
    (cd tree && git init -q && git add file && git -c user.name=x -c user.email=x@y commit -qm one) || failed=1
    commit=$(git -C tree rev-parse --short HEAD)
    identity "$commit"
    echo two >tree/file
    identity "$commit-dirty"
fi
mkdir -p tree
echo 1.2.3 >tree/source-id
identity 1.2.3
expect 0 '^usage: nami COMMAND' --help
expect 2 '^usage: nami COMMAND'
expect 2 "did you mean 'plan'" plam
expect 2 "unknown command 'zzzzzzzz'" zzzzzzzz
commands=$("$NAMI_PROGRAM" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
for command in $commands; do
    expect 0 "^usage: nami $command" "$command" --help
done
for command in run plan profile compare generate import baseline simulate verify info; do
    echo "$commands" | grep -qx $command || { echo "FAIL nami --help does not list $command"; failed=1; }
    grep -q "^\.It Cm $command\$\|^\.Cm $command\$\|^\.Cm simulate | verify\$" "$NAMI_SOURCE/docs/man/nami.1" ||
        { echo "FAIL nami(1) does not name $command"; failed=1; }
done
expect 2 "did you mean '--tokens'" generate --token 3 x
expect 2 "needs a value" generate x --tokens
expect 2 "expected a whole number" generate --tokens=many x
expect 2 "usage: nami generate" generate
expect 2 "at most 1 argument" generate a b
expect 6 "no-such-file" generate no-such-file

if command -v mandoc >/dev/null; then
    "$NAMI_PROGRAM" manual >nami-deck.5
    for page in nami-deck.5 "$NAMI_SOURCE/docs/man/nami.1"; do
        mandoc -T lint -W warning "$page" || { echo "FAIL $page"; failed=1; }
    done
fi
exit $failed
