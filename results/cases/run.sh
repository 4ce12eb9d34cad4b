#!/usr/bin/env bash
# Recomputes data.csv, estimates.csv and the README's table.  results/cases/run.sh [OFFSTAGE]
set -euo pipefail
cd "$(dirname "$0")/../.."
python3 results/cases/run.py "${1:-build/release/offstage}"
python3 results/cases/estimates.py "${1:-build/release/offstage}"
python3 results/readme.py results/cases
