#!/usr/bin/env python3
"""Writes real.csv: the policies simulated and run on this computer, with links that are slow and uneven.

    real.py [OFFSTAGE]

Two virtual GPUs; copies of the first are held to `copy_bytes_per_s`, those of the second to `share` of
that. The host is not calibrated: at these rates copies decide, and how fast they are is said in the config.
"""

import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
POLICIES = ["fifo", "planned", "critical_path", "heft", "resource_aware"]
CASES = [(1e8, 0.5, 4), (1e8, 0.25, 4)]  # copy rate, share of the second GPU, sequences of a step
STEPS = 16
MODEL = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "vocab_size": 256,
    "n_positions": 128,
    "n_embd": 256,
    "n_layer": 8,
    "n_head": 4,
    "tie_word_embeddings": False,
}
STRATEGY = {
    "split": "batch",
    "layers_per_submodel": 1,
    "micro_batch": 1,
    "weight_slots": 2,
    "gradient_slots": 2,
    "host_gradient_slots": 10,
    "activations": "cpu",
    "spare_activation_slots": 2,
    "resident_state": 0,
    "resident_weights": 0,
    "kept_activations": 0,
    "host_memory": "near",
    "submit_ahead": 4,
}


def config(rate, share, batch, policy, data):
    return {
        "platform": {
            "name": "host",
            "virtual_gpus": 2,
            "gpu_memory_bytes": "64MiB",
            "copy_throttle_bytes_per_s": rate,
            "copy_shares": [1, share],
        },
        "workload": {
            "model": MODEL,
            "sequence_length": 128,
            "global_batch": batch,
            "precision": "f32",
            "optimizer": "adamw",
        },
        "strategy": {**STRATEGY, "policy": policy},
        "train": {"data": data, "steps": STEPS, "learning_rate": 3e-4},
    }


def ask(*command):
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(answer.stdout)


def main():
    offstage = sys.argv[1] if len(sys.argv) > 1 else "build/release/offstage"
    with tempfile.TemporaryDirectory() as folder, open(HERE / "real.csv", "w", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(["copy_bytes_per_s", "share", "global_batch", "policy", "simulated_s", "measured_s"])
        data = pathlib.Path(folder) / "data.txt"  # read as bytes
        data.write_bytes(random.Random(1).randbytes(1 << 20))
        for rate, share, batch in CASES:
            for policy in POLICIES:
                file = pathlib.Path(folder) / "run.yaml"
                file.write_text(json.dumps(config(rate, share, batch, policy, str(data))))
                simulated = ask(offstage, "simulate", file, "--steps", "6", "--json")["step_s"]
                measured = ask(offstage, "train", file, "--json")["step_s_median"]
                rows.writerow([rate, share, batch, policy, simulated, measured])
                out.flush()


if __name__ == "__main__":
    main()
