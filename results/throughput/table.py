"""The table of results/throughput/README.md, from data.csv."""

import csv
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
TOKENS = 32 * 128


def lines():
    with open(HERE / "data.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    ours = next(float(row["median_s"]) for row in rows if row["training"] == "offstage")
    yield "| training | steps | s a step, median | fastest | slowest | tokens/s | throughput of offstage to it |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        median = float(row["median_s"])
        yield (
            f"| {row['training']} | {row['steps']} | {median:.2f} | {float(row['fastest_s']):.2f} | "
            f"{float(row['slowest_s']):.2f} | {TOKENS / median:.0f} | {median / ours:.2f} |"
        )
