"""How findings look: a table for people, a file for programs and the docs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.section import Figure, Findings, Grid
from poller.cli import render

NOT_MEASURED = "-"
#: Nothing is cut in a file.
PIPED_WIDTH = 160


def save(folder: Path, name: str, size: str, findings: Findings, machine: Mapping[str, Any]) -> Path:
    """Replace the section's file."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "schema": "poller.bench/1",
        "section": name,
        "size": size,
        "command": f"make bench SECTIONS={name} SIZE={size}",
        "machine": dict(machine),
        "figures": {figure.name: {**asdict(figure), "met": figure.met} for figure in findings.figures},
        "against": findings.against,
        "notes": list(findings.notes),
        "series": {name: [list(point) for point in points] for name, points in findings.series.items()},
        "grid": asdict(findings.grid) if findings.grid else None,
        "comparisons": {one.name: {**asdict(one), "ratio": round(one.ratio, 2)} for one in findings.comparisons},
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path


def show(name: str, size: str, findings: Findings, machine: Mapping[str, Any]) -> None:
    """Tables on stdout; without colours and lines when that is no terminal."""
    console = _console()
    where = (
        f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gb']} GB, load before {machine['load_before']}"
    )
    console.print(f"\n{name}, {size} size; {where}", highlight=False)
    console.print(_figures(findings))
    if findings.comparisons:
        console.print(_comparisons(findings))
    if findings.grid:
        console.print(_grid(findings.grid))
    for note in findings.notes:
        console.print(note, highlight=False)


def _console() -> Console:
    console = render.console()
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    return console


def _figures(findings: Findings) -> Table:
    table = Table(box=None, pad_edge=False)
    for title, justify in (("", "left"), ("", "right"), ("unit", "left"), ("goal", "left")):
        table.add_column(title, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for figure in findings.figures:
        table.add_row(figure.text, number(figure.value), figure.unit, _goal(figure))
    return table


def _comparisons(findings: Findings) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("", "the board", findings.against, "unit", "ratio"):
        table.add_column(title, justify="left" if title in ("", "unit") else "right")
    for one in findings.comparisons:
        table.add_row(one.text, number(one.ours), number(one.theirs), one.unit, f"{number(one.ratio)} x")
    return table


def _grid(grid: Grid) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for title in grid.columns:
        table.add_column(title, justify="right")
    table.add_column("unit", no_wrap=True)
    for text, unit, values in grid.rows:
        table.add_row(text, *(NOT_MEASURED if value is None else number(value) for value in values), unit)
    return table


def _goal(figure: Figure) -> str:
    if figure.met is None:
        return ""
    goals = ((">=", figure.at_least), ("<=", figure.at_most), ("<", figure.below))
    wanted = next(f"{sign} {number(goal)}" for sign, goal in goals if goal is not None)
    return f"{wanted} {'met' if figure.met else 'MISSED'}"


def number(value: float) -> str:
    """Three significant places; large ones as they are."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
