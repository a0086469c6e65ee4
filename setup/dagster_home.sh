#!/usr/bin/env bash
# Makes a folder a DAGSTER_HOME with the settings of instance/dagster.yaml. A file that someone put
# there instead of the link is left alone.
set -euo pipefail

root="$(cd "$(dirname "$0")/.." && pwd)"
home="${1:?usage: dagster_home.sh FOLDER}"

mkdir -p "$home"
if [ -L "$home/dagster.yaml" ] || [ ! -e "$home/dagster.yaml" ]; then
    # A link, not a copy: an edited template counts at the next start.
    ln -sfn "$root/instance/dagster.yaml" "$home/dagster.yaml"
fi
