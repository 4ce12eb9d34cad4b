#!/usr/bin/env python3
"""A study under mpirun: the same rows as without, whatever the number of processes.

    study_mpi_test.py OFFSTAGE
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

OFFSTAGE = sys.argv.pop(1)
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n"]

STRATEGY = {
    "split": "batch", "tensor_ways": 1, "layers_per_submodel": 2, "micro_batch": 1,
    "weight_slots": 2, "gradient_slots": 1, "host_gradient_slots": 2, "activations": "cpu",
    "spare_activation_slots": 2, "host_memory": "near", "resident_state": 0, "resident_weights": 0,
    "kept_activations": 0, "nvme_state": 0, "nvme_slots": 3, "policy": "planned",
    "submit_ahead": 4
}
# 3 x 3 rows on two GPUs; a batch of 3 can't be dealt to them.
STUDY = {
    "base": {
        "platform": {"name": "dgx-a100-40", "gpus": 2},
        "workload": {"model": "gpt2", "sequence_length": 256, "global_batch": 4,
                     "precision": "bf16", "optimizer": "adamw"},
        "strategy": STRATEGY,
    },
    "vary": [{"workload.global_batch": [3, 4, 8]}, {"strategy.layers_per_submodel": [1, 2, 4]}],
}


class StudyUnderMpirun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write(STUDY)

    def write(self, study):
        (self.folder / "study.json").write_text(json.dumps(study))

    def run_study(self, *options, before=()):
        command = [*before, OFFSTAGE, "study", "study.json", *options]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)

    def rows(self, *options, before=()):
        done = self.run_study("--json", *options, before=before)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["rows"]

    def test_rows_are_the_same_with_any_number_of_processes(self):
        rows = self.rows("--out", "alone")
        self.assertEqual([row["status"] for row in rows], ["impossible"] * 3 + ["ok"] * 6)
        for processes, options in ((1, []), (2, []), (3, ["--workers", "2"])):
            out = f"of-{processes}"
            with self.subTest(processes=processes):
                got = self.rows("--out", out, *options, before=[*MPIRUN, str(processes)])
                self.assertEqual(got, rows)
                self.assertEqual((self.folder / out / "data.csv").read_text(),
                                 (self.folder / "alone/data.csv").read_text())

    def test_it_goes_on_with_rows_that_are_there(self):
        rows = self.rows("--out", "out")
        journal = (self.folder / "out/rows.jsonl").read_text().splitlines(keepends=True)
        (self.folder / "out/rows.jsonl").write_text("".join(journal[:4]))
        done = self.run_study("--json", "--out", "out", before=[*MPIRUN, "2"])
        self.assertEqual(json.loads(done.stdout)["rows"], rows)
        self.assertIn("3 of 9 rows are there already", done.stderr)
        # With nothing left to compute nobody waits for rows.
        done = self.run_study("--json", "--out", "out", before=[*MPIRUN, "2"])
        self.assertEqual(json.loads(done.stdout)["rows"], rows)

    def test_a_faulty_study_is_refused_once_with_its_place(self):
        self.write(STUDY | {"vary": [{"strategy.micro_bach": [1]}]})
        done = self.run_study(before=[*MPIRUN, "2"])
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("did you mean 'micro_batch'?"), 1)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
