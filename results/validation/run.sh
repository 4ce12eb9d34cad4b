#!/usr/bin/env bash
# Recomputes data, plots and the README's tables.  results/validation/run.sh [OFFSTAGE]
# Half a minute on two cores; sensitivity.py takes longer, and is run by itself.
set -euo pipefail
cd "$(dirname "$0")/../.."
offstage="${1:-build/release/offstage}"
folder=results/validation
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$offstage" validate --out "$out" --json > $folder/summary.json
cp "$out/rows.csv" "$out/refused.csv" $folder
python3 $folder/plots.py
python3 results/readme.py $folder
