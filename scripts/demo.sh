#!/usr/bin/env bash
# The whole path on real input: measure this computer, plan a GPT whose training state is several
# times larger than its (virtual) GPUs, simulate the plan, train with the same plan, compare the two
# traces; then one question about a DGX-A100. About 4 minutes on 2 cores, after set-up and build.
# Everything it writes is in build/demo.
set -euo pipefail
cd "$(dirname "$0")/.."

offstage=build/release/offstage
out=build/demo

title() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
show() {
  printf '$ %s\n' "$*"
  "$@"
}

title "1. Set up and build (build/release)"
scripts/build.sh release --target offstage offstage-exec

title "2. The text: the King James Bible, as bytes"
mkdir -p "$out"
cp examples/gpt-bible.yaml "$out/"
bible -f 'Gen1:1-Rev22:21' < /dev/null > "$out/bible.txt"
wc -c "$out/bible.txt"

title "3. Measure this computer, split into 2 virtual GPUs of 16 MiB"
show "$offstage" calibrate --out "$out" --virtual-gpus 2 --gpu-memory 16MiB

title "4. Plan: a GPT whose training state is several times what the virtual GPUs hold"
show "$offstage" plan "$out/gpt-bible.yaml" --out "$out/plan.json"

title "5. Simulate the plan"
show "$offstage" simulate "$out/plan.json" --trace "$out/simulated.json"

title "6. Train with the same plan"
printf '$ %s\n' "$offstage train $out/gpt-bible.yaml --plan $out/plan.json --trace $out/measured.json --json"
"$offstage" train "$out/gpt-bible.yaml" --plan "$out/plan.json" --trace "$out/measured.json" --json \
  > "$out/train.json"
python3 scripts/demo_loss.py "$out/train.json" "$out/bible.txt"

title "7. Prediction against measurement, task by task"
show "$offstage" compare "$out/simulated.json" "$out/measured.json"

title "8. And a machine that is not here: a 13B model on a DGX-A100 with 40 GB GPUs"
show "$offstage" plan examples/llama-2-13b.yaml

title "Done"
echo "Traces to open in ui.perfetto.dev: $out/simulated.json, $out/measured.json"
