#!/usr/bin/env bash
# axe-core, by which the stories audit the pages, from npm's registry; succeeds where it is there.
set -euo pipefail
cd "$(dirname "$0")/.."

version=4.10.3
folder=.cache/axe
[ "$(cat "$folder/version" 2>/dev/null)" = "$version" ] && exit 0
command -v npm >/dev/null || { echo "no npm: pages are not audited by axe-core" >&2; exit 1; }
npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix "$folder" \
    "axe-core@$version"
echo "$version" >"$folder/version"
