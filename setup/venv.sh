#!/usr/bin/env bash
# The virtual environment .venv with what requirements.lock names, and this project in it. Does
# nothing while the lock and the project file that were installed last are those that lie here.
set -euo pipefail
cd "$(dirname "$0")/.."

# The environment cannot be rebuilt by its own programs.
PATH="${PATH//"$(pwd)/.venv/bin:"/}"

python=.venv/bin/python
# Copies of what was installed, not times: clones and branches change times for nothing.
lock=.venv/installed.lock
project=.venv/installed.toml
place=.venv/made.in

works() {
    # The console scripts hold the absolute path of their Python: a moved environment is broken.
    [ "$(cat "$place" 2>/dev/null || pwd)" = "$(pwd)" ] &&
        "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null
}

if works && cmp -s requirements.lock "$lock" && cmp -s pyproject.toml "$project"; then
    exit 0
fi

if ! works; then
    # Clearing it would empty what the link leads to.
    if [ -L .venv ]; then
        echo "$(pwd)/.venv is a link to the environment of another folder: remove the link, and make setup makes one here." >&2
        exit 1
    fi
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

if command -v uv >/dev/null; then
    install=(uv pip install --quiet --python "$python")
else
    # An environment that uv made has no pip.
    "$python" -m pip --version >/dev/null 2>&1 || "$python" -m ensurepip >/dev/null
    install=("$python" -m pip --quiet --disable-pip-version-check install)
fi

# Says now and then that a command goes on: pip would be silent, or print hundreds of lines.
with_progress() {
    local seconds=0
    "$@" &
    while kill -0 $! 2>/dev/null; do
        sleep 1
        seconds=$((seconds + 1))
        [ $((seconds % 10)) -ne 0 ] || echo "  $seconds s, goes on"
    done
    wait $!
}

# Each copy is made last, so that an install that broke off is done again.
if ! cmp -s requirements.lock "$lock"; then
    echo "Installing the Python packages of requirements.lock (once; a minute or two with pip, seconds with uv)"
    rm -f "$lock" "$project"
    with_progress "${install[@]}" --require-hashes -r requirements.lock
    cp requirements.lock "$lock"
fi
# The project's own entry: its console script and its entry points are written from pyproject.toml.
"${install[@]}" --no-deps --no-build-isolation -e .
cp pyproject.toml "$project"
