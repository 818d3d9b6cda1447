"""A worker that discards batches: it takes messages as Celery does, and starts, holds and finishes
their targets on the board without a poll. It records how late they were.

`python -m benchmarks.drain RESULT INTERVAL_MS` runs until SIGTERM, and then until its queues are
empty.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from poller import bootstrap
from poller.domain.metrics import histogram
from poller.domain.record.overview import State, Worker
from poller.domain.record.target_status import Status
from poller.domain.scheduling import affinity, slots
from poller.state.board import moves
from poller.state.cluster import worker_registry
from poller.state.keys import ROUTINE_MARK, SLICE_MS

WAIT_S = 0.2
#: The announced number of concurrent batches, as that of a real worker.
SLOTS = 16


class Drain:
    def __init__(self, services: bootstrap.Services, interval_ms: int) -> None:
        self.batches: Counter[int] = Counter()  # by second
        self.late: defaultdict[int, Counter[int]] = defaultdict(
            Counter
        )  # second -> lateness in ms -> targets
        self.refused: Counter[str] = Counter()
        self._redis, self._keys, self._board = services.redis, services.keys, services.board
        self._interval_ms = interval_ms
        self._margin_ms = round(services.settings.lease_margin_s * 1000)
        self._queues: list[str] = []
        self._announce_at = 0.0
        self._stopping = False

    def run(self) -> None:
        while True:
            self._announce()
            message = self._pop()
            if message:
                self._discard(*_arguments(message))
            elif self._stopping:
                return

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True

    def _announce(self) -> None:
        """Announce the queues of this worker, so that the leader sends to them."""
        if time.monotonic() < self._announce_at:
            return
        self._announce_at = time.monotonic() + worker_registry.HEARTBEAT_S
        shared = self._board.queues()
        name = f"drain:{os.getpid()}"
        self._queues = sorted(affinity.subscribed_queues(shared, name))
        me = Worker(name, 0, 0, 0, 0, 0, queues=shared, own_queues=True, slots=SLOTS)
        worker_registry.announce(self._redis, self._keys, me)

    def _pop(self) -> str | None:
        """Take a message as kombu does: urgent queues first, and all queues in rotation."""
        if not self._queues:
            time.sleep(WAIT_S)
            return None
        self._queues.append(self._queues.pop(0))
        lists = [*self._queues, *(queue + ROUTINE_MARK for queue in self._queues)]
        popped: Any = self._redis.brpop(lists, timeout=WAIT_S)
        return popped[1] if popped else None

    def _discard(self, token: str, ids: Sequence[int]) -> None:
        """Call the board's scripts only: the work of a real worker is not measured here."""
        now, _, runs, specs, statuses, refused, _ = self._ask(
            "start", token, 0, secrets.token_hex(4), self._margin_ms, *ids
        )
        held = self._ask("hold", token, 0, *ids)
        now_ms, late = int(now), Counter[int]()
        text = Status(
            State.OK, now_ms, now_ms, now_ms, now_ms
        ).pack()  # as long as that of a real poll
        steady, others = list[str | int](), list[str | int]()
        off = {int(target_id) for target_id in (*refused[::2], *held[::2])}
        for target_id, run, before in zip(ids, runs, statuses, strict=True):
            if target_id not in off:
                late[max(0, now_ms - int(run.split("|", 2)[1]))] += 1
                rows = steady if before.startswith("o[") else others
                rows += (target_id, slots.next_slot_ms(target_id, self._interval_ms, now_ms), text)
        self.late[now_ms // 1000].update(late)
        self.batches[now_ms // 1000] += 1
        queue = next((spec.split("|", 3)[3] for spec in specs if spec), "")
        head = (
            "",
            token,
            SLICE_MS,
            moves.STATS_LIFETIME_S,
            queue,
            len(steady) // 3,
            late.total(),
        )
        no_errors, no_reports, no_events = 0, 0, 0
        tail = (no_errors, no_reports, no_events, *_statistics(queue, late))
        finished, _published = self._ask("finish", *head, *steady, *others, *tail)
        self.refused.update((*refused[1::2], *held[1::2], *finished[1::2]))

    def _ask(self, script: str, *arguments: str | int) -> Any:
        """Run a script of the board with the clock of the server."""
        return self._board.scripts.run(script, ["", *arguments])


def _statistics(queue: str, late: Counter[int]) -> list[str | int]:
    """Return the counters of a real worker, and their increments."""
    counts: Counter[str] = Counter()
    for value, number in late.items():
        counts[f"l{histogram.bucket(value)}"] += number
    polls = late.total()
    named = {
        **counts,
        "ok": polls,
        "polls": polls,
        f"q:{queue}": polls,
        "lmax": max(late, default=0),
    }
    return [word for pair in named.items() for word in pair]


def _arguments(message: str) -> tuple[str, list[int]]:
    """Return the token and the target ids of a Celery message."""
    token, ids = json.loads(json.loads(message)["body"])[0]
    return token, ids


def main(result: str, interval_ms: str) -> None:
    drain = Drain(bootstrap.services(), int(interval_ms))
    signal.signal(signal.SIGTERM, drain.stop)
    drain.run()
    Path(result).write_text(
        json.dumps({"late": drain.late, "refused": drain.refused, "batches": drain.batches})
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
