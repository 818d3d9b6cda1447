"""Measures of how the code reads, printed by `make check`. They inform; they never fail.

Density: AST nodes per line of a function, the median over all functions of a room.
Openers: the share of docstrings that open with a word that refers elsewhere.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "poller"
ON_THE_WAY_OF_A_POLL = ("beat", "tasks", "workers", "collectors", "state")
OPENER = re.compile(
    r"(of|what|who|whose|or|so|and|but|that|those|these|it|its|they|such|else|also"
    r"|nobody|somebody|whoever)\b",
    re.IGNORECASE,
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def density(function: Function) -> float:
    last_line = function.end_lineno or function.lineno
    nodes = sum(1 for _ in ast.walk(function))
    return nodes / (last_line - function.lineno + 1)


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function):
            text = ast.get_docstring(node)
            if text:
                yield text


def print_row(room: str, files: list[Path]) -> None:
    trees = [ast.parse(file.read_text()) for file in files]
    lines = sum(len(file.read_text().splitlines()) for file in files)
    densities = [density(function) for tree in trees for function in functions(tree)]
    texts = [text for tree in trees for text in docstrings(tree)]
    openers = sum(1 for text in texts if OPENER.match(text))
    long = sum(len(line) > 100 for file in files for line in file.read_text().splitlines())
    median = statistics.median(densities) if densities else 0.0
    share = 100 * openers / len(texts) if texts else 0.0
    print(f"  {room:<16}{len(files):>6}{lines:>8}{median:>11.1f}{share:>9.0f} %{long:>8}")


def main() -> int:
    print(f"  {'room':<16}{'files':>6}{'lines':>8}{'nodes/line':>11}{'openers':>11}{'>100':>8}")
    everything = sorted(PACKAGE.rglob("*.py"))
    rooms: dict[str, list[Path]] = {}
    for file in everything:
        parts = file.relative_to(PACKAGE).parts
        rooms.setdefault(parts[0] if len(parts) > 1 else "(root)", []).append(file)
    for room, files in sorted(rooms.items()):
        print_row(room, files)
    way = [file for room in ON_THE_WAY_OF_A_POLL for file in rooms[room]]
    print_row("way of a poll", way)
    print_row("all", everything)
    return 0


if __name__ == "__main__":
    sys.exit(main())
