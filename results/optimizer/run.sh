#!/usr/bin/env bash
# Recomputes data.csv and the README's table.  results/optimizer/run.sh [BENCH [PARAMETERS [THREADS [REPETITIONS]]]]
# Sets up Python with PyTorch and DeepSpeed (3 GB) in ~/.cache/offstage/deepspeed where they are not.
set -euo pipefail
cd "$(dirname "$0")/../.."
bench="${1:-build/release/tests/bench/offstage_bench_optimizer}"
venv="${OFFSTAGE_DEEPSPEED:-$HOME/.cache/offstage/deepspeed}"
# DeepSpeed's operator is built on first use, for this CPU; there need be no CUDA.
export DS_SKIP_CUDA_CHECK=1 DS_ACCELERATOR=cpu
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet torch==2.11.0 numpy ninja setuptools wheel
  "$venv/bin/pip" install --quiet --no-build-isolation deepspeed==0.19.8
fi
PATH="$venv/bin:$PATH" "$venv/bin/python" results/optimizer/run.py "$bench" "${@:2}"
python3 results/readme.py results/optimizer
