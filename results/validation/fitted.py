"""Which published rows a profile has seen. Everything else is unseen.

`megatron-deepspeed-2023` is fitted to every seventh row of vtrain.csv, `fsdp-2023` to every third of mosaic's
rows on A100; the profiles' first comments say so. Numbers of the profiles for offloading software that were
derived from published steps say so in their sources.
"""

import csv
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def fitted_ids():
    with open(ROOT / "calibration/reference/vtrain.csv", newline="") as file:
        ids = {row["id"] for row in list(csv.DictReader(file))[::7]}
    with open(ROOT / "results/validation/rows.csv", newline="") as file:
        steps = [row["id"] for row in csv.DictReader(file) if row["quantity"] == "step_s"]
    return ids | set([name for name in steps if name.startswith("mosaic_a100")][::3])
