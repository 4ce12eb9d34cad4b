#!/usr/bin/env python3
"""plot.svg from data.csv: tokens a second over the batch, a line for each split."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import rows as study  # noqa: E402

panels = {}
for row in study.load(HERE):
    if row["tokens_per_s"]:
        panel = panels.setdefault(f"{row['workload.model']} on {row['platform']}", {})
        curve = panel.setdefault(f"{row['strategy.tensor_ways']}-way", [])
        curve.append((row["workload.global_batch"], row["tokens_per_s"]))
study.draw(HERE / "plot.svg", "", "sequences in a step", panels)
