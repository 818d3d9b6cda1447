"""A bad collector, option or credential of one target does not affect the rest of its batch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
import redis
import sqlalchemy as sa
from pydantic import field_validator

from poller.bootstrap import Services
from poller.collectors import api, poll_runner
from poller.collectors.credentials import Token
from poller.collectors.registry import Broken, Registry
from poller.db import migrate
from poller.db.inventory import devices
from poller.db.record import run_pages
from poller.db.tables import credentials as credentials_table
from poller.db.tables import targets as targets_table
from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import TargetSpec
from poller.settings import Settings
from poller.state.board.board_values import ClaimLimits
from poller.workers.batch.worker_poller import Poller

QUEUE = "poll.any"
ROOM = ClaimLimits(targets=1000, batch_size=64, lease_ms=30_000)


class Collector:
    """A sound collector; the classes below differ from it in one point."""

    name: ClassVar[str] = "good"
    api_version: ClassVar[int] = api.API_VERSION
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()
    Options: ClassVar[type[api.Options]] = api.Options

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        yield api.Reading("polled", 1.0)


class ThrowingOptions(api.Options):
    x: int = 0

    @field_validator("x")
    @classmethod
    def _broken(cls, value: int) -> int:
        raise RuntimeError("a validator with a bug")


class Picky(Collector):
    Options = ThrowingOptions


class Endless(Collector):
    """A device that never ends, and a collector that never waits."""

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        until = time.monotonic() + 20
        while time.monotonic() < until:
            yield api.Reading("polled", 1.0)


class Spoiler(Collector):
    """Overwrites the platform's entries in the memory of its target."""

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        for key in [*poll.memory, "poller.series", "poller.staleness"]:
            poll.memory[key] = object()
        yield api.Reading("polled", 1.0)


class Quitter(Collector):
    """Raises SystemExit in a task of its own."""

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        await asyncio.wait([asyncio.create_task(self._quit())])
        yield api.Reading("polled", 1.0)

    async def _quit(self) -> None:
        raise SystemExit(3)


class Stopper(Collector):
    """Stops the loop it runs on."""

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        asyncio.get_running_loop().stop()
        yield api.Reading("polled", 1.0)


class Shared(Collector):
    """Cancels itself from within."""

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        yield api.Reading("polled", 1.0)


class BadToken(Token):
    kind = "bad_token"

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> BadToken:
        raise KeyError(fields)


BAD: dict[str, Collector] = {
    "picky": Picky(),
    "endless": Endless(),
    "spoiler": Spoiler(),
    "quitter": Quitter(),
    "stopper": Stopper(),
    "shared": Shared(),
}
Polled = Callable[..., dict[str, tuple[Result, str]]]


@pytest.fixture
def services(
    home: Path, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> Services:
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    monkeypatch.setenv("POLLER_RETRY_TRIES", "0")
    made = Services(Settings())
    migrate.upgrade(made.engine)
    good = Collector()
    broken = (
        Broken("broken", "acme-olt 2.2", "ImportError: no module named acme", "pip install acme"),
    )
    made.registry = Registry({"good": good, **BAD}, broken, dict.fromkeys(["good", *BAD], "tests"))  # type: ignore[misc]
    return made


@pytest.fixture
def polled(services: Services) -> Iterator[Polled]:
    """Poll a batch of two sound targets and an odd one; return the result of each device."""
    poller = Poller(services, "worker@test")
    tokens = iter("abcdefgh")

    def poll(
        collector: str, options: dict[str, Any] | None = None, credential: int | None = None
    ) -> Any:
        _add(services, collector, options or {}, credential)
        with services.engine.connect() as conn:
            ids = list(conn.execute(sa.select(targets_table.c.id)).scalars())
        services.board.place("", [(TargetSpec(i, 1, QUEUE, 60_000, 1_000), 1) for i in ids], 1)
        return again(ids)

    def again(ids: list[int]) -> dict[str, tuple[Result, str]]:
        token = next(tokens)
        services.board.demand(ids)
        services.board.claim("", token, "", {QUEUE: 100}, ROOM)
        poller.poll(token, ids)
        rows = run_pages.recent(services.engine, limit=len(ids))
        return {row.device: (row.run.outcome, row.run.error_code) for row in rows}

    poll.again = again  # type: ignore[attr-defined]
    yield poll
    services.engine.dispose()


def _add(
    services: Services, collector: str, options: dict[str, Any], credential: int | None
) -> None:
    drafts = {"first": "good", "odd": collector, "last": "good"}
    for name, kind in drafts.items():
        target = TargetDraft("t", "good", {}, interval_ms=60_000, timeout_ms=1_000)
        devices.add(services.engine, DeviceDraft(name, "127.0.0.1"), [target])
        # As it was stored while the collector was installed and the options were valid.
        with services.engine.begin() as conn:
            newest = sa.select(sa.func.max(targets_table.c.id)).scalar_subquery()
            values: dict[str, Any] = {"collector": kind}
            if name == "odd":
                values["options"] = options
                if credential:
                    values["credential_id"] = credential
            conn.execute(
                sa.update(targets_table).where(targets_table.c.id == newest).values(values)
            )


OK = (Result.OK, "")


@pytest.mark.parametrize(
    ("collector", "options", "expected"),
    [
        ("nowhere", {}, (Result.REFUSED, error_codes.COLLECTOR_MISSING)),
        ("broken", {}, (Result.REFUSED, error_codes.COLLECTOR_MISSING)),
        ("good", {"gone": 1}, (Result.REFUSED, error_codes.OPTIONS_INVALID)),
        ("picky", {"x": 1}, (Result.REFUSED, error_codes.OPTIONS_INVALID)),
        ("endless", {}, (Result.FAILED, error_codes.COLLECTOR_CRASHED)),
        ("quitter", {}, OK),
        ("stopper", {}, OK),
        ("shared", {}, (Result.FAILED, error_codes.COLLECTOR_CRASHED)),
    ],
    ids=[
        "not installed",
        "broken",
        "old option",
        "validator with a bug",
        "endless",
        "quits",
        "stops the loop",
        "cancels",
    ],
)
def test_other_targets_of_the_batch_are_polled_as_usual(
    polled: Polled,
    monkeypatch: pytest.MonkeyPatch,
    collector: str,
    options: dict[str, Any],
    expected: tuple[Result, str],
) -> None:
    """The odd target has an outcome of its own, and the batch is not delayed."""
    monkeypatch.setattr(poll_runner, "MAX_ITEMS", 5_000)
    started = time.monotonic()
    assert polled(collector, options) == {"first": OK, "odd": expected, "last": OK}
    assert time.monotonic() - started < 8


def test_a_collector_that_spoils_its_memory_affects_no_other_target(
    polled: Polled, services: Services
) -> None:
    """The platform reads the memory at the next poll."""
    polled("spoiler")
    with services.engine.connect() as conn:
        ids = list(conn.execute(sa.select(targets_table.c.id)).scalars())
    result = polled.again(ids)  # type: ignore[attr-defined]
    assert (result["first"], result["last"]) == (OK, OK)
    assert result["odd"][1] in ("", error_codes.COLLECTOR_CRASHED)


def test_a_credential_whose_model_has_a_bug_is_refused_without_its_text(
    polled: Polled, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exception may quote the secret; the outcome must not."""
    monkeypatch.setattr(Collector, "credentials", (BadToken,))
    text = '{"kind": "bad_token", "token": "hunter22"}'
    envelope = services.keyring.seal(text, "odd-one", "bad_token")
    now = datetime.now(UTC)
    row = {"name": "odd-one", "kind": "bad_token", "envelope": envelope, "version": 1}
    with services.engine.begin() as conn:
        added = conn.execute(
            sa.insert(credentials_table).values(**row, created_at=now, updated_at=now)
        )
    result = polled("good", {}, added.inserted_primary_key[0])
    # The other targets have no credential at all.
    assert set(result.values()) == {(Result.REFUSED, error_codes.CREDENTIAL_UNUSABLE)}
    assert "hunter22" not in str(run_pages.recent(services.engine))
