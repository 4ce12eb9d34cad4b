#!/usr/bin/env python3
"""Keeps the tables in the READMEs of results/ equal to the data beside them.

    readme.py FOLDER           writes the table of FOLDER/table.py between the two marks in its README
    readme.py --check ROOT     exit status 1 and one line for each README that says something else

A folder takes part by having a table.py with a function lines(), which reads the folder's data.
"""

import importlib.util
import pathlib
import sys

BEGIN, END = "<!-- table: written by readme.py -->", "<!-- end of table -->"


def table_of(folder):
    spec = importlib.util.spec_from_file_location(f"table_{folder.name}", folder / "table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return "\n".join(module.lines())


def with_table(text, table):
    """The README with this table between its marks; None when the marks are not there once each."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        return None
    return f"{text[:text.index(BEGIN)]}{BEGIN}\n{table}\n{text[text.index(END):]}"


def complaints(root):
    """A line for each folder under `root` whose README and data disagree."""
    for table in sorted(root.rglob("table.py")):
        readme = table.parent / "README.md"
        text = readme.read_text()
        expected = with_table(text, table_of(table.parent))
        if expected is None:
            yield f"{readme}: the marks of the table are missing"
        elif expected != text:
            yield f"{readme}: the table is not what data.csv says; run readme.py {table.parent}"


def main():
    if sys.argv[1] == "--check":
        found = list(complaints(pathlib.Path(sys.argv[2])))
        print("\n".join(found) if found else "results: READMEs say what the data say")
        sys.exit(1 if found else 0)
    readme = pathlib.Path(sys.argv[1]) / "README.md"
    text = with_table(readme.read_text(), table_of(readme.parent))
    if text is None:
        sys.exit(f"{readme}: put these two lines where the table goes:\n{BEGIN}\n{END}")
    readme.write_text(text)


if __name__ == "__main__":
    main()
