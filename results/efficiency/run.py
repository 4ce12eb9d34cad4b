#!/usr/bin/env python3
"""Plans and simulates GPT-3 175B, Llama-2-70B and OPT-30B on a DGX A100 at several batches.

    run.py OFFSTAGE      writes data.csv beside this file
"""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ["gpt3-175b", "llama-2-70b", "opt-30b"]
BATCHES = [8, 16, 32, 64, 128]
PLATFORM, SEQUENCE_LENGTH = "dgx-a100-80", 2048
KNOBS = [
    "tensor_ways",
    "micro_batch",
    "layers_per_submodel",
    "activations",
    "resident_state",
    "resident_weights",
    "kept_activations",
    "host_gradient_slots",
]


def ask(offstage, command, *arguments):
    done = subprocess.run(
        [offstage, command, *arguments, "--json"], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def busiest(simulated, ends):
    """The utilisation of the busiest engine whose name ends so, 0 where there is none."""
    found = [e["utilisation"] for e in simulated["engines"] if e["engine"].endswith(ends)]
    return f"{max(found, default=0.0):.4f}"


def row_of(offstage, folder, model, batch):
    workload = {
        "model": model,
        "sequence_length": SEQUENCE_LENGTH,
        "global_batch": batch,
        "precision": "bf16",
        "optimizer": "adamw",
    }
    config, out = folder / "run.json", folder / "plan.json"
    config.write_text(json.dumps({"platform": PLATFORM, "workload": workload, "strategy": "auto"}))
    plan = ask(offstage, "plan", str(config), "--out", str(out))
    row = {"model": model, "global_batch": batch, "fits": "yes" if plan["fits"] else "no"}
    if not plan["fits"]:
        return row
    simulated = ask(offstage, "simulate", str(out))
    row |= {knob: plan["strategy"][knob] for knob in KNOBS}
    row |= {key: f"{simulated[key]:.6g}" for key in ("step_s", "bound_s", "efficiency", "mfu")}
    row["tokens_per_s"] = round(simulated["tokens_per_s"])
    row["bound_by"] = simulated["bound_by"]
    for ends in ("compute", "h2d", "d2h", "collective", "optimizer"):
        row[f"{ends}_utilisation"] = busiest(simulated, "." + ends)
    return row


def main():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            for batch in BATCHES:
                rows.append(row_of(sys.argv[1], pathlib.Path(folder), model, batch))
                print(rows[-1], file=sys.stderr)
    columns = list(max(rows, key=len))
    with open(HERE / "data.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
