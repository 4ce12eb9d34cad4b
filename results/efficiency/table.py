"""The table of results/efficiency/README.md, from data.csv."""

import csv
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
ENGINES = ["compute", "optimizer", "h2d", "d2h", "collective"]


def percent(text):
    return f"{100 * float(text):.1f}"


def lines():
    yield (
        "| model | batch | step, s | tokens/s | bound by | efficiency, % | GPU busy | optimizer | h2d | d2h | "
        "collective | resident, kept |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    with open(HERE / "data.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["fits"] == "no":
                yield f"| {row['model']} | {row['global_batch']} | does not fit |" + " |" * 9
                continue
            busy = " | ".join(percent(row[f"{engine}_utilisation"]) for engine in ENGINES)
            yield (
                f"| {row['model']} | {row['global_batch']} | {float(row['step_s']):.4g} | {row['tokens_per_s']} | "
                f"{row['bound_by']} | {percent(row['efficiency'])} | {busy} | "
                f"{row['resident_state']}, {row['kept_activations']} |"
            )
