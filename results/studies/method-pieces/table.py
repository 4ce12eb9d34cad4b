"""The table of results/studies/method-pieces/README.md, from data.csv."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import rows as study  # noqa: E402


def piece(case):
    return case.split(", ")[0]


def lines():
    found = study.best(study.load(HERE), "workload.global_batch", "case", name=piece)
    batches = list(dict.fromkeys(batch for batch, _ in found))
    cells = []
    for case in dict.fromkeys(case for _, case in found):
        line = [case]
        for batch in batches:
            row, whole = found[(batch, case)], found[(batch, "the whole method")]
            kept = row["tokens_per_s"] / whole["tokens_per_s"] if row["tokens_per_s"] else 0.0
            line += [study.speed(row), f"{100 * kept:.0f} %", row["bound_by"]]
        cells.append(line)
    titles = ["case"]
    for batch in batches:
        titles += [f"batch {batch}: tokens/s", "of the whole", "bound by"]
    yield from study.table(titles, cells)
