#!/usr/bin/env python3
"""plot.svg from data.csv: tokens a second on each machine, a panel for each question."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import rows as study  # noqa: E402

panels = {}
for row in study.load(HERE):
    panels.setdefault(row["case"], {})[row["case of hardware"]] = row["tokens_per_s"] or 0.0
study.draw_bars(HERE / "plot.svg", panels)
