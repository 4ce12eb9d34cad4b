#!/usr/bin/env bash
# Recomputes data.csv, lost.json, the plot and the README's tables.
#   results/studies/heterogeneous-boxes/run.sh [OFFSTAGE]
set -euo pipefail
cd "$(dirname "$0")/../../.."
here=results/studies/heterogeneous-boxes
offstage="${1:-build/release/offstage}"
"$offstage" study "$here/study.yaml" --csv "$here/data.csv"
"$offstage" simulate "$here/lost.yaml" --json > "$here/lost.json"
python3 "$here/plot.py"
python3 results/readme.py "$here"
