#!/usr/bin/env bash
# Recomputes data.csv and the README's table.  results/efficiency/run.sh [OFFSTAGE]
set -euo pipefail
cd "$(dirname "$0")/../.."
python3 results/efficiency/run.py "${1:-build/release/offstage}"
python3 results/readme.py results/efficiency
