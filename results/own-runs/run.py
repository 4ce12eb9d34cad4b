#!/usr/bin/env python3
"""Calibrates this computer, trains every plan of make_plans.py, and holds the simulator against it.

    run.py OFFSTAGE OUT calibrate               writes OUT/platform.yaml and profile.yaml
    run.py OFFSTAGE OUT train [SEED [RUNS]]     plans and trains; times and traces in OUT/SEED
    run.py OFFSTAGE OUT compare [SEED]          simulates the plans and compares; data.csv beside this file for the
                                                seed of make_plans.py, OUT/SEED.csv for any other

Nothing else should run during the first two. The plans take turns in an order that has nothing to do with
them, RUNS times over; a plan's measured step is the median of its runs.
"""

import csv
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

import make_plans

HERE = pathlib.Path(__file__).resolve().parent
GPU_MEMORY = "512MiB"
# Of training in a run, without setting up; the steps of a window, after which the executor comes to rest.
SECONDS, FEWEST, WINDOW = 1.5, 6, 16
# A run in which other programs took a larger part of the computer is not counted.
MOST_BY_OTHERS = 0.07
KINDS = [
    "forward", "backward", "fetch", "offload", "all_gather", "reduce_scatter", "norm", "update", "read", "write",
]


def ask(offstage, *arguments, cwd=None):
    done = subprocess.run([offstage, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{arguments}: {done.stderr or done.stdout}")
    return json.loads(done.stdout) if done.stdout else None


def calibrate(offstage, out):
    out.mkdir(parents=True, exist_ok=True)
    answer = ask(offstage, "calibrate", "--out", out, "--virtual-gpus", max(make_plans.GPUS), "--gpu-memory",
                 GPU_MEMORY, "--drive", out, "--json")
    (out / "calibration.json").write_text(json.dumps(answer, indent=1))
    print("calibrated in", round(answer["wall_s"]), "s", file=sys.stderr)


def busy_seconds():
    """Processor time of the whole computer, and of the processes that this one has started and waited for."""
    with open("/proc/stat") as file:
        user, nice, system = map(int, file.readline().split()[1:4])
    own = os.times()
    return (user + nice + system) / os.sysconf("SC_CLK_TCK"), own.children_user + own.children_system + own.user + own.system


def train_once(offstage, folder, name, predicted):
    """Seconds of a step, and the part of the computer that other programs took meanwhile."""
    steps = max(FEWEST, round(SECONDS / predicted))
    if steps > WINDOW:  # whole windows: what is compared is the last one
        steps -= steps % WINDOW
    begin, all_before, own_before = time.monotonic(), *busy_seconds()
    answer = ask(offstage, "train", f"{name}.json", "--plan", f"{name}.plan.json", "--steps", steps,
                 "--trace", f"{name}.trace.json", "--json", cwd=folder)
    all_after, own_after = busy_seconds()
    others = (all_after - all_before) - (own_after - own_before)
    return answer["step_s_median"], others / (os.cpu_count() * (time.monotonic() - begin))


def describe(config, gpus):
    """What was drawn, in the columns of data.csv."""
    workload, strategy = config["workload"], config["strategy"]
    model = workload["model"]
    return {
        "gpus": gpus, "family": model["model_type"], "hidden": model.get("n_embd", model.get("hidden_size")),
        "layers": model.get("n_layer", model.get("num_hidden_layers")), "vocab": model["vocab_size"],
        "sequence_length": workload["sequence_length"], "global_batch": workload["global_batch"],
        "precision": workload["precision"],
    } | strategy


def train(offstage, out, seed, runs):
    plans = make_plans.plans(seed)
    folder = out / str(seed)
    folder.mkdir(exist_ok=True)
    text = subprocess.run(["bible", "-f", "Gen1:1-Rev22:21"], check=True, stdin=subprocess.DEVNULL, capture_output=True)
    (folder / "bible.txt").write_bytes(text.stdout)
    make_plans.write(plans, out / "platform.yaml", folder)
    names = [f"{number:02}" for number in range(1, len(plans) + 1)]
    steps, predicted = {name: [] for name in names}, {}
    for name in names:
        answer = ask(offstage, "plan", f"{name}.json", "--out", f"{name}.plan.json", "--json", cwd=folder)
        predicted[name] = answer["step_s"]
    order = random.Random(1)
    for _ in range(runs):
        for name in order.sample(names, len(names)):
            step, others = train_once(offstage, folder, name, predicted[name])
            print(name, f"predicted {predicted[name]:.6f}, measured {step:.6f}, others took {others:.3f}", file=sys.stderr)
            if others > MOST_BY_OTHERS:
                continue
            steps[name].append(step)
            (folder / f"{name}.trace.json").replace(folder / f"{name}.measured.json")
            (folder / "steps.json").write_text(json.dumps(steps))


def compare(offstage, out, seed):
    folder = out / str(seed)
    steps = json.loads((folder / "steps.json").read_text())
    rows = []
    for number, (config, gpus) in enumerate(make_plans.plans(seed), 1):
        name = f"{number:02}"
        if not steps.get(name):
            continue
        simulated = ask(offstage, "simulate", f"{name}.plan.json", "--trace", f"{name}.simulated.json", "--json", cwd=folder)
        difference = ask(offstage, "compare", f"{name}.simulated.json", f"{name}.measured.json", "--json", cwd=folder)
        measured = statistics.median(steps[name])
        row = {"id": name} | describe(config, gpus) | {
            "tasks": simulated["tasks"] // simulated["steps"], "bound_by": simulated["bound_by"],
            "predicted_s": f"{simulated['step_s']:.6f}", "measured_s": f"{measured:.6f}",
            "lowest_s": f"{min(steps[name]):.6f}", "highest_s": f"{max(steps[name]):.6f}",
            "error": f"{simulated['step_s'] / measured - 1:+.4f}",
        }
        for kind in KINDS:
            found = [k for k in difference["by_kind"] if k["kind"] == kind]
            row[f"{kind}_predicted_s"] = f"{found[0]['a_s']:.6f}" if found else ""
            row[f"{kind}_measured_s"] = f"{found[0]['b_s']:.6f}" if found else ""
        rows.append(row)
    write(HERE / "data.csv" if seed == make_plans.SEED else out / f"{seed}.csv", rows)


def write(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    errors = sorted(abs(float(row["error"])) for row in rows)
    print(f"median {statistics.median(errors):.3f}, p90 {errors[round(0.9 * (len(errors) - 1))]:.3f}", file=sys.stderr)


def main():
    offstage, out = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else make_plans.SEED
    if sys.argv[3] == "calibrate":
        calibrate(offstage, out)
    elif sys.argv[3] == "train":
        train(offstage, out, seed, int(sys.argv[5]) if len(sys.argv) > 5 else 1)
    else:
        compare(offstage, out, seed)


if __name__ == "__main__":
    main()
