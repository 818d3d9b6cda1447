"""The log lines of all roles in one terminal, each after its coloured role name."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from poller.presentation import formatting

#: The role name of lines by `poller up` and `poller worker` themselves.
POLLER = "poller"

_COLOURS = {
    POLLER: "bold",
    "beat": "magenta",
    "worker": "blue",
    "web": "cyan",
    "flower": "yellow",
    "events": "bold cyan",
    "sim": "green",
}
_WIDTH = 8


class LogLines:
    """Prints lines from several threads, one at a time."""

    def __init__(self, to_stderr: bool = False) -> None:
        file = sys.stderr if to_stderr else sys.stdout
        self._console = Console(file=file, highlight=False, soft_wrap=True)
        self._lock = threading.RLock()  # a signal handler prints while this thread prints

    def line(self, role: str, text: str) -> None:
        """Print one line of a role."""
        colour = _COLOURS.get(role.rstrip("0123456789"), "dim")
        prefix = Text(f"{role:<{_WIDTH}} | ", style=colour)
        with self._lock:
            self._console.print(prefix + Text(text))

    def addresses(self, page: str, flower: str, home: Path) -> None:
        """Print the addresses of the page and of Flower, and the folder of the logs."""
        self.line(POLLER, f"page    {page}")
        self.line(POLLER, f"Flower  {flower}")
        self.line(POLLER, f"logs    {home / 'logs'}   (Ctrl-C stops everything)")

    def summary(self, report: Mapping[str, Any]) -> None:
        """Print the summary of a run of `poller up`."""
        late = report["lateness_ms"]
        cpu = report["cpu_ms_per_poll"]
        board = report["board"]

        median = f"{late['p50']:.0f} ms (median)"
        p99 = f"{late['p99']:.0f} ms (p99)"
        highest = f"{late['max']:.0f} ms (most)"
        parts = f"beat {cpu['beat']:.2f}, worker {cpu['worker']:.2f}"
        rate = f"{report['polls_per_second']:.1f} polls/s"

        self.line(POLLER, _polls(report))
        self.line(POLLER, f"late by {median}, {p99}, {highest}")
        self.line(
            POLLER,
            f"CPU per poll {cpu['total']:.2f} ms ({parts}), waiting included, at {rate}",
        )
        self.line(POLLER, f"lost {board['lost']}, doubled {board['doubled']}")


def _polls(report: Mapping[str, Any]) -> str:
    """`12 polls (11 ok, 1 failed), 2 refused; 6 targets at the end`: polls in brackets add up."""
    from poller.cli.up.up_summary import POLLED

    outcomes = report["outcomes"]
    polled = [f"{outcomes[name]:,} {name}" for name in POLLED if name in outcomes]
    others = [
        f"{number:,} {name}" for name, number in sorted(outcomes.items()) if name not in POLLED
    ]

    text = formatting.counted(report["polls"], "poll")
    if polled:
        text += f" ({', '.join(polled)})"

    text = ", ".join([text, *others])
    return f"{text}; {formatting.counted(report['targets'], 'target')} at the end"
