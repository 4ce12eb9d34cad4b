"""The table of results/studies/against-other-systems/README.md, from data.csv."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import rows as study  # noqa: E402


def system(strategy):
    return strategy.split(", ")[0]


def answers():
    """{(platform, model): {system: its fastest row}}"""
    found = study.best(study.load(HERE), "platform", "workload.model", "strategy", name=system)
    questions = {}
    for (platform, model, name), row in found.items():
        questions.setdefault((platform, model), {})[name] = row
    return questions


def lines():
    questions = answers()
    names = list(next(iter(questions.values())))
    cells = []
    for question, by_system in questions.items():
        speeds = [study.speed(by_system[name]) for name in names]
        others = [row["tokens_per_s"] or 0.0 for name, row in by_system.items() if name != "offstage"]
        ours = by_system["offstage"]["tokens_per_s"]
        ratio = f"{ours / max(others):.2f}" if ours and max(others) > 0.0 else "-"
        cells.append([*question, *speeds, ratio])
    yield from study.table(["machine", "model", *names, "offstage over the best of them"], cells)
