"""`poller board`: checks and repairs the schedule in Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from poller import bootstrap
from poller.cli.inventory.inventory_database import database
from poller.cli.output import render
from poller.cli.up import up_summary

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.domain.inventory.poll_target import TargetSpec

#: Maximum number of target ids that are printed per fault.
SHOWN = 20
#: Repair counts a million targets in one script.
PATIENCE_S = 60.0
_FAULTS = ("lost", "doubled", "misplaced", "stray", "unreadable")

app = typer.Typer(no_args_is_help=True, help="The schedule as it is in Redis.")


@app.command()
def check(as_json: render.Json = False) -> None:
    """Compare the board with the inventory. Exits with 1 when a target is misplaced."""
    services = bootstrap.services()
    database(services)
    report = up_summary.verify(services)
    item: dict[str, Any] = {
        **up_summary.places(services),
        "pending": report.pending,
        "lost": len(report.lost),
        "doubled": len(report.doubled),
        "strays": len(report.strays),
        "unreadable": len(report.unreadable),
        "lost_targets": report.lost[:SHOWN],
        "doubled_targets": report.doubled[:SHOWN],
        "stray_targets": report.strays[:SHOWN],
        "unreadable_targets": report.unreadable[:SHOWN],
    }
    render.record("poller.board.check/1", item, as_json)

    if report.sound:
        return
    if not as_json:
        render.note("repair it with: poller board repair")

    raise typer.Exit(1)


@app.command()
def repair(as_json: render.Json = False) -> None:
    """Put every target into exactly one place and print what was wrong.

    Safe to run while polling.
    """
    from poller.db.inventory import inventory_feed
    from poller.domain.scheduling import slots
    from poller.state import redis_client
    from poller.state.board.board_repair import Repair
    from poller.state.board.moves import Board

    services = bootstrap.services()
    database(services)
    client = redis_client.connect(services.settings.broker_url, PATIENCE_S)
    board = Board(client, services.keys)
    now_ms = board.now_ms()

    def next_slot_ms(spec: TargetSpec) -> int:
        return slots.next_slot_ms(spec.id, spec.interval_ms, now_ms)

    with inventory_feed.all_specs(services.engine) as fleet:
        done = Repair(board).repair(fleet.specs, fleet.version, next_slot_ms)

    counts = {f"{fault}_mended": len(done.targets.get(fault, ())) for fault in _FAULTS}
    counts["sums_mended"] = done.sums
    _emit_event(services, now_ms, counts)

    samples = {f"{fault}_targets": ids[:SHOWN] for fault, ids in done.targets.items()}
    render.record("poller.board.repair/1", {**counts, **samples}, as_json)


def _emit_event(services: Services, now_ms: int, counts: dict[str, int]) -> None:
    """Publish what was repaired; nothing if the board was sound."""
    from poller import event_publisher
    from poller.domain.record.event_kinds import Event, Kind

    mended = {name: number for name, number in counts.items() if number}
    if not mended:
        return

    services.configure_logs()  # the event's log line goes to stderr
    parts = [f"{number:,} {name.removesuffix('_mended')}" for name, number in mended.items()]
    message = f"the board was repaired: {', '.join(parts)}"
    event_publisher.emit(services, [Event(now_ms, Kind.BOARD_REPAIRED, message, data=mended)])
