#!/usr/bin/env python3
"""Asks for each case what the published estimator of the user's own system says, and writes
estimates.csv.

    estimates.py OFFSTAGE

The formulas are those of `plan --explain`. They know parameters and GPUs only, so the question is put
with GPUs too small for anything: what does not fit is explained without a simulation. The verdict is
against the whole memory of the real machine, as a user of such a formula reads it off a data sheet.
"""

import csv
import sys

import run

# Context, workspace and, beside other GPUs, the collective library leave 20 to 30 MB of it.
TOO_SMALL, TOO_SMALL_ALONE = "3350MB", "1750MB"
COLUMNS = ["id", "estimate", "gpu_gb", "host_gb", "fits"]

# The published formula for each of the users' systems, by kind and by what is kept off the GPUs:
# names as `plan --explain --json` gives them.
ZERO = {
    "": "",
    "optimizer": ", optimizer on the CPU",
    "optimizer param": ", optimizer and parameters on the CPU",
}


def estimator_of(run):
    """The name of the estimator a user of that system would have asked; None when there is none."""
    kind, offload = run["kind"] or "", run["offload"]
    if "nvme" in offload.values():
        return None
    moved = " ".join(sorted(offload))
    if kind == "zero2":
        return "DeepSpeed ZeRO-2" + (ZERO["optimizer"] if "optimizer" in offload else "")
    if kind == "zero3":
        return "DeepSpeed ZeRO-3" + ZERO[moved] if moved in ZERO else None
    if kind.startswith("fsdp"):
        return f"16-byte rule, {'in CPU memory' if offload else 'on the GPUs'}"
    if kind == "ddp":
        return "accelerate estimate-memory, float32"
    if kind in ("gemini_cpu", "patrickstar_chunks"):
        return "16-byte rule, in CPU memory"
    return None


def estimate_of(tool, case, models):
    """The row of the estimator of the user's system; None when it has none."""
    name = estimator_of(case["run"])
    if name is None:
        return None
    question = run.question_of(case, models)
    question.pop("strategy", None)
    question["global_batch"] = case["run"]["n_gpus"]
    machine = tool.machine(question["platform"])
    memory = TOO_SMALL if case["run"]["n_gpus"] > 1 else TOO_SMALL_ALONE
    question["platform"] = question["platform"] | {"gpu_memory_bytes": memory}
    answer = tool.plan(question, {"split": "batch", "nvme_state": 0}, explain=True)
    (found,) = [each for each in answer["explain"]["estimators"] if each["name"] == name]
    host = found["host_bytes"]
    fits = found["gpu_bytes"] <= min(capacities(machine, "gpu")) and (host or 0) <= sum(
        capacities(machine, "host")
    )
    return {
        "id": case["id"],
        "estimate": name,
        "gpu_gb": run.gigabytes(found["gpu_bytes"]),
        "host_gb": "" if host is None else run.gigabytes(host),
        "fits": "yes" if fits else "no",
    }


def capacities(machine, kind):
    return [pool["capacity_bytes"]["value"] for pool in machine["pools"] if pool["kind"] == kind]


def main():
    tool = run.ask.Tool(sys.argv[1])
    known = run.load()
    with open(run.HERE / "estimates.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for case in known["cases"]:
            row = estimate_of(tool, case, known["models"]) if "ask" in case else None
            if row:
                writer.writerow(row)


if __name__ == "__main__":
    main()
