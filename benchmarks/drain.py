"""The sink that discards batches: a worker that polls in no time. It takes messages as Celery does, starts and
finishes their targets on the board, and notes how late they were.

`python -m benchmarks.drain RESULT INTERVAL_MS` runs until SIGTERM, and then until its queues are empty.
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
from poller.domain import histogram, plan
from poller.domain.overview import State, Worker
from poller.domain.status import Status
from poller.state import board, scripts, workers

WAIT_S = 0.2
#: Batches it says it polls at a time, as a real worker does.
SLOTS = 16


class Drain:
    def __init__(self, services: bootstrap.Services, interval_ms: int) -> None:
        self.late: defaultdict[int, Counter[int]] = defaultdict(Counter)  # second -> lateness in ms -> targets
        self.refused: Counter[str] = Counter()
        self._redis, self._keys, self._board = services.redis, services.keys, services.board
        self._scripts = scripts.load(services.redis, ("start", "finish"))
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
        """Say what we take, so that the leader queues it."""
        if time.monotonic() < self._announce_at:
            return
        self._announce_at = time.monotonic() + workers.HEARTBEAT_S
        self._queues = self._board.queues()
        me = Worker(f"drain:{os.getpid()}", 0, 0, 0, 0, 0, queues=self._queues, slots=SLOTS)
        workers.announce(self._redis, self._keys, me)

    def _pop(self) -> str | None:
        """As kombu does: what is urgent before what is not, and every queue in turn."""
        if not self._queues:
            time.sleep(WAIT_S)
            return None
        self._queues.append(self._queues.pop(0))
        lists = [*self._queues, *(queue + board.ROUTINE_MARK for queue in self._queues)]
        popped: Any = self._redis.brpop(lists, timeout=WAIT_S)
        return popped[1] if popped else None

    def _discard(self, token: str, ids: Sequence[int]) -> None:
        """The scripts themselves: a worker's own work with their answers is not what is measured here."""
        head = ("", token, 0, secrets.token_hex(4), self._margin_ms)
        now, queue, _, *answers = self._scripts["start"](keys=[self._keys.prefix], args=[*head, *ids])
        now_ms, late = int(now), Counter[int]()
        rows: list[str | int] = []
        text = Status(State.OK, now_ms, now_ms, now_ms, now_ms).pack()  # as long as a real one
        for target_id, verdict, plan_ms, version in zip(ids, answers[::4], answers[1::4], answers[2::4], strict=True):
            if verdict == "ok":
                late[max(0, now_ms - int(plan_ms))] += 1
                rows += (target_id, "due", plan.next_slot_ms(target_id, self._interval_ms, now_ms), version, text)
            else:
                self.refused[verdict] += 1
        self.late[now_ms // 1000].update(late)
        self._finish(token, rows, _statistics(queue, late))

    def _finish(self, token: str, rows: list[str | int], statistics: list[str | int]) -> None:
        head = ("", "", token, len(rows) // 5, board.SLICE_MS, board.STATS_LIFETIME_S)
        verdicts = self._scripts["finish"](keys=[self._keys.prefix], args=[*head, *rows, 0, *statistics])
        if verdicts.count("ok") < len(verdicts):
            self.refused.update(verdict for verdict in verdicts if verdict != "ok")


def _statistics(queue: str, late: Counter[int]) -> list[str | int]:
    """The counters a real worker would give, and their increments."""
    counts: Counter[str] = Counter()
    for value, number in late.items():
        counts[f"l{histogram.bucket(value)}"] += number
    polls = late.total()
    named = {**counts, "ok": polls, "polls": polls, f"q:{queue}": polls, "lmax": max(late, default=0)}
    return [word for pair in named.items() for word in pair]


def _arguments(message: str) -> tuple[str, list[int]]:
    """Token and target ids of a Celery message."""
    token, ids = json.loads(json.loads(message)["body"])[0]
    return token, ids


def main(result: str, interval_ms: str) -> None:
    drain = Drain(bootstrap.services(), int(interval_ms))
    signal.signal(signal.SIGTERM, drain.stop)
    drain.run()
    Path(result).write_text(json.dumps({"late": drain.late, "refused": drain.refused}))


if __name__ == "__main__":
    main(*sys.argv[1:])
