"""The panels of the picture. A panel reads only the result file of its section."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Document = Mapping[str, Any]
Panel = Callable[["Axes", Document], None]

MUTED, INK = "#4b5765", "#15202b"
#: The colour of each role in all panels. Red is for states.
COLOURS = {
    "all": INK,
    "beat": "#1f77b4",
    "worker": "#e07b00",
    "server": "#7d4fb3",
    "exporter": "#0f766e",
    "agents": "#8a8f98",
}
GOAL_MS = 1000  # of lateness
BEFORE, AFTER = "#1f77b4", "#e07b00"


def cost(axes: Axes, document: Document) -> None:
    """Draw bars of CPU per poll, in total and per role, on a logarithmic scale."""
    rows = {text.strip(): values for text, _unit, values in document["grid"]["rows"]}
    bars = {"all": rows["CPU of a poll"], **{role: rows[role] for role in COLOURS if role in rows}}
    labels = list[str]()
    for column, candidate in enumerate(document["grid"]["columns"]):
        for role, values in bars.items():
            if values[column] is not None:
                axes.barh(len(labels), values[column], color=COLOURS[role], height=0.8)
                text, where = f" {values[column]:.3g} ms", (values[column], len(labels))
                axes.annotate(text, where, va="center", fontsize=8, color=MUTED)
                labels.append(f"{candidate}: {role}" if role == "all" else role)
        labels.append("")
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.margins(x=0.25)
    axes.invert_yaxis()
    samples = document["figures"]["samples"]["value"]
    _name(
        axes, f"CPU of one if_mib poll ({samples} samples)", "CPU milliseconds per poll (log)", ""
    )


def blackhole(axes: Axes, document: Document) -> None:
    rows = [(text, values) for text, unit, values in document["grid"]["rows"] if unit == "ms"]
    for number, (_, (before, after, ratio)) in enumerate(rows):
        axes.bar(
            number - 0.2,
            before,
            width=0.38,
            color=BEFORE,
            label="none silent" if not number else None,
        )
        axes.bar(
            number + 0.2,
            after,
            width=0.38,
            color=AFTER,
            label="one in each batch silent" if not number else None,
        )
        axes.annotate(
            f"{ratio:.2f} x",
            (number + 0.2, after),
            ha="center",
            va="bottom",
            fontsize=8,
            color=MUTED,
        )
    axes.set_xticks(range(len(rows)), [text for text, _ in rows], fontsize=8)
    axes.margins(y=0.15)
    axes.legend(fontsize=8, frameon=False, loc="upper left")
    _name(axes, "Others, while one device of each batch is silent", "", "ms")


def killed(axes: Axes, document: Document) -> None:
    points, (lease_s, _) = document["series"]["again_s"], document["series"]["lease_s"][0]
    axes.step(
        [0, *(x for x, _ in points)], [0, *(100 * y for _, y in points)], where="post", color=AFTER
    )
    for at, text in ((lease_s, "lease"), (lease_s + 2, "goal")):
        axes.axvline(at, color=MUTED, linestyle="--", linewidth=1)
        axes.annotate(
            f"{text}, {at:g} s ",
            (at, 50),
            fontsize=8,
            color=MUTED,
            rotation=90,
            ha="right",
            va="center",
        )
    axes.set_xlim(0, lease_s + 4)
    _name(
        axes,
        f"{len(points)} polls died with their worker",
        "seconds from the kill to the next poll",
        "% polled again",
    )


def lateness(axes: Axes, document: Document) -> None:
    _late(axes, document["series"]["late_p99_ms"])
    _name(axes, "Lateness of the fleet over time", "seconds", "ms after the slot, 99 %")


def memory(axes: Axes, document: Document) -> None:
    for role in COLOURS:
        if points := document["series"].get(f"{role}_mb"):
            _line(axes, points, role, role)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, frameon=False)
    _name(axes, "Memory of the fleet's roles over time", "seconds", "MB")


def growth(axes: Axes, document: Document) -> None:
    for role in COLOURS:
        if points := document["series"].get(f"{role}_ms"):
            _line(axes, points, role, role, marker="o")
    _fleets(axes, document)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(fontsize=8, frameon=False)
    _name(axes, "CPU of one poll, by size of the fleet", "devices (log)", "CPU ms per poll (log)")


def growing_lateness(axes: Axes, document: Document) -> None:
    _late(axes, document["series"]["late_p99_ms"], marker="o")
    _fleets(axes, document)
    _name(axes, "Lateness, by size of the fleet", "devices (log)", "ms after the slot, 99 %")


def _late(axes: Axes, points: Sequence[Sequence[float]], marker: str = "") -> None:
    _line(axes, points, "worker", "99 % of polls", marker)
    axes.axhline(GOAL_MS, color=MUTED, linestyle="--", linewidth=1)
    axes.annotate("goal", (points[0][0], GOAL_MS), fontsize=8, color=MUTED, va="bottom")
    axes.set_ylim(0, 1.15 * max(GOAL_MS, *(late for _, late in points)))


def _fleets(axes: Axes, document: Document) -> None:
    sizes = [devices for devices, _ in document["series"]["late_p99_ms"]]
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{int(devices):,}" for devices in sizes])
    axes.minorticks_off()


def _line(
    axes: Axes, points: Sequence[Sequence[float]], role: str, label: str, marker: str = ""
) -> None:
    across, up = zip(*points, strict=True)
    axes.plot(across, up, color=COLOURS[role], label=label, marker=marker, linewidth=1.5)


def _name(axes: Axes, title: str, across: str, up: str) -> None:
    axes.set_title(title, fontsize=10, color=INK, loc="left")
    axes.set_xlabel(across, fontsize=8, color=MUTED)
    axes.set_ylabel(up, fontsize=8, color=MUTED)
    axes.tick_params(labelsize=8, colors=MUTED)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


OF: Mapping[str, Sequence[Panel]] = {
    "cost": (cost,),
    "blackhole": (blackhole,),
    "killed": (killed,),
    "fleet": (lateness, memory),
    "growth": (growth, growing_lateness),
}
