#!/usr/bin/env bash
# Recomputes data.csv and the README's table.  results/throughput/run.sh [OFFSTAGE [ROUNDS]]
# Needs the PyTorch that scripts/setup.sh --tests installs; takes some minutes, on an idle computer.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv="${XDG_CACHE_HOME:-$HOME/.cache}/offstage/venv-torch-2.11.0"
python3 results/throughput/run.py "${1:-build/release/offstage}" "$venv/bin/python" "${@:2}"
python3 results/readme.py results/throughput
