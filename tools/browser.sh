#!/bin/sh
# The tests look at the site in the system's Chromium. Install it, with fonts for
# Korean and Chinese, where that is possible without asking.
set -eu

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then
        exit 0
    fi
done

packages="chromium fonts-noto-cjk"
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing $packages"
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    if { apt-get -q update && apt-get -qy install --no-install-recommends $packages; } >"$log" 2>&1; then
        rm -f "$log"
        exit 0
    fi
    tail -n 5 "$log" >&2
    rm -f "$log"
fi
echo "error: the tests need Chromium: install it (on Debian: sudo apt-get install $packages)" >&2
exit 1
