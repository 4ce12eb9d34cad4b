#!/usr/bin/env python3
"""plot.svg from data.csv: tokens a second of each system, a panel for each machine."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import rows as study  # noqa: E402
from table import answers  # noqa: E402

panels = {}
for (platform, model), by_system in answers().items():
    bars = panels.setdefault(platform, {})
    for name, row in by_system.items():
        bars[f"{model}, {name}"] = row["tokens_per_s"] or 0.0
study.draw_bars(HERE / "plot.svg", panels)
