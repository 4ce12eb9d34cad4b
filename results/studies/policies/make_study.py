#!/usr/bin/env python3
"""Writes study.yaml: eight workloads on each machine, each with the plan that the search finds for it.

    make_study.py [OFFSTAGE]

Every policy then runs the very same plan. The search is told to plan for resource_aware; without a
policy to plan for it would choose among all, and the rows would compare plans rather than policies.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
# Model, tokens of a sequence, sequences of a step: few and many samples for every size of model.
BOTH = [
    ("llama-2-7b", 2048, 8),
    ("llama-2-7b", 1024, 64),
    ("llama-2-13b", 4096, 8),
    ("llama-2-13b", 4096, 64),
    ("opt-30b", 2048, 8),
    ("llama-2-70b", 4096, 8),
    ("llama-2-70b", 4096, 64),
]
# The largest for each machine.
WORKLOADS = {
    "dgx-a100-40": BOTH + [("opt-66b", 2048, 16)],
    "dgx-a100-80": BOTH + [("gpt3-175b", 2048, 16)],
}

HEAD = """# Which policy? Each case is one plan, written here in full by make_study.py, so that the policies run
# the same tasks. Jitter 0.2: every task's work is multiplied by a draw with a standard deviation of a
# fifth; the same draws for each policy.
base:
  platform: dgx-a100-80
  workload: {model: llama-2-7b, sequence_length: 2048, global_batch: 8, precision: bf16, optimizer: adamw}
  strategy: auto
  disturbances: {jitter: 0}
vary:
  - case:
"""
TAIL = """  - strategy.policy: [fifo, planned, critical_path, heft, resource_aware]
  - disturbances.jitter: [0, 0.2]
repetitions: 2
seed: 1
simulate: {steps: 5}
"""


def plan(offstage, platform, model, sequence_length, global_batch):
    config = {
        "platform": platform,
        "workload": {
            "model": model,
            "sequence_length": sequence_length,
            "global_batch": global_batch,
            "precision": "bf16",
            "optimizer": "adamw",
        },
        "strategy": {"policy": "resource_aware"},
    }
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "run.yaml"
        file.write_text(json.dumps(config))
        made = pathlib.Path(folder) / "plan.json"
        subprocess.run([offstage, "plan", file, "--out", made], check=True, capture_output=True)
        strategy = json.loads(made.read_text())["strategy"]
    del strategy["policy"]
    if not strategy.get("cuts"):
        strategy.pop("cuts", None)
    return strategy


def main():
    offstage = sys.argv[1] if len(sys.argv) > 1 else "build/release/offstage"
    text = HEAD
    for platform, workloads in WORKLOADS.items():
        for model, sequence_length, global_batch in workloads:
            strategy = plan(offstage, platform, model, sequence_length, global_batch)
            text += f"      {model} {global_batch} x {sequence_length} on {platform}:\n"
            settings = {
                "platform": platform,
                "workload.model": model,
                "workload.sequence_length": sequence_length,
                "workload.global_batch": global_batch,
                "strategy": strategy,
            }
            for key, value in settings.items():
                text += f"        {key}: {json.dumps(value)}\n"
    (HERE / "study.yaml").write_text(text + TAIL)


if __name__ == "__main__":
    main()
