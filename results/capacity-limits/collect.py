#!/usr/bin/env python3
"""Makes data.csv from the JSON answers in a folder: collect.py FOLDER COMMIT. README.md describes the columns."""
import json
import pathlib
import sys

folder, commit = pathlib.Path(sys.argv[1]), sys.argv[2]
print("commit,machine,global_batch,setting,model,parameters,layers,hidden,max_batch,"
      "step_s,simulated_step_s,tokens_per_s,limited_by,limiting_line")


def row(machine, batch, setting, model, max_batch, *rest):
    name = model["name"].replace(",", ";") if model else ""
    shape = [model[key] for key in ("parameters", "layers", "hidden")] if model else ["", "", ""]
    fields = [commit, machine, batch, setting, name, *shape, max_batch, *rest]
    print(",".join("" if field is None else str(field) for field in fields))


for machine in ("dgx-a100-40", "dgx-a100-80"):
    for batch in (8, 16, 32, 64):
        answer = json.loads((folder / f"{machine}-{batch}.json").read_text())
        simulated = json.loads((folder / f"{machine}-{batch}.simulated.json").read_text())
        largest = answer["max_model"]
        row(machine, batch, "as it is", largest, answer["max_batch"], largest["step_s"],
            simulated["step_s"], largest["tokens_per_s"], answer["limited_by"],
            answer["limiting_line"])
        for ladder in answer["ladders"]:
            limit = ladder["limit"] or {"pool": "", "line": ""}
            row(machine, batch, ladder["ladder"], ladder["largest"], "", "", "", "",
                limit["pool"], limit["line"])
        for more in answer["more"]:
            row(machine, batch, more["change"], more["max_model"], more["max_batch"], "", "", "", "",
                "")
