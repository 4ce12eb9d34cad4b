"""The tables of results/cases/README.md, from cases.yaml and data.csv."""

import collections
import csv
import pathlib

import yaml

HERE = pathlib.Path(__file__).resolve().parent
OUTCOMES = ("fits", "slow", "oom_gpu", "oom_host", "killed")


def run_text(run):
    host = f", {run['host_gb']} GB host" if run["host_gb"] else ""
    moved = ", ".join(f"{what} on {where}" for what, where in run["offload"].items())
    system = (run["kind"] or "plain") + (f" ({moved})" if moved else "")
    sizes = ", ".join(
        f"{key} {run[name]}" for key, name in (("s", "seq"), ("mb", "micro_batch")) if run[name]
    )
    return f"{run['model']}, {run['n_gpus']}x {run['gpu']}{host}, {system}" + (
        f", {sizes}" if sizes else ""
    )


def ours(answer):
    if answer["fits"] == "refused":
        return "refused"
    if answer["fits"] == "no":
        return f"**no**: {answer['limited_by']} short by {answer['short_gb']} GB"
    return f"yes: GPU {answer['gpu_gb']}, host {answer['host_gb']} GB"


def estimate_text(answer, outcome):
    if not answer["estimate"]:
        return ""
    right = (answer["estimate_fits"] == "yes") == (outcome in ("fits", "slow"))
    verdict = "fits" if answer["estimate_fits"] == "yes" else "does not fit"
    return f"{answer['estimate']}: {verdict}" + ("" if right else " (**wrong**)")


def summary(cases, answers):
    """Counts by outcome: what offstage says, and whether the estimator of the user's system was right."""
    ours_by = collections.Counter()
    right = collections.Counter()
    for case in cases:
        answer = answers[case["id"]]
        ours_by[case["outcome"], answer["fits"]] += 1
        if answer["estimate"]:
            good = (answer["estimate_fits"] == "yes") == (case["outcome"] in ("fits", "slow"))
            right[case["outcome"], good] += 1
    yield "| what happened to the user | runs | offstage fits | does not | estimator right | wrong |"
    yield "|---|---|---|---|---|---|"
    for outcome in OUTCOMES:
        yes, no = ours_by[outcome, "yes"], ours_by[outcome, "no"]
        count = yes + no + ours_by[outcome, "refused"]
        if count:
            good, bad = right[outcome, True], right[outcome, False]
            yield f"| {outcome} | {count} | {yes} | {no} | {good} | {bad} |"


def lines():
    cases = yaml.safe_load((HERE / "cases.yaml").read_text())["cases"]
    with open(HERE / "data.csv", newline="") as file:
        answers = {answer["id"]: answer for answer in csv.DictReader(file)}
    asked = [case for case in cases if "ask" in case]
    yield from summary(asked, answers)
    yield ""
    yield "| case | user's run | outcome | offstage on that machine | estimator of the user's system |"
    yield "|---|---|---|---|---|"
    for case in asked:
        answer = answers[case["id"]]
        estimate = estimate_text(answer, case["outcome"])
        yield (
            f"| {case['id']} | {run_text(case['run'])} | {case['outcome']} | {ours(answer)} | {estimate} |"
        )
    yield ""
    yield "| not judged | why |"
    yield "|---|---|"
    reasons = collections.defaultdict(list)
    for case in cases:
        if "not_judged" in case:
            reasons[case["not_judged"]].append(case["id"])
    for reason, ids in reasons.items():
        yield f"| {', '.join(ids)} | {reason} |"
