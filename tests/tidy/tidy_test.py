#!/usr/bin/env python3
"""Proves that tidy.py sees each kind of fault: a small clean tree, then one fault at a time."""

import pathlib
import tempfile
import unittest

from tidy import check_tree

CLEAN = {
    "platform/CMakeLists.txt": "add_library(offstage_platform STATIC units.cpp)\n",
    "platform/units.h": "#pragma once\n",
    "platform/units.cpp": '#include "platform/units.h"\n',
    "scheduler/CMakeLists.txt": "add_library(offstage_scheduler STATIC manager.cpp)\n",
    "scheduler/manager.cpp": '#include <vector>\n\n#include "platform/units.h"\n// no getenv here\n',
    "sim/CMakeLists.txt": "add_library(offstage_sim STATIC engine.cpp pool.cpp)\n",
    "sim/engine.cpp": '#include <simgrid/s4u.hpp>\n\n#include "platform/units.h"\n',
    "sim/pool.cpp": "#include <vector>\n",
    "exec/CMakeLists.txt": "add_library(offstage_exec STATIC blocks.cpp)\n",
    "exec/blocks.cpp": "#include <ATen/core/Tensor.h>\n",
    "tests/CMakeLists.txt": "offstage_add_tests(SOURCES sim/engine_test.cpp)\n",
    "tests/sim/engine_test.cpp": '#include "sim/engine.h"\n#include "tests/fake_backend.h"\n',
}


class TidyTest(unittest.TestCase):
    def complaints(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**CLEAN, **changes}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return [f"{path}:{line}: {text}" for path, line, text in check_tree(root)]

    def expect(self, place, words, changes):
        """Exactly one complaint, at this place, with these words."""
        found = self.complaints(changes)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(place + ": "), found)
        self.assertIn(words, found[0])

    def test_a_clean_tree_is_left_alone(self):
        self.assertEqual(self.complaints({}), [])

    def test_simgrid_in_the_scheduler_is_caught(self):
        text = "#include <vector>\n#include <simgrid/s4u.hpp>\n"
        self.expect("scheduler/manager.cpp:2", "SimGrid", {"scheduler/manager.cpp": text})

    def test_simgrid_in_a_test_is_caught(self):
        text = "#include <simgrid/s4u.hpp>\n"
        self.expect("tests/sim/engine_test.cpp:1", "SimGrid", {"tests/sim/engine_test.cpp": text})

    def test_simgrid_in_a_second_file_of_sim_is_caught(self):
        found = self.complaints({"sim/pool.cpp": "#include <simgrid/host.h>\n"})
        self.assertEqual([line.split(":")[0] for line in found], ["sim/engine.cpp", "sim/pool.cpp"])

    def test_an_include_against_the_layers_is_caught(self):
        for place, target in [
            ("platform/units.h", "workloads/model.h"),
            ("scheduler/manager.cpp", "sim/engine.h"),
            ("sim/pool.cpp", "exec/blocks.h"),
            ("exec/blocks.cpp", "sim/engine.h"),
            ("exec/blocks.cpp", "cli/main.h"),
            ("tests/sim/engine_test.cpp", "exec/blocks.h"),
        ]:
            with self.subTest(place=place, target=target):
                self.expect(place + ":1", target, {place: f'#include "{target}"\n'})

    def test_torch_outside_the_executor_is_caught(self):
        for header in ["torch/torch.h", "ATen/ATen.h", "c10/core/Device.h", "cuda_runtime.h", "nccl.h"]:
            with self.subTest(header=header):
                self.expect("sim/pool.cpp:1", header, {"sim/pool.cpp": f"#include <{header}>\n"})

    def test_clocks_randomness_and_environment_in_the_scheduler_are_caught(self):
        for word in ["getenv", "rand", "system_clock", "steady_clock", "random_device"]:
            with self.subTest(word=word):
                text = f"int x = std::{word}();\n"
                self.expect("scheduler/manager.cpp:1", word, {"scheduler/manager.cpp": text})
                self.assertEqual(self.complaints({"sim/pool.cpp": text}), [])

    def test_words_of_unfinished_work_are_caught_in_comments_too(self):
        for word in ["FIX" + "ME", "TO" + "DO", "XX" + "X"]:
            with self.subTest(word=word):
                self.expect("sim/pool.cpp:1", "unfinished", {"sim/pool.cpp": f"// {word}: later\n"})

    def test_using_namespace_std_is_caught(self):
        text = "using namespace std;\n"
        self.expect("sim/pool.cpp:1", "using namespace", {"sim/pool.cpp": text})

    def test_long_files_are_caught(self):
        self.expect("platform/units.h:1", "at most 200", {"platform/units.h": "\n" * 201})
        self.expect("platform/units.cpp:1", "at most 600", {"platform/units.cpp": "\n" * 601})

    def test_a_source_that_no_cmakelists_names_is_caught(self):
        self.expect("sim/lost.cpp:1", "no CMakeLists.txt", {"sim/lost.cpp": "\n"})
        # engine.cpp is listed, but not the one in this folder; nor is a longer name's tail.
        self.expect("sim/old/engine.cpp:1", "no CMakeLists.txt", {"sim/old/engine.cpp": "\n"})
        self.expect("sim/ool.cpp:1", "no CMakeLists.txt", {"sim/ool.cpp": "\n"})

    def test_two_types_of_one_name_are_caught(self):
        box = "namespace offstage::sim {\nstruct Box {\n};\n}\n"
        header, source = {"sim/box.h": box}, {"sim/pool.cpp": box}
        self.expect("sim/pool.cpp:2", "offstage::sim::Box is defined in sim/box.h", header | source)
        # Neither in another namespace, nor in one without a name, nor only declared.
        for harmless in [
            box.replace("::sim", "::exec"),
            "namespace offstage::sim {\nnamespace {\nstruct Box {\n};\n}  // namespace\n}\n",
            "namespace offstage::sim {\nstruct Box;\n}\n",
        ]:
            with self.subTest(harmless=harmless):
                self.assertEqual(self.complaints(header | {"sim/pool.cpp": harmless}), [])

    def test_a_path_of_one_machine_is_caught(self):
        text = 'const char* p = "/' + 'home/ada/model.json";\n'
        self.expect("sim/pool.cpp:1", "path of one machine", {"sim/pool.cpp": text})
        self.assertEqual(self.complaints({"sim/pool.cpp": "// platform/home/x.h\n"}), [])


if __name__ == "__main__":
    unittest.main()
