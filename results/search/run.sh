#!/usr/bin/env bash
# Recomputes data.csv and the README's table.  results/search/run.sh [BENCH [FEASIBLE [SEED]]]
set -euo pipefail
cd "$(dirname "$0")/../.."
"${1:-build/release/tests/bench/offstage_bench_search}" . "${2:-2000}" "${3:-1}" > results/search/data.csv
python3 results/readme.py results/search
