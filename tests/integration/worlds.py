"""A worker's environment in one process: a real server, a real database and a collector with
scripted results.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import sqlalchemy as sa

from poller.bootstrap import Services
from poller.collectors import api
from poller.db.inventory import devices
from poller.db.record import run_pages
from poller.db.tables import targets as targets_table
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.scheduling.interval import Decision
from poller.settings import Settings
from poller.state.board.board_values import ClaimLimits
from poller.workers.batch.worker_poller import Poller

QUEUE = "poll.fake"


ROOM = ClaimLimits(targets=1000, batch_size=64, lease_ms=30_000)


class Fake:
    """A collector that behaves as the target's `do` option says."""

    name: ClassVar[str] = "fake"
    api_version: ClassVar[int] = api.API_VERSION
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()

    class Options(api.Options):
        do: str = "answer"

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.behind: dict[int, bool] = {}
        self.hanging = threading.Event()
        self.recovered = False

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        self.addresses.append(poll.address)
        self.behind[poll.target_id] = poll.is_behind
        if poll.options.do == "dead" and not self.recovered:
            raise api.DeviceTimeout("no answer")
        if poll.options.do in ("busy", "quiet"):
            yield api.Reading(
                "load", float(len(self.addresses)) if poll.options.do == "busy" else 7.0
            )
        yield api.Reading("polls", 1.0, {"device": poll.device}, api.Kind.COUNTER)
        if poll.options.do == "down" and not self.recovered:
            raise api.DeviceDown("nobody there")
        if poll.options.do == "fail":
            raise api.DeviceTimeout("no answer")
        if poll.options.do == "crash":
            raise RuntimeError("a bug")
        if poll.options.do == "hang":
            self.hanging.set()
            await asyncio.sleep(3600)


class World:
    """A worker's environment, with as many targets as a test adds."""

    def __init__(self, services: Services, collector: Fake) -> None:
        self.services = services
        self.collector = collector
        self.board = services.board
        self.poller = Poller(services, "worker@test")
        self.published = ""

    def add(
        self, *deeds: str, interval_ms: int = 60_000, timeout_ms: int = 2_000, **more: Any
    ) -> list[int]:
        for number, deed in enumerate(deeds):
            target = TargetDraft(
                "fake", "fake", {"do": deed}, interval_ms=interval_ms, timeout_ms=timeout_ms, **more
            )
            devices.add(
                self.services.engine, DeviceDraft(f"d{number}", f"127.0.0.{number + 1}"), [target]
            )
        with self.services.engine.connect() as conn:
            ids = list(
                conn.execute(sa.select(targets_table.c.id).order_by(targets_table.c.id)).scalars()
            )
        specs = [(TargetSpec(i, 1, QUEUE, interval_ms, timeout_ms), 1) for i in ids]
        self.board.place("", specs, 1)
        return ids

    def retrying(self, tries: int) -> None:
        """Replace the worker by one that retries failed polls."""
        self.services.settings = Settings(retry_tries=tries)
        self.poller = Poller(self.services, "worker@test")

    def claim(self, token: str = "t") -> None:
        self.board.claim("", token, self.published, {QUEUE: 100}, ROOM)
        self.published = token

    def poll_now(self, ids: list[int], token: str) -> None:
        """Poll the targets now, whatever their slots."""
        self.board.demand(ids)
        self.claim(token)
        self.poller.poll(token, ids)

    def decision(self, target_id: int) -> Decision:
        found = self.board.statuses([target_id])[target_id].decision
        assert found is not None
        return found

    def due_ms(self, target_id: int) -> int:
        redis, keys = self.services.redis, self.services.keys
        score = redis.zscore(keys.due(QUEUE), str(target_id)) or redis.zscore(
            keys.urgent(QUEUE), str(target_id)
        )
        assert score is not None
        return int(score)

    def outcomes(self) -> dict[int, tuple[Result, str]]:
        return {
            row.run.target_id: (row.run.outcome, row.run.error_code)
            for row in run_pages.recent(self.services.engine)
        }

    def sound(self, ids: list[int]) -> bool:
        check = self.board.check(ids)
        return not check.lost and not check.doubled

    def in_flight(self) -> int:
        return int(self.services.redis.zcard(self.services.keys.inflight))
