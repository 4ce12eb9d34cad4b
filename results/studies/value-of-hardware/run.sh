#!/usr/bin/env bash
# Recomputes data.csv, the plot and the README's tables.  results/studies/value-of-hardware/run.sh [OFFSTAGE]
set -euo pipefail
cd "$(dirname "$0")/../../.."
"${1:-build/release/offstage}" study results/studies/value-of-hardware/study.yaml --csv results/studies/value-of-hardware/data.csv
python3 results/studies/value-of-hardware/plot.py
python3 results/readme.py results/studies/value-of-hardware
