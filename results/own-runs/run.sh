#!/usr/bin/env bash
# Recomputes data.csv and the README's table.  results/own-runs/run.sh [OFFSTAGE [OUT]]
# Some minutes, on a computer that does nothing else. Calibration, configs and traces stay in OUT.
set -euo pipefail
cd "$(dirname "$0")/../.."
out="${2:-build/own-runs}"
python3 results/own-runs/run.py "${1:-build/release/offstage}" "$out" calibrate
python3 results/own-runs/run.py "${1:-build/release/offstage}" "$out" train
python3 results/own-runs/run.py "${1:-build/release/offstage}" "$out" compare
python3 results/readme.py results/own-runs
