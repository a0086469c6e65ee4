#!/usr/bin/env bash
# What the site of docs/ is built with, apart from .venv: the packages of docs.lock in
# .cache/docs-venv, and two scripts of the browser from npm's registry. Does nothing while the lock
# is the one installed last, and it works. Without npm diagrams are shown as text, and say so.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.cache/docs-venv
# Where the folder was moved, the programs in it name the Python of another place.
if ! cmp -s docs.lock "$venv/installed.lock" || ! "$venv/bin/mkdocs" --version >/dev/null 2>&1; then
    echo "Installing the packages of docs.lock (once; a quarter of a minute)"
    if command -v uv >/dev/null; then
        uv venv --quiet --clear --python .venv/bin/python "$venv"
        install=(uv pip install --quiet --python "$venv/bin/python")
    else
        .venv/bin/python -m venv --clear "$venv"
        install=("$venv/bin/python" -m pip --quiet --disable-pip-version-check install)
    fi
    "${install[@]}" --require-hashes -r docs.lock
    cp docs.lock "$venv/installed.lock"
fi

# Name and version of a package, the file in it, the name of our copy, the package's SHA-256.
script() {
    local copy=".cache/docs-scripts/$3" package="${1/@/-}.tgz"
    [ ! -e "$copy" ] || return 0
    mkdir -p .cache/docs-scripts
    local folder
    folder="$(mktemp -d)"
    trap 'rm -rf "$folder"' RETURN
    npm pack --silent --fetch-retries 1 --fetch-timeout 30000 --pack-destination "$folder" "$1" >/dev/null || return 1
    echo "$4  $folder/$package" | sha256sum --check --quiet || return 1
    tar -xzf "$folder/$package" -C "$folder" "package/$2"
    mv "$folder/package/$2" "$copy"
}

if command -v npm >/dev/null; then
    script mermaid@11.17.2 dist/mermaid.min.js mermaid.js \
        6ad2f42c3fc26bbf9e45cbb6d11898972573ea52b33a5f4ff51952899f950ffd &&
        script iframe-worker@1.0.4 shim/index.js iframe-worker.js \
        e8c5d12d87829c503afba01d67772ea9f4aba5b7ae57a0c98e1917711030efbb ||
        echo "npm's packages cannot be fetched: diagrams are shown as text" >&2
else
    echo "no npm: diagrams are shown as text" >&2
fi
