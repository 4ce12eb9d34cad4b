#!/usr/bin/env python3
"""Trains one model in offstage and in plain PyTorch in turn, and writes data.csv.

    run.py OFFSTAGE PYTHON [ROUNDS]

PYTHON: one with torch and transformers (scripts/setup.sh --tests).
"""

import csv
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
STEPS, THREADS = 4, 2
# A process's first step touches memory for the first time.
SKIPPED = 1


def offstage(program, folder):
    """The steps of a run; a window is one graph, so that its first step stands alone."""
    trace = folder / "trace.json"
    done = subprocess.run(
        [program, "train", "run.yaml", "--plan", "plan.json", "--steps", str(STEPS), "--json", "--trace", trace],
        cwd=folder, check=True, stdout=subprocess.PIPE, text=True,
    )
    answer = json.loads(done.stdout)
    lines = (folder / "run/metrics.jsonl").read_text().splitlines()
    shutil.rmtree(folder / "run")
    return [json.loads(line)["step_s"] for line in lines], answer


def plain(python, folder, micro_batch, *options):
    done = subprocess.run(
        [python, HERE / "plain.py", folder / "bible.txt", str(STEPS), str(micro_batch), str(THREADS), *options],
        check=True, stdout=subprocess.PIPE, text=True,
    )
    return json.loads(done.stdout)["seconds"]


def main():
    program, python = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    seconds = {"offstage": [], "plain": [], "plain, recompute": [], "plain, recompute, micro-batch 8": []}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = subprocess.run(
            ["bible", "-f", "Gen1:1-Rev22:21"], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        ).stdout
        (folder / "bible.txt").write_bytes(text)
        config = (HERE / "run.yaml").read_text()
        (folder / "run.yaml").write_text(config.replace("steps: 6}", "steps: 6, checkpoint: {directory: run}}"))
        plan = subprocess.run(
            [program, "plan", "run.yaml", "--out", "plan.json", "--json"],
            cwd=folder, check=True, stdout=subprocess.PIPE, text=True,
        )
        efficiency = json.loads(plan.stdout)["efficiency"]
        for _ in range(rounds):
            turns = list(seconds)
            random.shuffle(turns)
            for turn in turns:
                if turn == "offstage":
                    steps, answer = offstage(program, folder)
                else:
                    micro_batch = 8 if "8" in turn else 4
                    options = ["--recompute"] if "recompute" in turn else []
                    steps = plain(python, folder, micro_batch, *options)
                seconds[turn] += steps[SKIPPED:]
                print(turn, [round(s, 2) for s in steps], file=sys.stderr)
    with open(HERE / "data.csv", "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["training", "steps", "median_s", "fastest_s", "slowest_s", "predicted_efficiency"])
        for name, all_steps in seconds.items():
            out.writerow([
                name, len(all_steps), f"{statistics.median(all_steps):.4f}", f"{min(all_steps):.4f}",
                f"{max(all_steps):.4f}", f"{efficiency:.4f}" if name == "offstage" else "",
            ])
    for pool in answer["memory"]:
        print(pool["pool"], pool["peak_bytes"], "of planned", pool["planned_bytes"], file=sys.stderr)


if __name__ == "__main__":
    main()
