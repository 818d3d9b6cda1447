"""`poller deadletter`: which targets need a person, grouped by what they have in common; try again, or stop trying."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors, event_publisher
from poller.cli.arguments import completion, target_arguments
from poller.cli.arguments.confirm import Number, Yes, confirm_counted
from poller.cli.inventory import inventory_database
from poller.cli.output import progress, render
from poller.cli.output.columns import Column, Fit, column, one_line
from poller.cli.output.render import Json
from poller.domain.batched import batched
from poller.domain.failures import error_codes
from poller.domain.failures.dead_letter import Reason
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.target_status import Status
from poller.presentation import formatting

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.bootstrap import Services
    from poller.db.record.dead_letter_rows import Group, Named, Wanted

TIMED_OUT = 124
LOOK_EVERY_S = 0.2
SAMPLES = 3
TOLD_APART = 100
_PAGE = 1_000

app = typer.Typer(
    no_args_is_help=True, help="Targets that need a person: asked only slowly until somebody helps."
)

ByReason = Annotated[
    Reason | None, typer.Option("--reason", help="Only with this reason.", show_choices=True)
]
ByCode = Annotated[str, typer.Option("--code", metavar="CODE", help="Only with this error code.")]
ByCollector = Annotated[
    str,
    typer.Option(
        "--collector", help="Only with this collector.", autocompletion=completion.collectors
    ),
]
BySite = Annotated[
    str, typer.Option("--site", help="Only at this site.", autocompletion=completion.sites)
]
ByDevice = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="DEVICE[/TARGET]",
        help="Only of this device.",
        autocompletion=completion.devices,
    ),
]
All = Annotated[bool, typer.Option("--all", help="Every dead letter there is.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


@app.command("list")
def list_(
    reason: ByReason = None,
    code: ByCode = "",
    collector: ByCollector = "",
    site: BySite = "",
    device: ByDevice = "",
    limit: Annotated[int, typer.Option(min=1, help="At most so many; all are counted.")] = 50,
    as_json: Json = False,
) -> None:
    """Groups first: many dead letters are few causes. Then the letters, the oldest first."""
    from poller.db.record import dead_letter_rows

    engine = inventory_database.database()
    wanted = _wanted(engine, reason, code, collector, site, device)
    groups, found = (
        dead_letter_rows.groups(engine, wanted),
        dead_letter_rows.listing(engine, wanted, limit),
    )
    if not found:
        _refuse_unknown(engine, wanted)
    total, now_ms = sum(group.letters for group in groups), _now_ms()
    items = [_item(named, now_ms) for named in found]
    summary = [_group(group, now_ms) for group in groups]
    if as_json:
        render.document(
            "poller.deadletter.list/1", {"groups": summary, "items": items, "total": total}
        )
        return
    if items:
        render.listing("", summary, _GROUP_COLUMNS, as_json=False)
        render.echo("")
        render.listing("", items, _COLUMNS, as_json=False)
    filtered = " matches" if wanted != dead_letter_rows.Wanted() else ""
    counted = (
        f"{formatting.counted(total, 'dead letter')} in {formatting.counted(len(groups), 'group')}"
    )
    more = f"; --limit {total} shows all" if total > len(items) else ""
    render.note(f"{counted}{more}" if total else f"no dead letter{filtered}")


@app.command("show")
def show(place: target_arguments.One, as_json: Json = False) -> None:
    """Everything about a dead letter, and what to do about it."""
    from poller.db.record import dead_letter_rows
    from poller.db.record.dead_letter_rows import Wanted

    engine = inventory_database.database()
    targets = target_arguments.targets(engine, [place])
    found = dead_letter_rows.listing(engine, Wanted(ids=list(targets)))
    if not found:
        raise errors.NotFound(f"{place} is no dead letter", hint=f"poller breaker show {place}")
    items = [{**_item(named, _now_ms()), **_explained(named)} for named in found]
    if as_json or len(items) > 1:
        render.listing(
            "poller.deadletter.show/1",
            items,
            (*_COLUMNS, column("WHAT TO DO", "hint", fit=Fit.WRAP)),
            as_json,
        )
    else:
        render.record("poller.deadletter.show/1", items[0], as_json)


@app.command("requeue")
def requeue(
    places: target_arguments.Some = None,
    reason: ByReason = None,
    code: ByCode = "",
    collector: ByCollector = "",
    site: BySite = "",
    device: ByDevice = "",
    every: All = False,
    wait_s: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for the results.")
    ] = 0.0,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Try dead letters now, before routine polls; more than 64 are spread, 64 a second. A success clears one."""
    services = bootstrap.services()
    engine = inventory_database.database(services)
    found = _chosen(engine, places, _wanted(engine, reason, code, collector, site, device), every)
    if dry_run:
        _say_plan(f"would requeue {spread(len(found))}", found, as_json)
        return
    item = try_again(services, found, wait_s)
    say_requeued(item, "poller.deadletter.requeue/1", as_json)
    if not item["requeued"]:
        raise typer.Exit(1)
    leave(item)


@app.command("drop")
def drop(
    places: target_arguments.Some = None,
    reason: ByReason = None,
    code: ByCode = "",
    collector: ByCollector = "",
    site: BySite = "",
    device: ByDevice = "",
    every: All = False,
    yes: Yes = False,
    number: Number = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Stop trying: disable the targets and remove their letters. `poller target edit ... --enable` brings one back."""
    from poller.db.record import dead_letter_rows

    services = bootstrap.services()
    engine = inventory_database.database(services)
    found = _chosen(engine, places, _wanted(engine, reason, code, collector, site, device), every)
    if dry_run:
        _say_plan(
            f"would drop {formatting.counted(len(found), 'dead letter')} and disable as many targets",
            found,
            as_json,
        )
        return
    names = ", ".join(_names(found[:SAMPLES])) + (", ..." if len(found) > SAMPLES else "")
    targets = formatting.counted(len(found), "target")
    confirm_counted(
        f"disable {targets} ({names}) and drop as many dead letters", len(found), yes, number
    )
    dropped = dead_letter_rows.drop(
        engine, [named.letter.target_id for named in found], inventory_database.wake_up()
    )
    _tell_dropped(services, found)
    text = f"dropped {formatting.counted(dropped, 'dead letter')}; as many targets are disabled"
    first = found[0]
    back = f"poller target edit {first.device} {first.target} --enable   (to take one back)"
    render.changed(text, "poller.deadletter.drop/1", {"dropped": dropped}, as_json, back)


def _wanted(
    engine: Engine, reason: Reason | None, code: str, collector: str, site: str, device: str
) -> Wanted:
    from poller.db.inventory import devices, targets
    from poller.db.record.dead_letter_rows import Wanted

    if code and code not in error_codes.TABLE:
        raise errors.InvalidInput(
            f'there is no error code "{code}"', hint="one of " + ", ".join(error_codes.TABLE)
        )
    wanted = Wanted(reason.value if reason else "", code, collector, site)
    name, target = target_arguments.place(device)
    if target:
        return replace(wanted, ids=[targets.show(engine, name, target).id])
    return replace(wanted, device=devices.show(engine, name).name if name else "")


def _refuse_unknown(engine: Engine, wanted: Wanted) -> None:
    """Nothing matches: because there is no such site, or no such collector?"""
    from poller.db.inventory import sites, targets

    if wanted.site:
        target_arguments.refuse_unknown(
            "site", wanted.site, [site.name for site in sites.listing(engine)]
        )
    if wanted.collector and not targets.listing(engine, collector=wanted.collector, limit=1):
        installed = bootstrap.services().registry.collectors
        target_arguments.refuse_unknown(
            "collector", wanted.collector, list(installed), "poller collectors"
        )


def _chosen(
    engine: Engine, places: Sequence[str] | None, wanted: Wanted, every: bool
) -> list[Named]:
    """By name or by filter, never everything by accident. Raises NotFound when there is nothing to do."""
    from poller.db.record import dead_letter_rows
    from poller.db.record.dead_letter_rows import Wanted

    filtered = wanted != Wanted()
    if bool(places) + filtered + every != 1:
        raise errors.InvalidInput(
            "say which: names, filters or --all, and only one of these",
            hint="add DEVICE/TARGET, --reason auth_failed or --all; poller deadletter list shows what there is",
        )
    if places:
        wanted = replace(wanted, ids=list(target_arguments.targets(engine, places)))
    found = dead_letter_rows.listing(engine, wanted)
    if not found:
        _refuse_unknown(engine, wanted)
        raise errors.NotFound("no dead letter matches", hint="poller deadletter list")
    return found


def _results(
    services: Services, asked: Sequence[Named], now_ms: int, wait_s: float
) -> dict[str, Any]:
    """What became of them within that time, and why of those that still fail."""
    done: dict[int, Status] = {}
    ids = [named.letter.target_id for named in asked]
    for _ in progress.track(
        _until(services, ids, now_ms, wait_s, done), len(ids), "waiting for results"
    ):
        pass
    failures = [
        _failure(n, done[n.letter.target_id]) for n in asked if _fails(done.get(n.letter.target_id))
    ]
    counts = {
        "good": len(done) - len(failures),
        "failing": len(failures),
        "waiting": len(ids) - len(done),
    }
    return {**counts, "failures": failures}


def _fails(status: Status | None) -> bool:
    return status is not None and bool(status.failures)


def _failure(named: Named, status: Status) -> dict[str, str]:
    return {
        "device": named.device,
        "target": named.target,
        "error_code": status.code,
        "message": status.message,
    }


def _until(
    services: Services, ids: Sequence[int], now_ms: int, wait_s: float, done: dict[int, Status]
) -> Iterator[int]:
    """Yields each as it is done, and fills `done` with what came of it."""
    until = time.monotonic() + wait_s
    while len(done) < len(ids):
        for page in batched([i for i in ids if i not in done], _PAGE):
            for i, status in services.board.statuses(page).items():
                if status.finished_ms >= now_ms:
                    done[i] = status
                    yield i
        if time.monotonic() >= until:
            return
        time.sleep(LOOK_EVERY_S)


def spread(count: int) -> str:
    """`200 dead letters within 3 s`"""
    from poller.state.board.moves import requeue_spread_ms

    within = (
        f" within {formatting.duration(requeue_spread_ms(count))}"
        if requeue_spread_ms(count)
        else ""
    )
    return formatting.counted(count, "dead letter") + within


def try_again(services: Services, found: Sequence[Named], wait_s: float) -> dict[str, Any]:
    """Requeue them, tell it, and wait for what comes of it, if wanted; the numbers of it."""
    now_ms = services.board.now_ms()
    answers = services.board.requeue([named.letter.target_id for named in found], now_ms)
    asked = [named for named in found if answers[named.letter.target_id] in ("due", "inflight")]
    event_publisher.publish(services, _events(Kind.DEAD_LETTER_REQUEUED, asked, now_ms, "requeued"))
    counts = Counter(answers.values())
    item: dict[str, Any] = {
        "requeued": len(asked),
        "barred": counts["opened"],
        "not_on_board": counts["gone"],
    }
    return item | (_results(services, asked, now_ms, wait_s) if wait_s else {})


def leave(item: Mapping[str, Any]) -> None:
    """With the exit code of such numbers, unless all is good."""
    if item.get("waiting"):
        raise typer.Exit(TIMED_OUT)
    if item.get("failing"):
        raise typer.Exit(1)


def say_requeued(item: Mapping[str, Any], schema: str, as_json: bool) -> None:
    text = f"requeued {formatting.counted(item['requeued'], 'dead letter')}"
    if "good" in item:
        text += f": {item['good']:,} answer, {item['failing']:,} still fail, {item['waiting']:,} without a result"
    render.changed(text, schema, item, as_json)
    if as_json:
        return
    for each in item.get("failures", ()):
        render.echo(
            one_line(
                f"  {each['device']}/{each['target']}  {each['error_code']}: {each['message']}"
            )
        )
    if item["barred"]:
        render.note(
            f"{formatting.counted(item['barred'], 'breaker')} opened by hand: poller breaker reset DEVICE"
        )
    if item["not_on_board"]:
        render.note(
            f"{formatting.counted(item['not_on_board'], 'target')} not on the board: has a scheduler run?"
        )


def _say_plan(text: str, found: Sequence[Named], as_json: bool) -> None:
    samples = list(_names(found[:SAMPLES]))
    item = {"dry_run": True, "letters": len(found), "samples": samples}
    sentence = f"{text}: {', '.join(samples)}"
    render.changed(sentence, "poller.deadletter.plan/1", item, as_json)


def _names(found: Sequence[Named]) -> Iterator[str]:
    return (f"{named.device}/{named.target}" for named in found)


def _tell_dropped(services: Services, found: Sequence[Named]) -> None:
    """The change is stored: a Redis that is away costs only the news."""
    try:
        event_publisher.publish(
            services, _events(Kind.DEAD_LETTER_CLEARED, found, _now_ms(), "dropped")
        )
    except errors.StoreError as error:
        render.note(f"note: no event was made of it: {error}")


def _events(kind: Kind, found: Sequence[Named], now_ms: int, did: str) -> list[Event]:
    """One each; of a whole fleet one in all, which names the targets: the stream is bounded."""
    if len(found) <= TOLD_APART:
        return [_event(kind, named, now_ms, did) for named in found]
    who = target_arguments.who()
    data = {"who": who, "did": did, "targets": [named.letter.target_id for named in found]}
    return [Event(now_ms, kind, f"{len(found):,} dead letters were {did} by {who}", data=data)]


def _event(kind: Kind, named: Named, now_ms: int, did: str) -> Event:
    who, letter = target_arguments.who(), named.letter
    reason = letter.reason.value if letter.reason else ""
    message = f"{named.device}/{named.target} was {did} by {who} ({reason})"
    data = {"who": who, "did": did, "reason": reason, "attempts": letter.attempts}
    return Event(now_ms, kind, message, named.device, named.target, letter.target_id, data=data)


def _explained(named: Named) -> dict[str, str]:
    known = error_codes.TABLE.get(named.letter.error_code)
    return {"meaning": known.meaning if known else "", "hint": known.hint if known else ""}


def _item(named: Named, now_ms: int) -> dict[str, Any]:
    letter = named.letter
    return {
        "target_id": letter.target_id,
        "device": named.device,
        "target": named.target,
        "site": named.site,
        "collector": named.collector,
        "reason": letter.reason.value if letter.reason else "",
        "error_code": letter.error_code,
        "message": letter.message,
        "first_failure": _instant(letter.first_ms),
        "last_failure": _instant(letter.last_ms),
        "parked": _instant(letter.parked_ms),
        "parked_seconds": max(0, now_ms - letter.parked_ms) // 1000,
        "attempts": letter.attempts,
        "next_try": _instant(letter.next_ms),
        "next_try_seconds": max(0, letter.next_ms - now_ms) // 1000,
    }


def _group(group: Group, now_ms: int) -> dict[str, Any]:
    return {
        "reason": group.reason,
        "error_code": group.error_code,
        "collector": group.collector,
        "letters": group.letters,
        "devices": group.devices,
        "first_failure": _instant(group.first_ms),
        "last_failure": _instant(group.last_ms),
        "first_seconds": max(0, now_ms - group.first_ms) // 1000,
        "last_seconds": max(0, now_ms - group.last_ms) // 1000,
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _instant(ms: int) -> datetime | None:
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


def _age(key: str, tail: str = "") -> Any:
    return lambda item: formatting.age(item[key] * 1000) + tail


_GROUP_COLUMNS = (
    column("REASON", "reason", fit=Fit.WHOLE),
    column("CODE", "error_code", fit=Fit.WHOLE),
    column("COLLECTOR", "collector"),
    column("LETTERS", "letters", right=True),
    column("DEVICES", "devices", right=True),
    Column("FIRST", _age("first_seconds", " ago"), right=True),
    Column("LAST", _age("last_seconds", " ago"), right=True),
)
_COLUMNS = (
    Column("TARGET", lambda item: f"{item['device']}/{item['target']}", fit=Fit.WHOLE),
    column("REASON", "reason", fit=Fit.WHOLE),
    Column("FOR", _age("parked_seconds"), right=True, fit=Fit.WHOLE),
    column("TRIES", "attempts", right=True, fit=Fit.WHOLE, spare=2),
    Column("NEXT TRY IN", _age("next_try_seconds"), right=True, fit=Fit.WHOLE, spare=1),
    Column("LAST ERROR", lambda item: f"{item['error_code']}: {item['message']}", fit=Fit.REST),
)
