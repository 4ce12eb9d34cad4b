#!/usr/bin/env bash
# Recomputes data.csv, the plots and the README's table; about two minutes. Needs gnuplot.
#   results/capacity-limits/run.sh [OFFSTAGE]
set -euo pipefail
cd "$(dirname "$0")/../.."
offstage=${1:-build/release/offstage}
here=results/capacity-limits
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for machine in dgx-a100-40 dgx-a100-80; do
  for batch in 8 16 32 64; do
    sed "s/global_batch: .*/global_batch: $batch/" "examples/capacity-$machine.yaml" \
      > "$work/$machine-$batch.yaml"
    options=(--json --out "$work/$machine-$batch.plan.json")
    [ "$batch" = 64 ] && options+=(--svg "$here/$machine.svg")
    "$offstage" capacity "$work/$machine-$batch.yaml" "${options[@]}" > "$work/$machine-$batch.json"
    # The plan behind the answer, read back and simulated by a run of its own.
    "$offstage" simulate "$work/$machine-$batch.plan.json" --json \
      > "$work/$machine-$batch.simulated.json"
  done
done
python3 $here/collect.py "$work" "$(git rev-parse --short HEAD)" > $here/data.csv
python3 results/readme.py $here
