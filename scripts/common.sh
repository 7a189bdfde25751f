# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# common.sh - what ./quickstart and ./check share: packages, configure, messages. Sourced from the top directory.

say() {
    printf '%s\n' "== $*"
}

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

jobs=$(nproc 2>/dev/null || echo 2)

# Run a command as root.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "root is needed for: $*"
    fi
}

# missing_packages GROUP...: those of scripts/packages that are not installed
missing_packages() {
    for group in "$@"; do
        awk -v group="$group" '$1 == group { print $2 }' scripts/packages
    done | while read -r package; do
        case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
        *" installed") ;;
        *) printf '%s ' "$package" ;;
        esac
    done
}

# install_packages GROUP...: nothing is asked; where there is no apt-get, configure will say what is missing
install_packages() {
    if ! command -v apt-get >/dev/null; then
        say "no apt-get here: install what scripts/packages lists by other means"
        return 0
    fi
    missing=$(missing_packages "$@")
    [ -z "$missing" ] && return 0
    say "installing $missing"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
        >install.log 2>&1 || {
        tail -n 20 install.log >&2
        rm -f install.log
        fail "apt-get could not install: $missing"
    }
    rm -f install.log
}

# prepare_configure: write ./configure when it is missing or older than its sources
prepare_configure() {
    if ! [ -x configure ] || [ -n "$(find configure.ac Makefile.am m4 src kernels tests \
        \( -name '*.ac' -o -name '*.am' -o -name '*.m4' -o -name '*.inc' \) -newer configure | head -n 1)" ]; then
        autoreconf -fi >autoreconf.log 2>&1 || {
            cat autoreconf.log >&2
            fail "autoreconf failed"
        }
        rm -f autoreconf.log
    fi
}

# configure_in DIRECTORY ARGUMENT...: configure out of tree, once for the same arguments
configure_in() {
    prepare_configure
    directory=$1
    shift
    mkdir -p "$directory"
    if [ -f "$directory/Makefile" ] && [ "$directory/Makefile" -nt configure ] &&
        [ "$(cat "$directory/arguments" 2>/dev/null)" = "$*" ]; then
        return 0
    fi
    top=$(pwd)
    (cd "$directory" && "$top/configure" -q "$@" >configure.log 2>&1 && printf '%s\n' "$*" >arguments) || {
        tail -n 20 "$directory/configure.log" >&2
        return 1
    }
}
