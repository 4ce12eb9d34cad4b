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


def is_right(estimate, case):
    return (estimate["fits"] == "yes") == (case["outcome"] in ("fits", "slow"))


def estimate_text(estimate, case):
    if estimate is None:
        return ""
    verdict = "fits" if estimate["fits"] == "yes" else "does not fit"
    mark = "" if is_right(estimate, case) else " (**wrong**)"
    host = f", host {estimate['host_gb']}" if estimate["host_gb"] else ""
    return f"{estimate['estimate']}: GPU {estimate['gpu_gb']}{host} GB, {verdict}{mark}"


def summary(cases, answers, estimates):
    """Counts by outcome: what offstage says, and whether the estimator of the user's system was right."""
    fits, right, wrong = (collections.Counter() for _ in range(3))
    for case in cases:
        fits[case["outcome"], answers[case["id"]]["fits"]] += 1
        estimate = estimates.get(case["id"])
        if estimate:
            (right if is_right(estimate, case) else wrong)[case["outcome"]] += 1
    yield "| what happened to the user | runs | offstage fits | does not | estimator right | wrong |"
    yield "|---|---|---|---|---|---|"
    for outcome in OUTCOMES:
        yes, no = fits[outcome, "yes"], fits[outcome, "no"]
        count = yes + no + fits[outcome, "refused"]
        if count:
            yield f"| {outcome} | {count} | {yes} | {no} | {right[outcome]} | {wrong[outcome]} |"


def read(name):
    with open(HERE / name, newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def lines():
    cases = yaml.safe_load((HERE / "cases.yaml").read_text())["cases"]
    answers, estimates = read("data.csv"), read("estimates.csv")
    asked = [case for case in cases if "ask" in case]
    yield from summary(asked, answers, estimates)
    yield ""
    yield "| case | user's run | outcome | offstage on that machine | estimator of the user's system |"
    yield "|---|---|---|---|---|"
    for case in asked:
        theirs = estimate_text(estimates.get(case["id"]), case)
        yield (
            f"| {case['id']} | {run_text(case['run'])} | {case['outcome']} | "
            f"{ours(answers[case['id']])} | {theirs} |"
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
