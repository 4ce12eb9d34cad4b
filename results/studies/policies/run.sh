#!/usr/bin/env bash
# Recomputes study.yaml's plans, data.csv, the plot and the README's tables.
#   results/studies/policies/run.sh [OFFSTAGE]
# With `REAL=1` before it also real.csv: ten trainings on this computer, 4 minutes if it does nothing else.
set -euo pipefail
cd "$(dirname "$0")/../../.."
here=results/studies/policies
offstage="${1:-build/release/offstage}"
python3 "$here/make_study.py" "$offstage"
"$offstage" study "$here/study.yaml" --csv "$here/data.csv"
if [ -n "${REAL:-}" ]; then python3 "$here/real.py" "$offstage"; fi
python3 "$here/plot.py"
python3 results/readme.py "$here"
