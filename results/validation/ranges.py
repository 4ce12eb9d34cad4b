#!/usr/bin/env python3
"""How far measured steps lie from predicted ones, for each software profile: its step_range.

    ranges.py      prints for each profile the factors that hold nine of ten rows, and how many rows of
                   a model (of a set, for all that offload together) the factors of the others hold
"""

import csv
import math
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
SPREAD = 0.05  # on each side


def ratios():
    """By profile, (group, measured / predicted)."""
    found = {}
    with open(HERE / "rows.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["quantity"] == "step_s":
                ratio = float(row["measured"]) / float(row["predicted"])
                found.setdefault(row["profile"], []).append((row["set"], row["group"], ratio))
    return found


def factors(values):
    """The range that a further value leaves with a chance of one in twenty on each side (split conformal
    prediction); all of them, where they are few."""
    ordered = sorted(values)
    out = max(math.floor(SPREAD * (len(ordered) + 1)) - 1, 0)
    return ordered[out], ordered[-1 - out]


def held_out(rows, part):
    """The part of the rows that the factors of all others hold; `part` of a row says which are its own."""
    inside = 0
    for one in {part(row) for row in rows}:
        low, high = factors([row[2] for row in rows if part(row) != one] or [1.0])
        inside += sum(low <= row[2] <= high for row in rows if part(row) == one)
    return inside / len(rows)


def told(name, rows, part, what):
    low, high = factors([row[2] for row in rows])
    print(
        f"{name}: {len(rows)} steps, low {low:.3f}, high {high:.3f}; "
        f"of {what} left out {100 * held_out(rows, part):.0f} % inside"
    )


# Software that keeps state in CPU memory: each has too few steps for a range of its own.
OFFLOADING = ("deepspeed", "colossalai", "patrickstar")


def main():
    pooled = []
    for profile, rows in sorted(ratios().items()):
        if profile.startswith(OFFLOADING):
            pooled += rows
        told(profile, rows, lambda row: row[:2], "models")
    told("all that offload", pooled, lambda row: row[0], "sets")


if __name__ == "__main__":
    main()
