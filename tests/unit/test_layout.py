"""The layout of the package: few modules to a folder, unique names, a docstring for each
package.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import poller

PACKAGE = Path(poller.__file__).parent
MOST_MODULES = 16
#: One file for each typed word: `poller device` is `device.py`.
UNBOUNDED = {"cli/commands"}
#: The same part of a repeated pattern: every collector has its options, every contract its api.
PATTERN_NAMES = {"api", "registry", "options", "collector", "__main__"}
#: One verb keeps one name: the Celery task `poller.poll` and the command `poller poll`.
SHARED_VERBS = {"poll"}


def modules() -> list[Path]:
    found = (path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
    return [path for path in found if "migrations" not in path.parts]


def test_a_folder_holds_at_most_sixteen_modules() -> None:
    """Only `cli/commands` may hold more: one module for each typed word."""
    folders = defaultdict(list)
    for path in modules():
        if path.stem != "__init__":
            folders[str(path.parent)].append(path.stem)
    crowded = {
        folder: len(names)
        for folder, names in folders.items()
        if len(names) > MOST_MODULES and folder not in UNBOUNDED
    }
    assert crowded == {}


def test_a_module_name_is_used_once() -> None:
    """A name leads to one file, except for the names of a repeated pattern."""
    places = defaultdict(list)
    for path in modules():
        if path.stem != "__init__" and path.stem not in PATTERN_NAMES | SHARED_VERBS:
            places[path.stem].append(str(path))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_every_package_has_a_docstring() -> None:
    """The `__init__` of a package opens with a docstring."""
    silent = []
    for path in modules():
        if path.stem == "__init__":
            tree = ast.parse((PACKAGE / path).read_text())
            if not ast.get_docstring(tree):
                silent.append(str(path))
    assert silent == []


def test_a_broad_except_names_its_door() -> None:
    """A comment beside `except Exception` says which code that is not ours is called."""
    unexplained = []
    for path in modules():
        lines = (PACKAGE / path).read_text().splitlines()
        for number, line in enumerate(lines, 1):
            if "except Exception" in line and "  # " not in line:
                unexplained.append(f"{path}:{number}")
    assert unexplained == []
