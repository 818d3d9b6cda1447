"""`poller status`: is polling on time, and what broke? The same facts as the page, for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.commands import status_failing
from poller.cli.output import render
from poller.cli.output.columns import one_line
from poller.domain.record.overview import TRAP_RESULTS, Load, Overview, State, Worker
from poller.presentation import formatting, health
from poller.state.cluster import overview_reader

if TYPE_CHECKING:
    from rich.text import Text

GLYPHS = {State.OK: "●", State.DEGRADED: "▲", State.FAILING: "■", State.UNKNOWN: "○"}
STYLES = {State.OK: "cyan", State.DEGRADED: "yellow", State.FAILING: "red", State.UNKNOWN: "dim"}


LIMIT = 50
#: Three ways to begin.
BEGIN = (
    "poller device add NAME ADDRESS --credential CREDENTIAL --collector snmp",
    "poller device import FILE",
    "poller up --demo     (instead of this one: a simulated fleet to look around)",
    "",
)


def command(
    only_failing: Annotated[
        bool,
        typer.Option(
            "--failing", help="List the targets that fail or wait too long, the worst first."
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="With --failing: at most so many.", show_default=str(LIMIT)),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 when something fails or is late.")
    ] = False,
    as_json: render.Json = False,
) -> None:
    """Fleet by state, punctuality, leader, workers and the last errors."""
    if limit is not None and not only_failing:
        raise errors.InvalidInput(
            "--limit belongs to --failing", hint=f"poller status --failing --limit {limit}"
        )
    services = bootstrap.services()
    view = overview_reader.read(services.redis, services.keys)
    judged = health.judge(view)
    if only_failing:
        status_failing.show(services, view, limit or LIMIT, as_json)
    elif as_json:
        render.document("poller.status/1", {"verdict": judged.text, **_jsonable(view)})
    else:
        _show(view, services.settings.web_url)
    if strict and judged.tone in (health.Tone.FAILING, health.Tone.LATE):
        raise typer.Exit(1)


def _show(view: Overview, page: str) -> None:
    from rich.text import Text

    def say(text: Text | str, style: str = "") -> None:
        # Never cut, and wrapped by the terminal itself if at all: an error text must stay one line for grep.
        console.print(
            text if isinstance(text, Text) else Text(one_line(text), style=style), soft_wrap=True
        )

    console = render.console()
    say(health.judge(view).text, "bold")
    if not health.first_run(view):
        say(_states(view))
    for line in (
        *(BEGIN if health.first_run(view) else (*_polling(view), *_trouble(view))),
        *_people(view),
    ):
        say(f"  {line}")
    if page:
        say(f"  page       {page}")
    if view.errors:
        say("Last errors", "bold")
    for error in view.errors[:10]:
        age = formatting.age(view.as_of_ms - error.at_ms)
        say(f"  {age:>9} ago  {error.device}/{error.target}  {error.code}: {error.message}")
    if view.states.get(State.FAILING) or view.long_overdue:
        render.note("all that fail or wait too long, the worst first: poller status --failing")


def _states(view: Overview) -> Text:
    from rich.text import Text

    utf8 = (sys.stdout.encoding or "").lower().startswith("utf")
    line = Text()
    for state, number in view.states.items():
        glyph = f"{GLYPHS[state]} " if utf8 else ""
        line.append(f"  {glyph}{number:,} {state.value}", style=STYLES[state] if number else "dim")
    return line


def _polling(view: Overview) -> Iterator[str]:
    late = view.lateness
    figures = (
        f"{late.p50_ms:.0f} ms (median), {late.p99_ms:.0f} ms (p99), {late.max_ms:.0f} ms (most)"
    )
    yield f"throughput {view.polls_per_second:.1f} polls/s"
    yield f"lateness   {figures if late.count else 'not measured yet'}"
    overdue = f"{view.overdue:,} overdue" + (
        f", {view.long_overdue:,} of them for long" if view.long_overdue else ""
    )
    held = f", {view.held:,} held for dark sites" if view.held else ""
    yield f"board      {view.due:,} due ({overdue}), {view.in_flight:,} in flight, {view.parked:,} parked{held}"


def _trouble(view: Overview) -> Iterator[str]:
    """What is left alone, if anything is, and how to look at it."""
    opened = [f"{view.breakers_open:,} open"] if view.breakers_open else []
    opened += [f"{view.opened_by_hand:,} opened by hand"] if view.opened_by_hand else []
    if opened:
        yield f"breakers   {', '.join(opened)}: poller breaker list"
    if letters := sum(view.dead_letters.values()):
        reasons = ", ".join(
            f"{number:,} {reason}" for reason, number in sorted(view.dead_letters.items())
        )
        yield f"letters    {letters:,} ({reasons}): poller deadletter list"


def _people(view: Overview) -> Iterator[str]:
    """Who schedules, who polls, and what waits for them."""
    yield f"leader     {_leader(view)}, {formatting.exact(view.standbys)} standing by"
    labels = view.labels
    for worker in view.workers:
        yield f"worker     {labels[worker.key]}: {_worker(worker, view)}{_spooled(worker)}"
    for name, number in health.namesakes(view).items():
        yield f"names      {number} workers are called {name}: give each its own with -n"
    if stalls := view.totals.get("worker_stalls"):
        yield f"stalls     workers stood still {formatting.counted(stalls, 'time')}: poller events --kind worker_stalled"
    if heard := view.totals.get("traps_received"):
        yield f"traps      {formatting.exact(heard)} received: {_heard(view)}"
    for each in health.unroutable(view):
        yield f"unserved   {each.queue}: {formatting.counted(each.targets, 'target')}; {each.reason}"
    for load in view.loads:
        if load.waiting or load.shortage:
            yield f"queue      {load.queue}: {_load(load)}"


def _worker(worker: Worker, view: Overview) -> str:
    busy = f"{formatting.exact(worker.in_flight)} of {formatting.counted(worker.slots, 'batch', 'batches')}"
    last = (
        f", last {formatting.age(view.as_of_ms - worker.polled_ms)} ago" if worker.polled_ms else ""
    )
    seen = (
        busy
        if health.running(worker, view)
        else f"not seen for {formatting.age(view.as_of_ms - worker.seen_ms)}"
    )
    tags = "".join(f", {key}={value}" for key, value in sorted(worker.tags.items()))
    return f"{formatting.counted(worker.polls, 'poll')}{last}, {seen}, {formatting.size(worker.rss_bytes)}{tags}"


def _spooled(worker: Worker) -> str:
    """What it could not write yet, and what it never will."""
    waiting = (
        f", {formatting.counted(worker.spool_waiting, 'result')} on its disk"
        if worker.spool_waiting
        else ""
    )
    return waiting + (
        f", {formatting.exact(worker.spool_dropped)} dropped" if worker.spool_dropped else ""
    )


def _heard(view: Overview) -> str:
    """What became of notifications, the usual first."""
    found = [(result, view.totals.get(f"traps_{result}", 0)) for result in TRAP_RESULTS]
    return ", ".join(
        f"{formatting.exact(number)} {result.replace('_', ' ')}"
        for result, number in found
        if number
    )


def _leader(view: Overview) -> str:
    if view.leader is None:
        return "none"
    return f"{view.leader.name} for {formatting.age(view.as_of_ms - view.leader.since_ms)}, epoch {view.leader.epoch}"


def _load(load: Load) -> str:
    waiting = f"{formatting.counted(load.waiting, 'batch', 'batches')} waiting"
    return f"{waiting}, needs {load.shortage:.1f} times the workers" if load.shortage else waiting


def _jsonable(view: Overview) -> dict[str, Any]:
    derived = {
        "unserved": view.unserved,
        "unroutable": [asdict(each) for each in health.unroutable(view)],
        "queues": {load.queue: load.waiting for load in view.loads},
    }
    return {
        **asdict(view),
        **derived,
        "states": {state.value: number for state, number in view.states.items()},
    }
