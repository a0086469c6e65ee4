#!/usr/bin/env bash
# The virtual environment .venv with what requirements.lock names. Does nothing while the lock that
# was installed last is the lock that lies here.
set -euo pipefail
cd "$(dirname "$0")/.."

# What lies in the environment itself cannot build it anew.
PATH="${PATH//"$(pwd)/.venv/bin:"/}"

python=.venv/bin/python
stamp=.venv/installed.lock
place=.venv/made.in

works() {
    # The console scripts hold the absolute path of their Python: a moved environment is broken.
    [ "$(cat "$place" 2>/dev/null || pwd)" = "$(pwd)" ] &&
        "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null
}

if works && cmp -s requirements.lock "$stamp"; then
    exit 0
fi

if ! works; then
    base="$(setup/python.sh)"
    if command -v uv >/dev/null; then
        uv venv --quiet --clear --python "${base:-3.11}" .venv
    elif [ -z "$base" ]; then
        echo "rivermark needs Python 3.11 or 3.12 and found neither on the PATH: install python3.11 with its venv module (or uv, which brings a Python of its own)." >&2
        exit 1
    elif ! "$base" -c 'import ensurepip, venv' 2>/dev/null; then
        echo "$base cannot make virtual environments: install its venv module, on Debian with: apt-get install python3-venv" >&2
        exit 1
    else
        "$base" -m venv --clear .venv
    fi
    pwd >"$place"
fi

rm -f "$stamp"
echo "Installing the Python packages of requirements.lock (once; a minute or two with pip, seconds with uv)"
if command -v uv >/dev/null; then
    uv pip install --quiet --python "$python" --require-hashes -r requirements.lock
    uv pip install --quiet --python "$python" --no-deps --no-build-isolation -e .
else
    pip=("$python" -m pip --quiet --disable-pip-version-check)
    "${pip[@]}" install --require-hashes -r requirements.lock
    "${pip[@]}" install --no-deps --no-build-isolation -e .
fi
# Last, so that an install that broke off is done again. A copy of the lock, not a time: clones and
# branches change times without changing what is needed.
cp requirements.lock "$stamp"
