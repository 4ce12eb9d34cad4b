"""Asks `offstage plan` what it says of a model on a machine; shared by the folders of results/.

    tool = Tool("build/release/offstage")
    question = {"platform": "dgx-a100-40", "model": "llama-2-7b", "sequence_length": 2048, "global_batch": 8}
    answer = tool.plan(question, "auto")
    answer["fits"], answer["limited_by"]
"""

import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The knobs that need least memory with everything in CPU memory; residency stays open, since it
# trades CPU memory for GPU memory. A yes or no under these takes one simulation instead of dozens.
LEAST_MEMORY = {
    "micro_batch": 1,
    "layers_per_submodel": 1,
    "weight_slots": 1,
    "gradient_slots": 1,
    "host_gradient_slots": 1,
    "activations": "cpu",
    "nvme_state": 0,
}


class Refused(Exception):
    """The tool found the question itself wrong: exit status 2 or 3, with its message."""


class Tool:
    def __init__(self, binary):
        self.binary = str(binary)
        self.known = {}  # answers, by question: several published rows ask the same

    def fitting(self, question, least, fixed):
        """("least", answer) when the knobs that need least memory fit, which takes seconds; else
        ("open", answer) with all knobs open but those of `fixed`, which may trade the memory of one
        pool for that of another.
        """
        answer = self.plan(question, least)
        return ("least", answer) if answer["fits"] else ("open", self.plan(question, fixed or "auto"))

    def plan(self, question, strategy, explain=False):
        """The JSON object of `plan --json`: a yes (exit status 0) or a no (1).

        question: platform, model, sequence_length, global_batch and, where it is not bf16, precision.
        """
        workload = {"precision": "bf16", "optimizer": "adamw"} | question
        config = {"platform": workload.pop("platform"), "workload": workload, "strategy": strategy}
        return self.answer("plan", config, *["--explain"] * explain)

    def machine(self, platform):
        """The JSON object of `platform --json`."""
        return self.answer("platform", {"platform": platform})

    def answer(self, command, config, *options):
        key = json.dumps([command, config, options], sort_keys=True)
        if key not in self.known:
            self.known[key] = self.run(command, config, *options)
        return self.known[key]

    def run(self, command, config, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "run.json"
            path.write_text(json.dumps(config))
            asked = [self.binary, command, str(path), "--json", *options]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise Refused(done.stderr.strip().replace(str(path), "run.json"))
        return json.loads(done.stdout)


def totals(answer, prefix):
    """Planned bytes of the pools whose name starts with `prefix`, e.g. host or gpu."""
    return [pool["total_bytes"] for pool in answer["memory"] if pool["pool"].startswith(prefix)]
