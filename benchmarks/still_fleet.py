"""A large fleet that is on the board but not polled: its statuses are made, one in ten fails.

Its targets need a worker that does not exist, and none of them falls due within a day: only reads
of the fleet cost something. A running fleet beside it keeps the platform busy.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import progress
from poller.bootstrap import Services
from poller.db.inventory import imports, inventory_feed
from poller.db.record import dead_letter_rows
from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.failures.dead_letter import Letter, Reason
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.state.board.board_repair import Repair

REQUIRES = {"fleet": "still"}
QUEUE_MARK = ";fleet=still"
FAILING_EVERY = 10
SITES = 100
_DAY_S = 86_400
_PER_IMPORT = 50_000
_PER_WRITE = 5_000
_CODES = ("timeout", "unreachable", "auth_failed")


def store(services: Services, targets: int) -> None:
    """Add the devices to the inventory: half of them switches, a tenth with ping, 100 sites."""
    with progress.shown(f"storing {targets:,} targets in SQL", targets) as show:
        for start in range(0, targets, _PER_IMPORT):
            numbers = range(start, min(start + _PER_IMPORT, targets))
            imports.apply_import(services.engine, [_row(number) for number in numbers])
            show(numbers.stop)


def _row(number: int) -> imports.Row:
    collector = "ping" if number % 10 == 0 else "snmp"
    device = DeviceDraft(
        name=f"{'sw' if number % 2 else 'rt'}-{number * 7919 % 1_000_003:06}",
        address=f"10.{number // 65536 % 256}.{number // 256 % 256}.{number % 256}",
        site=f"site{number % SITES}",
        tags=("core",) if number % 20 == 0 else ("access", f"rack{number % 50}"),
        requires=REQUIRES,
    )
    draft = TargetDraft(collector=collector, interval_ms=_DAY_S * 1000, timeout_ms=900)
    return imports.Row(device, [draft])


def give_statuses(services: Services) -> int:
    """Give every still target on the board a status. Returns how many fail."""
    now_ms = services.board.now_ms()
    with inventory_feed.all_specs(services.engine) as fleet:
        still = [spec for spec in fleet.specs if spec.queue.endswith(QUEUE_MARK)]
    letters: list[Letter] = []
    failing = 0
    keys = services.keys
    with progress.shown("making statuses", len(still)) as show:
        pipe = services.redis.pipeline(transaction=False)
        for number, spec in enumerate(still):
            status = _status(number, now_ms)
            failing += status.state is State.FAILING
            letters += _letters(spec.id, status, now_ms)
            pipe.hset(keys.status, str(spec.id), status.pack())
            # None falls due while the section runs.
            pipe.zadd(keys.due(spec.queue), {str(spec.id): now_ms + _DAY_S * 1000 + number})
            if number % _PER_WRITE == 0:
                pipe.execute()
                show(number)
        pipe.execute()
    dead_letter_rows.write(services.engine, letters)
    Repair(services.board).recount()
    return failing


def _status(number: int, now_ms: int) -> Status:
    if number % FAILING_EVERY:
        return Status(State.OK, now_ms - 600_000, now_ms - 60_000, now_ms - 59_000, now_ms - 59_000)
    code = _CODES[number // FAILING_EVERY % len(_CODES)]
    is_parked = code == "auth_failed"
    return Status(
        State.FAILING,
        *(now_ms - 600_000, now_ms - 60_000, now_ms - 59_000, now_ms - 700_000 - number, 7, 1),
        *(code, "no answer within 0.9 s"),
        breaker=Breaker(3, now_ms - 500_000, now_ms + 600_000),
        parked_ms=now_ms - 300_000 if is_parked else 0,
        reason=Reason.AUTH_FAILED if is_parked else None,
        confirmed=True,
    )


def _letters(target_id: int, status: Status, now_ms: int) -> Iterator[Letter]:
    if status.reason:
        yield Letter(
            *(target_id, now_ms, status.reason, status.code, status.message),
            *(status.since_ms, status.parked_ms, now_ms + _DAY_S * 1000, status.failures),
        )
