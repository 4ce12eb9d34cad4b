"""The table of results/studies/batch-and-tensor-split/README.md, from data.csv."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import rows as study  # noqa: E402

WAYS = ["1", "2", "4", "8"]


def lines():
    rows = study.load(HERE)
    found = study.best(rows, "platform", "workload.model", "workload.global_batch", "strategy.tensor_ways")
    questions = list(dict.fromkeys(key[:3] for key in found))
    cells = []
    for question in questions:
        answers = [found[(*question, ways)] for ways in WAYS]
        fastest = max(answers, key=lambda row: row["tokens_per_s"] or 0.0)
        speeds = [f"**{study.speed(row)}**" if row is fastest else study.speed(row) for row in answers]
        cells.append([*question, *speeds, fastest["bound_by"]])
    titles = ["machine", "model", "batch", *(f"{ways} way{'s' * (ways != '1')}" for ways in WAYS), "the fastest is bound by"]
    yield from study.table(titles, cells)
