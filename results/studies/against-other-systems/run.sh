#!/usr/bin/env bash
# Recomputes data.csv, the plot and the README's tables.  results/studies/against-other-systems/run.sh [OFFSTAGE]
set -euo pipefail
cd "$(dirname "$0")/../../.."
"${1:-build/release/offstage}" study results/studies/against-other-systems/study.yaml --csv results/studies/against-other-systems/data.csv
python3 results/studies/against-other-systems/plot.py
python3 results/readme.py results/studies/against-other-systems
