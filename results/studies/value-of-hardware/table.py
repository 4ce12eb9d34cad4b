"""The table of results/studies/value-of-hardware/README.md, from data.csv."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import rows as study  # noqa: E402


def lines():
    found = study.best(study.load(HERE), "case", "case of hardware")
    cases = list(dict.fromkeys(case for case, _ in found))
    cells = []
    for hardware in dict.fromkeys(hardware for _, hardware in found):
        line = [hardware]
        for case in cases:
            row, before = found[(case, hardware)], found[(case, "as it is")]
            gain = ""
            if row["tokens_per_s"] and before["tokens_per_s"] and row is not before:
                gain = f" ({100 * (row['tokens_per_s'] / before['tokens_per_s'] - 1):+.0f} %)"
            line.append(study.speed(row) + gain)
        cells.append(line)
    cells.append(["bound of the machine as it is", *(found[(case, "as it is")]["bound_by"] or "" for case in cases)])
    yield from study.table(["tokens/s with", *cases], cells)
