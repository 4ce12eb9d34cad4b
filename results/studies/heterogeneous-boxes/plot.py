#!/usr/bin/env python3
"""Draws plot.svg: what each box keeps of the even machine's speed."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import table  # noqa: E402

panels = {}
for (case, batch), rows in table.found().items():
    machine, change = case.split(", ", 1)
    bars = panels.setdefault(f"{machine}, {batch} sequences", {})
    for shares in ("even", "auto"):
        bars[f"{change}, {shares}"] = rows[shares]["tokens_per_s"] or 0.0
table.study.draw_bars(HERE / "plot.svg", panels)
