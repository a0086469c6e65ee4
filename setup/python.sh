#!/usr/bin/env bash
# Prints the first Python on the PATH that the pinned packages support (3.11 or 3.12); prints
# nothing when there is none.
set -euo pipefail

for candidate in python3.11 python3.12 python3 python; do
    # Run it: a version manager's stand-in is on the PATH even for versions that are not chosen.
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null; then
        command -v "$candidate"
        exit 0
    fi
done
