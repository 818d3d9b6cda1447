"""`poller board`: does the schedule in Redis keep its promise? Every enabled target in exactly one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from poller import bootstrap
from poller.cli.inventory.inventory_database import database
from poller.cli.output import render
from poller.cli.up import up_summary

if TYPE_CHECKING:
    from poller.bootstrap import Services

SHOWN = 20
#: A million targets are counted anew in one script.
PATIENCE_S = 60.0

app = typer.Typer(no_args_is_help=True, help="The schedule as it is in Redis.")


@app.command()
def check(as_json: render.Json = False) -> None:
    """Compare the board with the inventory. Exit code 1 when a target is lost, in two places, or not known to SQL."""
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
    if not report.sound:
        if not as_json:
            render.note("mend it with: poller board repair")
        raise typer.Exit(1)


@app.command()
def repair(as_json: render.Json = False) -> None:
    """Put every target into exactly one place, and say what was wrong. Harmless when nothing is, and while polling."""
    from poller.db.inventory import inventory_feed
    from poller.domain.scheduling import slots
    from poller.state import redis_client
    from poller.state.board.board_repair import Repair
    from poller.state.board.moves import Board

    services = bootstrap.services()
    database(services)
    board = Board(redis_client.connect(services.settings.broker_url, PATIENCE_S), services.keys)
    now_ms = board.now_ms()
    with inventory_feed.all_specs(services.engine) as fleet:
        done = Repair(board).repair(
            fleet.specs,
            fleet.version,
            lambda spec: slots.next_slot_ms(spec.id, spec.interval_ms, now_ms),
        )
    wrong = ("lost", "doubled", "misplaced", "stray", "unreadable")
    item: dict[str, Any] = {f"{word}_mended": len(done.targets.get(word, ())) for word in wrong}
    item |= {"sums_mended": done.sums}
    _tell(services, now_ms, {word: n for word, n in item.items() if n})
    item |= {f"{word}_targets": ids[:SHOWN] for word, ids in done.targets.items()}
    render.record("poller.board.repair/1", item, as_json)


def _tell(services: Services, now_ms: int, mended: dict[str, int]) -> None:
    """Whoever looks at events shall know that somebody had to repair the board."""
    from poller import event_publisher
    from poller.domain.record.event_kinds import Event, Kind

    if mended:
        services.configure_logs()  # its line goes to stderr
        counted = ", ".join(
            f"{number:,} {word.removesuffix('_mended')}" for word, number in mended.items()
        )
        event_publisher.emit(
            services,
            [Event(now_ms, Kind.BOARD_REPAIRED, f"the board was repaired: {counted}", data=mended)],
        )
