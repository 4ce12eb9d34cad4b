#!/usr/bin/env python3
"""Checks what no compiler checks: layers, third-party headers, banned words, sizes, forgotten files.

    tidy.py ROOT      prints one complaint a line as file:line: text; exit status 1 when there is one

DESIGN section 3 in one table: a folder includes itself and what is to its left.
"""

import collections
import pathlib
import re
import sys

LAYERS = {
    "platform": [],
    "workloads": ["platform"],
    "scheduler": ["platform", "workloads"],
    "imports": ["platform", "workloads", "scheduler"],
    "report": ["platform", "workloads", "scheduler"],
    "sim": ["platform", "workloads", "scheduler"],
    "exec": ["platform", "workloads", "scheduler", "report"],
    "calibration": ["platform", "workloads", "scheduler", "report", "sim", "exec"],
    "cli": [
        "platform", "workloads", "scheduler", "imports", "report", "sim", "exec", "calibration"
    ],
}
CODE = {".h", ".cpp", ".cu", ".cuh"}
SOURCES = {".cpp", ".cu"}
TEXT = CODE | {".md", ".sh", ".py", ".yaml", ".json", ".cmake", ".txt"}

SIMGRID = re.compile(r"^(simgrid|xbt|smpi)/")
TORCH = re.compile(r"^(torch/|ATen/|c10/|cuda|nccl|cublas)")
TORCH_FOLDERS = {"exec", "calibration", "tests/exec", "tests/calibration"}

HEADER_LINES, SOURCE_LINES = 200, 600

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
# Spelled in pieces, so that this file passes its own check.
UNFINISHED = re.compile(r"\b(" + "|".join(["FIX" + "ME", "TO" + "DO", "XX" + "X"]) + r")\b")
NAMESPACE = re.compile(r"\busing\s+namespace\s+std\b")
# A scheduler decides from its arguments alone: no clock, no randomness, no environment.
IMPURE = re.compile(
    r"\b(getenv|rand|srand|random_device|system_clock|steady_clock|high_resolution_clock)\b"
)
# Types that start a line stand in a namespace's own scope, as clang-format writes them.
TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)(?: final)?(?: : [^;{]*)? \{", re.M)
UNNAMED = re.compile(r"^namespace \{$.*?^\}  // namespace$", re.M | re.S)
NAMESPACE_NAME = re.compile(r"^namespace ([\w:]+) \{", re.M)
MACHINE_PATH = re.compile(r"(?<![\w.$}~-])/(home|root|work|Users)/\w")


def home_of(path):
    """platform/x.h -> platform; tests/platform/x.cpp -> tests/platform; tests/x.cpp -> tests."""
    if path.parts[0] == "tests" and len(path.parts) > 2:
        return "tests/" + path.parts[1]
    return path.parts[0]


def may_include(home, folder):
    if home == folder:
        return True
    if home.startswith("tests"):
        tested = home.partition("/")[2]
        # Tests see what they test and its lower layers. What several folders share (the conformance
        # suite, benchmarks) stands on the scheduler, and may look at either backend.
        below = LAYERS[tested] + [tested] if tested in LAYERS else LAYERS["cli"] + ["cli"]
        return folder == "tests" or folder in below
    return folder in LAYERS.get(home, [])


def without_comments(text):
    """The same lines, with comments blanked, so that prose may name what code may not."""
    keep_newlines = lambda match: re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'//[^\n]*|/\*.*?\*/', keep_newlines, text, flags=re.S)


def check_code(path, text):
    home = home_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        include = INCLUDE.match(line)
        target = include.group(1) if include else ""
        folder = target.split("/")[0] if "/" in target else ""
        if folder in LAYERS and not may_include(home, folder):
            yield number, f"{home}/ may not include {target}: {folder}/ is not below it"
        if SIMGRID.match(target) and home != "sim":
            yield number, f"{home}/ may not include {target}: SimGrid stays in sim/"
        if TORCH.match(target) and home not in TORCH_FOLDERS:
            yield number, f"{home}/ may not include {target}: LibTorch and CUDA stay in exec/"
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        if NAMESPACE.search(line):
            yield number, "using namespace std"
        impure = IMPURE.search(line) if home == "scheduler" else None
        if impure:
            yield number, f"{impure.group(1)} in scheduler/: a policy depends on its arguments alone"
    lines = text.count("\n")
    limit = HEADER_LINES if path.suffix in (".h", ".cuh") else SOURCE_LINES
    if lines > limit:
        yield 1, f"{lines} lines, at most {limit}"


def check_text(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if path.suffix in CODE | {".py", ".sh", ".cmake"} and UNFINISHED.search(line):
            yield number, "unfinished: do it, or say it as a test"
        if MACHINE_PATH.search(line):
            yield number, "a path of one machine"


def check_listed(root, path):
    """Some CMakeLists.txt above the source names it by its path from there."""
    for folder in path.parents:
        lists = root / folder / "CMakeLists.txt"
        if lists.exists():
            name = re.escape(str(path.relative_to(folder)))
            if re.search(r"(?<![\w./-])" + name + r"(?![\w.-])", lists.read_text()):
                return
    yield 1, "no CMakeLists.txt lists this file"


def types_of(text):
    """(name with its namespace, line) of the types that other files' types could be taken for."""
    blanked = lambda match: re.sub(r"[^\n]", " ", match.group(0))
    text = UNNAMED.sub(blanked, text)
    namespaces = [(match.start(), match.group(1)) for match in NAMESPACE_NAME.finditer(text)]
    for match in TYPE.finditer(text):
        around = [name for start, name in namespaces if start < match.start()]
        yield "::".join(around[-1:] + [match.group(1)]), text.count("\n", 0, match.start()) + 1


def check_defined_once(types):
    """Two types of one name are one to the linker, which keeps the functions of either."""
    for name, places in types.items():
        for path, line in places[1:]:
            yield path, line, f"{name} is defined in {places[0][0]} too: the linker mixes them up"


def files_of(root):
    for folder in [*LAYERS, "tests", "scripts", "cmake", "results"]:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in TEXT and "__pycache__" not in path.parts:
                yield path.relative_to(root)


def check_tree(root):
    """Yields (path, line, text) for every complaint about the tree at root."""
    simgrid_users = []
    types = collections.defaultdict(list)
    for path in files_of(root):
        text = (root / path).read_text(encoding="utf-8")
        complaints = list(check_text(path, text))
        if path.suffix in CODE:
            complaints += check_code(path, text)
            for name, line in types_of(text):
                types[name].append((path, line))
            targets = [match.group(1) for match in map(INCLUDE.match, text.splitlines()) if match]
            if home_of(path) == "sim" and any(map(SIMGRID.match, targets)):
                simgrid_users.append(path)
        if path.suffix in SOURCES:
            complaints += check_listed(root, path)
        yield from ((path, number, complaint) for number, complaint in complaints)
    yield from check_defined_once(types)
    if len(simgrid_users) > 1:
        for path in simgrid_users:
            yield path, 1, f"SimGrid in {len(simgrid_users)} files of sim/; one is allowed"


def main():
    root = pathlib.Path(sys.argv[1])
    complaints = [f"{path}:{line}: {text}" for path, line, text in check_tree(root)]
    print("\n".join(complaints) if complaints else "tidy: nothing to complain about")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
