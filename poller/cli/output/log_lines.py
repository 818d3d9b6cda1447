"""The lines of all roles in one terminal: a coloured name in front of each, plain when piped."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from poller.presentation import formatting

_COLOURS = {
    "poller": "bold",
    "beat": "magenta",
    "worker": "blue",
    "web": "cyan",
    "flower": "yellow",
    "sim": "green",
}
_WIDTH = 8


class LogView:
    def __init__(self, to_stderr: bool = False) -> None:
        self._console = Console(
            file=sys.stderr if to_stderr else sys.stdout, highlight=False, soft_wrap=True
        )
        self._lock = threading.RLock()  # a signal may want to say something while we do

    def line(self, who: str, text: str) -> None:
        prefix = Text(f"{who:<{_WIDTH}} | ", style=_COLOURS.get(who.rstrip("0123456789"), "dim"))
        with self._lock:
            self._console.print(prefix + Text(text))

    def addresses(self, page: str, flower: str, home: Path) -> None:
        self.line("poller", f"page    {page}")
        self.line("poller", f"Flower  {flower}")
        self.line("poller", f"logs    {home / 'logs'}   (Ctrl-C stops everything)")

    def summary(self, report: Mapping[str, Any]) -> None:
        late, cpu, board = report["lateness_ms"], report["cpu_ms_per_poll"], report["board"]
        self.line("poller", _polls(report))
        self.line(
            "poller",
            f"late by {late['p50']:.0f} ms (median), {late['p99']:.0f} ms (p99), {late['max']:.0f} ms (most)",
        )
        self.line(
            "poller",
            f"CPU per poll {cpu['total']:.2f} ms (beat {cpu['beat']:.2f}, worker {cpu['worker']:.2f}), "
            f"waiting included, at {report['polls_per_second']:.1f} polls/s",
        )
        self.line("poller", f"lost {board['lost']}, doubled {board['doubled']}")


def _polls(report: Mapping[str, Any]) -> str:
    """What was polled adds up; what came to no poll is beside it."""
    from poller.cli.up.up_summary import POLLED

    outcomes = report["outcomes"]
    polled = ", ".join(f"{outcomes[name]:,} {name}" for name in POLLED if name in outcomes)
    others = "".join(
        f", {number:,} {name}" for name, number in sorted(outcomes.items()) if name not in POLLED
    )
    text = formatting.counted(report["polls"], "poll") + (f" ({polled})" if polled else "")
    return f"{text}{others}; {formatting.counted(report['targets'], 'target')} at the end"
