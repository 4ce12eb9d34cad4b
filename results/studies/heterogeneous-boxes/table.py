"""The tables of results/studies/heterogeneous-boxes/README.md, from data.csv and lost.json."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import rows as study  # noqa: E402


def found():
    """{(case, batch): {shares: row}}"""
    cases = {}
    for row in study.load(HERE):
        cases.setdefault((row["case"], row["workload.global_batch"]), {})[row["strategy.shares"]] = row
    return cases


def shares_of(row):
    shares = json.loads(row["knobs"]).get("shares") if row["knobs"] else None
    return " ".join(str(share) for share in shares) if shares else "even"


def lines():
    cases = found()
    cells = []
    for (case, batch), rows in cases.items():
        whole = cases[(case.split(", ")[0] + ", as it is", batch)]["even"]
        line = [case, batch]
        for shares in ("even", "auto"):
            row = rows[shares]
            kept = 100 * row["tokens_per_s"] / whole["tokens_per_s"] if row["tokens_per_s"] else 0.0
            line += [study.speed(row), f"{kept:.0f} %"]
        cells.append(line + [shares_of(rows["auto"])])
    yield from study.table(
        ["machine", "sequences", "even shares, tokens/s", "of the even machine", "chosen shares, tokens/s",
         "of the even machine", "micro-batches of each GPU"], cells)
    lost = json.loads((HERE / "lost.json").read_text())["lost_gpu"]
    yield ""
    yield (f"A run of 300 steps that loses {lost['gpu']} in step {lost['step']}: {lost['step_s_before']:.2f} s a step "
           f"before, {lost['step_s_after']:.2f} s after on seven GPUs; {lost['steps_lost']} steps are lost since the "
           f"checkpoint ({lost['time_lost_s'] / 60:.1f} min). The whole run takes {lost['run_s'] / 3600:.2f} h instead "
           f"of {lost['run_s_undisturbed'] / 3600:.2f} h.")
