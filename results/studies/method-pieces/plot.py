#!/usr/bin/env python3
"""plot.svg from data.csv: tokens a second of each case, a panel for each batch."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import rows as study  # noqa: E402
from table import piece  # noqa: E402

panels = {}
for (batch, case), row in study.best(study.load(HERE), "workload.global_batch", "case", name=piece).items():
    panels.setdefault(f"{batch} sequences in a step", {})[case] = row["tokens_per_s"] or 0.0
study.draw_bars(HERE / "plot.svg", panels)
