"""`poller status`: is polling on time, and what broke? The same facts as the page, for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap
from poller.cli import render
from poller.domain.overview import Overview, State
from poller.state import overview
from poller.web import health, units

if TYPE_CHECKING:
    from rich.text import Text

GLYPHS = {State.OK: "●", State.DEGRADED: "▲", State.FAILING: "■", State.UNKNOWN: "○"}
STYLES = {State.OK: "cyan", State.DEGRADED: "yellow", State.FAILING: "red", State.UNKNOWN: "dim"}


def command(
    as_json: render.Json = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when something fails or is late.")] = False,
) -> None:
    """Fleet by state, punctuality, leader, workers and the last errors."""
    services = bootstrap.services()
    view = overview.read(services.redis, services.keys)
    judged = health.judge(view)
    if as_json:
        render.document("poller.status/1", {"verdict": judged.text, **_jsonable(view)})
    else:
        _show(view, services.settings.web_url)
    if strict and judged.tone in (health.Tone.FAILING, health.Tone.LATE):
        raise typer.Exit(1)


def _show(view: Overview, page: str) -> None:
    from rich.text import Text

    def say(text: Text | str, style: str = "") -> None:
        # Never cut, and wrapped by the terminal itself if at all: an error text must stay one line for grep.
        console.print(text if isinstance(text, Text) else Text(text, style=style), soft_wrap=True)

    console = render.console()
    say(health.judge(view).text, "bold")
    say(_states(view))
    for line in _facts(view):
        say("  " + line)
    if page:
        say(f"  page       {page}")
    if view.errors:
        say("Last errors", "bold")
    for error in view.errors[:10]:
        age = units.age(view.as_of_ms - error.at_ms)
        say(f"  {age:>7} ago  {error.device}/{error.target}  {error.code}: {error.message}")


def _states(view: Overview) -> Text:
    from rich.text import Text

    utf8 = (sys.stdout.encoding or "").lower().startswith("utf")
    line = Text()
    for state, number in view.states.items():
        glyph = f"{GLYPHS[state]} " if utf8 else ""
        line.append(f"  {glyph}{number:,} {state.value}", style=STYLES[state] if number else "dim")
    return line


def _facts(view: Overview) -> Iterator[str]:
    late = view.lateness
    yield f"throughput {view.polls_per_second:.1f} polls/s"
    yield f"lateness   {late.p50_ms:.0f} ms (median), {late.p99_ms:.0f} ms (p99), {late.max_ms:.0f} ms (most)"
    places = f"{view.due:,} due ({view.overdue:,} overdue), {view.in_flight:,} in flight"
    yield f"board      {places}, {view.parked:,} parked"
    if view.leader:
        age = units.age(view.as_of_ms - view.leader.since_ms)
        yield f"leader     {view.leader.name} for {age}, epoch {view.leader.epoch}, {view.standbys} standing by"
    for worker in view.workers:
        seen = view.as_of_ms - worker.seen_ms
        state = f"{worker.in_flight} batches" if health.running(worker, view) else f"not seen for {units.age(seen)}"
        yield f"worker     {worker.name}: {worker.polls:,} polls, {state}, {units.size(worker.rss_bytes)}"
    for queue, number in view.unserved.items():
        yield f"unserved   {queue}: {number:,} targets wait; start a worker that has the collector and the tags"
    for queue, depth in view.queues.items():
        if depth:
            yield f"queue      {queue}: {depth} batches waiting"


def _jsonable(view: Overview) -> dict[str, Any]:
    return {**asdict(view), "states": {state.value: number for state, number in view.states.items()}}
