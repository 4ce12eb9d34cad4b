"""The tables of results/validation/README.md, from summary.json and rows.csv."""

import csv
import json
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from fitted import fitted_ids  # noqa: E402


def percent(value):
    return "" if value is None else f"{100 * value:.1f}"


def signed(value):
    return "" if value is None else f"{100 * value:+.1f}"


def part(right, whole):
    return f"{right} of {whole}" if whole else ""


def set_lines(sets):
    yield (
        "| set | rows | answered | steps | mean error, % | median | 9 of 10 | bias | worst | its row |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for one in sets:
        worst = one["worst"] or {"error": None, "id": ""}
        yield (
            f"| {one['name']} | {one['rows']} | {one['answered']} | {one['steps']} | {percent(one['mape'])} | "
            f"{percent(one['median'])} | {percent(one['p90'])} | {signed(one['bias'])} | "
            f"{signed(worst['error'])} | {worst['id']} |"
        )


# Numbers of the profiles that predict them were derived from some of their rows, by hand.
USED = {"a800", "opt13b", "dszoff", "corebind", "gemini"}


def error_lines():
    """Fitted, used and unseen rows apart."""
    fitted = fitted_ids()
    parts = {}
    with open(HERE / "rows.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["quantity"] == "step_s":
                kind = "fitted" if row["id"] in fitted else "unseen"
                kind = "used" if row["set"] in USED else kind
                parts.setdefault((row["set"], kind), []).append(row)
    yield (
        "| set | rows | steps | mean error, % | median | 9 of 10 | bias | in the interval | its median width, % |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for (name, kind), rows in parts.items():
        errors = [float(row["error"]) for row in rows]
        sizes = sorted(abs(error) for error in errors)
        ranged = [row for row in rows if row["low"]]
        inside = sum(float(r["low"]) <= float(r["measured"]) <= float(r["high"]) for r in ranged)
        widths = sorted((float(r["high"]) - float(r["low"])) / float(r["predicted"]) for r in ranged)
        yield (
            f"| {name} | {kind} | {len(rows)} | {percent(sum(sizes) / len(sizes))} | "
            f"{percent(sizes[len(sizes) // 2])} | {percent(sizes[math.ceil(0.9 * len(sizes)) - 1])} | "
            f"{signed(sum(errors) / len(errors))} | {part(inside, len(ranged))} | "
            f"{percent(widths[len(widths) // 2]) if widths else ''} |"
        )


def tensor_lines():
    """vTrain's rows by the number of tensor ranks, where the errors differ."""
    parts = {}
    with open(HERE / "rows.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["set"] == "vtrain" and row["quantity"] == "step_s":
                parts.setdefault(row["id"].split("_t")[1].split("_")[0], []).append(float(row["error"]))
    yield "| vtrain, tensor ranks | steps | mean error, % | bias | worst |"
    yield "|---|---|---|---|---|"
    for ranks, errors in sorted(parts.items()):
        mean = sum(abs(error) for error in errors) / len(errors)
        yield (
            f"| {ranks} | {len(errors)} | {percent(mean)} | {signed(sum(errors) / len(errors))} | "
            f"{signed(max(errors, key=abs))} |"
        )


def memory(one, key):
    summary = one[key]
    return "" if summary is None else f"{percent(summary['mape'])} % of {summary['count']}"


def other_lines(sets):
    yield (
        "| set | GPU memory, mean error | CPU memory | ran and fits | ran, said too large | "
        "failed, said to fit | failed and too large | largest model right | pairs in the right order |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for one in sets:
        if not one["answered"]:
            continue
        outcomes, largest, ranking = one["outcomes"], one["largest"], one["ranking"]
        yield (
            f"| {one['name']} | {memory(one, 'gpu_memory')} | {memory(one, 'host_memory')} | "
            f"{outcomes['ran_fits']} | {outcomes['ran_too_large']} | {outcomes['failed_fits']} | "
            f"{outcomes['failed_too_large']} | {part(largest['right'], largest['rows'])} | "
            f"{part(ranking['right'], ranking['pairs'])} |"
        )


def refused_lines(sets):
    yield "| set | rows | why there is no answer |"
    yield "|---|---|---|"
    for one in sets:
        for refused in one["refused"]:
            yield f"| {one['name']} | {refused['rows']} | {refused['reason']} |"


def lines():
    sets = json.loads((HERE / "summary.json").read_text())["sets"]
    yield from set_lines(sets)
    yield ""
    yield from error_lines()
    yield ""
    yield from tensor_lines()
    yield ""
    yield from other_lines(sets)
    yield ""
    yield from refused_lines(sets)
