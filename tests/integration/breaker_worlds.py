"""Targets on a real board whose breakers a test opens, and whose dead letters it makes."""

from __future__ import annotations

from poller.bootstrap import Services
from poller.db.inventory import devices, targets
from poller.db.record import dead_letter_rows
from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.failures.dead_letter import Letter, Reason
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.state.board.board_repair import Repair
from poller.state.board.board_values import Claim, ClaimLimits, Move, Place
from poller.state.board.moves import Board
from poller.state.cluster import event_stream as stream
from poller.state.cluster import overview_reader

QUEUE = "poll.snmp"
LIMITS = ClaimLimits(targets=100_000, batch_size=64, lease_ms=30_000)
MINUTE_MS = 60_000


class World:
    """Targets d1/snmp, d2/snmp, ... on the board; `services` are those of the commands."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.board: Board = services.board
        self.claims = 0

    def add(self, number: int, site: str = "") -> list[int]:
        engine = self.services.engine
        for place in range(1, number + 1):
            draft = DeviceDraft(f"d{place}", "192.0.2.1", site=site or None)
            devices.add(engine, draft, [TargetDraft(collector="snmp", interval_ms=MINUTE_MS)])
        ids = sorted(target.id for target in targets.listing(engine, limit=None))
        far = self.board.now_ms() + MINUTE_MS
        self.board.place("", [(TargetSpec(i, 1, QUEUE, MINUTE_MS, 5_000), far) for i in ids], 1)
        return ids

    def claim(self, now_ms: int | None = None) -> Claim:
        self.claims += 1
        before = f"t{self.claims - 1}" if self.claims > 1 else ""
        return self.board.claim("", f"t{self.claims}", before, {QUEUE: 1_000}, LIMITS, now_ms)

    def fail(
        self, ids: list[int], place: Place = Place.URGENT, reason: Reason | None = None
    ) -> None:
        """Finish targets as failed; their breakers opened ten minutes ago."""
        now_ms = self.board.now_ms()
        self.board.demand(ids)
        claim = self.claim()
        self.board.start(claim.token, 0, "c", 15_000, ids)
        opened = Breaker(2, now_ms - 600_000, now_ms + 300_000)
        parked = {"parked_ms": now_ms, "reason": reason} if reason else {}
        status = Status(
            State.FAILING,
            now_ms - 700_000,
            now_ms,
            now_ms,
            0,
            7,
            0,
            "timeout",
            "no answer",
            None,
            opened,
            **parked,
        )  # type: ignore[arg-type]
        moves = [Move(i, now_ms + 300_000, status.pack(), place) for i in ids]
        assert set(self.board.finish(claim.token, moves).results) == {Result.OK}

    def park(self, ids: list[int], reason: Reason = Reason.AUTH_FAILED) -> None:
        """Make dead letters, on the board and in SQL."""
        self.fail(ids, Place.PARKED, reason)
        now_ms = self.board.now_ms()
        rows = [
            Letter(i, now_ms, reason, "timeout", "no answer", 1, now_ms, now_ms + 1, 7) for i in ids
        ]
        dead_letter_rows.write(self.services.engine, rows)

    def score(self, place: str, target_id: int) -> float | None:
        return self.services.redis.zscore(place, str(target_id))

    def events(self, *kinds: Kind) -> list[Event]:
        found = [
            entry.event
            for entry in stream.after(self.services.redis, self.services.keys, "0-0", 1000)
        ]
        return [event for event in found if event and event.kind in kinds]

    def seen(self) -> overview_reader.Overview:
        return overview_reader.read(self.services.redis, self.services.keys)

    def sound(self, ids: list[int]) -> bool:
        check = self.board.check(ids)
        return (
            not check.lost
            and not check.doubled
            and Repair(self.board).repair([], 0, lambda _: 0).sums == 0
        )
