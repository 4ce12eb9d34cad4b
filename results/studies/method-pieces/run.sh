#!/usr/bin/env bash
# Recomputes data.csv, the plot and the README's tables.  results/studies/method-pieces/run.sh [OFFSTAGE]
set -euo pipefail
cd "$(dirname "$0")/../../.."
"${1:-build/release/offstage}" study results/studies/method-pieces/study.yaml --csv results/studies/method-pieces/data.csv
python3 results/studies/method-pieces/plot.py
python3 results/readme.py results/studies/method-pieces
