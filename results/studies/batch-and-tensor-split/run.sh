#!/usr/bin/env bash
# Recomputes data.csv, the plot and the README's tables.  results/studies/batch-and-tensor-split/run.sh [OFFSTAGE]
set -euo pipefail
cd "$(dirname "$0")/../../.."
"${1:-build/release/offstage}" study results/studies/batch-and-tensor-split/study.yaml --csv results/studies/batch-and-tensor-split/data.csv
python3 results/studies/batch-and-tensor-split/plot.py
python3 results/readme.py results/studies/batch-and-tensor-split
