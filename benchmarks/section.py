"""A section of the benchmarks and its results."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from benchmarks import sections
from poller import errors

if TYPE_CHECKING:
    from benchmarks.stage import Stage

NOT_MEASURED = "not measured"


def number(value: float | None) -> str:
    """Format a number with three significant digits; large numbers with all digits."""
    if value is None:
        return NOT_MEASURED
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. `name` is its stable name for programs, `text` its label."""

    name: str
    text: str
    value: float | None  # None: not measured
    unit: str
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached. None without a goal or a value."""
        if self.value is None:
            return None
        if self.at_least is not None:
            return self.value >= self.at_least
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.below is None else self.value < self.below

    @property
    def goal(self) -> str:
        """The goal as text, such as "<= 5"; empty without a goal."""
        goals = ((">=", self.at_least), ("<=", self.at_most), ("<", self.below))
        return next((f"{sign} {number(goal)}" for sign, goal in goals if goal is not None), "")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A quantity measured for poller and for another design."""

    name: str
    text: str
    ours: float
    theirs: float
    unit: str

    @property
    def ratio(self) -> float:
        """The larger value divided by the smaller value."""
        low, high = sorted((self.ours, self.theirs))
        return high / low if low else float("inf")


#: A row of a grid: name, unit, and a value for each column. None: not measured.
Row = tuple[str, str, Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Grid:
    """The same quantities of several candidates, side by side."""

    columns: Sequence[str]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Findings:
    figures: Sequence[Figure]
    comparisons: Sequence[Comparison] = ()
    against: str = ""  # the name of the other design
    notes: Sequence[str] = ()
    grid: Grid | None = None
    series: Mapping[str, Sequence[tuple[float, float]]] = field(
        default_factory=dict
    )  # for the picture: x and y


@dataclass(frozen=True, slots=True)
class Section:
    """A question, the sizes of its measurement, and the function that measures."""

    asks: str
    sizes: Mapping[str, Any]  # `full`, `small` and `tiny`: the argument of `run`
    run: Callable[[Any, Stage], Findings]


def known() -> dict[str, Section]:
    """Return all sections by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(sections.__path__))
    return {name: import_module(f"{sections.__name__}.{name}").SECTION for name in names}


def chosen(names: Sequence[str], size: str) -> dict[str, Section]:
    """Return the named sections, or all without names. Raises InvalidInput."""
    there = known()
    for name in names:
        if name not in there:
            raise errors.InvalidInput(
                f'no section named "{name}"', hint=f"choose from {', '.join(there)}"
            )
    meant = {name: there[name] for name in names or there}
    for name, section in meant.items():
        if size not in section.sizes:
            raise errors.InvalidInput(
                f'section {name} has no size "{size}"',
                hint=f"choose from {', '.join(section.sizes)}",
            )
    return meant
