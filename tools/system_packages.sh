#!/bin/sh
# Install packages that the tests need of the system, where that is possible without asking:
# browser: Chromium, in which they look at the site, with fonts for Korean and Chinese
# doctest: the framework of the tests in C++
set -eu

has_browser() {
    for name in chromium chromium-browser google-chrome; do
        command -v "$name" >/dev/null && return
    done
    return 1
}

has_doctest() {
    echo '#include <doctest/doctest.h>' | "${CXX:-c++}" -E -x c++ - >/dev/null 2>&1
}

missing=
for need in "$@"; do
    case $need in
    browser) has_browser || missing="$missing chromium fonts-noto-cjk" ;;
    doctest) has_doctest || missing="$missing doctest-dev" ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    if { apt-get -q update && apt-get -qy install --no-install-recommends $missing; } >"$log" 2>&1; then
        rm -f "$log"
        exit 0
    fi
    tail -n 5 "$log" >&2
    rm -f "$log"
fi
echo "error: the tests need what these packages have; install them (on Debian: sudo apt-get install$missing)" >&2
exit 1
