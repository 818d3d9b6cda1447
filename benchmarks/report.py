"""The output of results: tables on stdout, and a JSON file for programs and the docs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console, JustifyMethod
from rich.table import Table

from benchmarks.section import Figure, Findings, Grid, number
from poller.cli.output import render

#: The width of tables that are not on a terminal: no text is cut.
PIPED_WIDTH = 160
_RESULT = {True: "met", False: "MISSED", None: ""}


def document(
    name: str, size: str, findings: Findings, machine: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all results of a section for the JSON file."""
    return {
        "schema": "poller.bench/1",
        "section": name,
        "size": size,
        "command": f"make bench SECTIONS={name} SIZE={size}",
        "machine": dict(machine),
        "figures": {
            figure.name: {**asdict(figure), "met": figure.met} for figure in findings.figures
        },
        "notes": list(findings.notes),
        "series": {
            name: [list(point) for point in points] for name, points in findings.series.items()
        },
        "grid": asdict(findings.grid) if findings.grid else None,
        "against": findings.against,
        "comparisons": {
            one.name: {**asdict(one), "ratio": round(one.ratio, 2)} for one in findings.comparisons
        },
    }


def save(folder: Path, document: Mapping[str, Any]) -> Path:
    """Write the section's JSON file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{document['section']}.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path


def show(name: str, size: str, findings: Findings, machine: Mapping[str, Any]) -> None:
    """Print the tables on stdout; without colours and lines if it is not a terminal."""
    console = _console()
    where = (
        f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gb']} GB, "
        f"load before {machine['load_before']}"
    )
    console.print(f"\n{name}, {size} size; {where}", highlight=False)
    console.print(_figures(findings))
    if findings.comparisons:
        console.print(_comparisons(findings))
    if findings.grid:
        console.print()
        console.print(_grid(findings.grid))
    for note in findings.notes:
        console.print(note, highlight=False)


def summary(found: Mapping[str, Findings]) -> None:
    """Print every goal of every section, and whether it was reached."""
    table = _table(
        ("section", "left"),
        ("", "left"),
        ("", "right"),
        ("unit", "left"),
        ("goal", "left"),
        ("", "left"),
    )
    for name, findings in found.items():
        for figure in findings.figures:
            if figure.goal:
                row = (
                    name,
                    figure.text,
                    number(figure.value),
                    figure.unit,
                    figure.goal,
                    _RESULT[figure.met],
                )
                table.add_row(*row, style="bold red" if figure.met is False else None)
    console = _console()
    console.print("\nthe goals of this run", highlight=False)
    console.print(table)


def _console() -> Console:
    console = render.console()
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    return console


def _figures(findings: Findings) -> Table:
    table = _table(("", "left"), ("", "right"), ("unit", "left"), ("goal", "left"))
    for figure in findings.figures:
        table.add_row(figure.text, number(figure.value), figure.unit, _goal(figure))
    return table


def _comparisons(findings: Findings) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("", "the board", findings.against, "unit", "ratio"):
        table.add_column(title, justify="left" if title in ("", "unit") else "right")
    for one in findings.comparisons:
        table.add_row(
            one.text, number(one.ours), number(one.theirs), one.unit, f"{number(one.ratio)} x"
        )
    return table


def _grid(grid: Grid) -> Table:
    table = _table(("", "left"), *((title, "right") for title in grid.columns), ("unit", "left"))
    for text, unit, values in grid.rows:
        table.add_row(text, *("-" if value is None else number(value) for value in values), unit)
    return table


def _table(*columns: tuple[str, JustifyMethod]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title, justify in columns:
        table.add_column(title, justify=justify, no_wrap=True)
    return table


def _goal(figure: Figure) -> str:
    return f"{figure.goal} {_RESULT[figure.met]}".strip()
