"""What a failed poll leaves in the memory of its worker: nothing, without a garbage collection.

Workers collect garbage rarely. A cycle through an exception keeps its frames, and the frames keep
the whole answer of a device.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

import pytest

from poller import errors
from poller.collectors import api
from poller.collectors.credentials import Community
from poller.collectors.http import HttpCollector
from poller.collectors.http.exchange_record import Exchange
from poller.collectors.memory import answer_budget
from poller.collectors.ping import PingCollector
from poller.collectors.poll_runner import PollRunner
from poller.collectors.routeros import RouterOsCollector, sentence_parser
from poller.collectors.routeros.router_connection import RouterConnection
from poller.collectors.snmp import SnmpCollector
from poller.collectors.snmp.read import walker
from poller.domain.failures.outcome import Outcome, Result
from tests.integration import scripted_router, test_collector_snmp_hostile, web_servers
from tests.unit.collectors.polls import polled

#: A property that only the hostile router of these tests sends.
JUNK = "junk-of-a-hostile-router"
POLLS = 4


#: Objects of each type before the test: other tests may have left some.
_before: Counter[type] = Counter()


@pytest.fixture(autouse=True)
def _no_collection() -> Iterator[None]:
    """No garbage collection during a test: what a cycle holds stays visible."""
    gc.collect()
    _before.clear()
    _before.update(map(type, gc.get_objects()))
    gc.disable()
    yield
    gc.enable()


def alive(*kinds: type) -> int:
    """Count objects of these types that the test has left."""
    now = Counter(map(type, gc.get_objects()))
    return sum(now[kind] - _before[kind] for kind in kinds)


def junk_rows() -> int:
    """Rows in lists: Python does not track a dict of texts."""
    lists = [each for each in gc.get_objects() if type(each) is list and each]
    return sum(len(rows) for rows in lists if type(rows[0]) is dict and JUNK in rows[0])


def flood(sentence: scripted_router.Sentence) -> bytes:
    """Accept the login, then answer every command with rows and no end."""
    if sentence[0] == b"/login":
        return scripted_router.encode(b"!done")
    row = scripted_router.encode(b"!re", f"={JUNK}=1".encode(), b"=name=x")
    return row * 20_000


async def polls_of_router(
    answer: scripted_router.Answer, timeout_s: float = 5.0
) -> tuple[list[Outcome], dict[str, Any]]:
    """Poll one router repeatedly. The target's memory is returned: a worker keeps it."""
    memory: dict[str, Any] = {}
    outcomes = []
    async with scripted_router.scripted(answer) as script:
        for _ in range(POLLS):
            report = await polled(
                RouterOsCollector(),
                "127.0.0.1",
                scripted_router.LOGIN,
                memory,
                timeout_s,
                port=script.port,
                tls=False,
                families=["resource"],
            )
            outcomes.append(report.outcome)
        await asyncio.sleep(0)
    return outcomes, memory


def test_a_flood_of_rows_is_dropped_with_its_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """The router sends rows without an end, and the limit of a poll cuts the connection."""
    monkeypatch.setattr(sentence_parser, "MAX_WORDS", 30_000)
    outcomes, memory = asyncio.run(polls_of_router(flood))
    assert {each.error_code for each in outcomes} == {"protocol_error"}
    assert "more than 30,000 words" in outcomes[0].message
    assert memory
    assert (junk_rows(), alive(RouterConnection, PollRunner)) == (0, 0)


def test_rows_are_dropped_when_the_time_of_the_poll_is_up() -> None:
    """The router sends many rows and falls silent before the end of its reply."""
    outcomes, memory = asyncio.run(polls_of_router(flood, 0.8))
    assert {each.error_code for each in outcomes} == {"timeout"}
    assert memory
    assert (junk_rows(), alive(RouterConnection, PollRunner)) == (0, 0)


def test_hostile_routers_share_a_limit_and_small_polls_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seven routers that send rows for ever, beside a healthy one."""
    monkeypatch.setattr(answer_budget.shared, "limit", 30 * 2**20)
    highest = 0

    async def watch() -> None:
        nonlocal highest
        while True:
            highest = max(highest, answer_budget.shared.held)
            await asyncio.sleep(0)

    async def run() -> list[Outcome]:
        watcher = asyncio.create_task(watch())
        async with (
            scripted_router.scripted(flood) as hostile,
            scripted_router.scripted(scripted_router.healthy) as healthy,
        ):
            scripts = [hostile] * 7 + [healthy]
            polls = [scripted_router.poll_script(each) for each in scripts]
            outcomes = await asyncio.gather(*polls)
        watcher.cancel()
        return outcomes

    *floods, well = asyncio.run(run())
    assert well.result is Result.OK
    cut = [each for each in floods if "too much for this worker" in each.message]
    assert {each.error_code for each in cut} == {"protocol_error"}
    assert len(cut) >= 3
    assert 20 * 2**20 < highest < 2 * 30 * 2**20
    assert answer_budget.shared.held == 0


def test_a_large_body_counts_towards_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_budget.shared, "limit", 2 * 2**20)
    script = web_servers.saying("HTTP/1.1 200 OK", b"x" * 8 * 2**20)
    with web_servers.serving(script) as server:
        report = asyncio.run(
            polled(HttpCollector(), "127.0.0.1", None, port=server.port, max_body=2**24)
        )
    assert "too much for this worker" in report.outcome.message
    assert answer_budget.shared.held == 0


def test_an_endless_table_counts_towards_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_budget.shared, "limit", 3 * 2**20)
    with test_collector_snmp_hostile.agent(test_collector_snmp_hostile.endless) as made:
        report = asyncio.run(
            polled(
                SnmpCollector(),
                "127.0.0.1",
                Community.from_text("public"),
                port=made.port,
                modules=["if_mib"],
            )
        )
    assert "too much for this worker" in report.outcome.message
    assert answer_budget.shared.held == 0


@pytest.mark.parametrize(("max_rows", "timeout_s"), [(2_000, 5.0), (200_000, 0.5)])
def test_an_endless_table_is_dropped_with_its_poll(
    monkeypatch: pytest.MonkeyPatch, max_rows: int, timeout_s: float
) -> None:
    monkeypatch.setattr(walker, "MAX_ROWS", max_rows)

    async def run(port: int) -> Outcome:
        collector = SnmpCollector()
        community = Community.from_text("public")
        modules = {"modules": ["if_mib"], "port": port}
        outcome = None
        for _ in range(POLLS):
            report = await polled(collector, "127.0.0.1", community, {}, timeout_s, **modules)
            outcome = report.outcome
        await collector.close()
        assert outcome is not None
        return outcome

    with test_collector_snmp_hostile.agent(test_collector_snmp_hostile.endless) as made:
        outcome = asyncio.run(run(made.port))
    assert outcome.error_code == ("protocol_error" if max_rows == 2_000 else "timeout")
    assert alive(walker.Walked, walker.Walker, PollRunner) == 0


def test_the_body_of_a_failed_request_is_dropped_with_its_poll() -> None:
    script = web_servers.saying("HTTP/1.1 503 Unavailable", b"x" * 50_000)
    with web_servers.serving(script) as server:

        async def run() -> Outcome:
            for _ in range(POLLS):
                report = await polled(HttpCollector(), "127.0.0.1", None, port=server.port)
            return report.outcome

        outcome = asyncio.run(run())
    assert outcome.error_code == "unwell"
    assert alive(Exchange, PollRunner) == 0


@pytest.mark.parametrize(
    "collector", [HttpCollector(), PingCollector(), RouterOsCollector(), SnmpCollector()]
)
def test_a_refused_connection_leaves_no_garbage(collector: Any, free_port: int) -> None:
    """A dead device fails at every slot."""
    credentials = {"routeros": scripted_router.LOGIN, "snmp": Community.from_text("public")}
    options = {"method": "tcp"} if collector.name == "ping" else {}

    async def run() -> None:
        for _ in range(POLLS):
            credential = credentials.get(collector.name)
            memory: dict[str, Any] = {}
            await polled(collector, "127.0.0.1", credential, memory, 2, port=free_port, **options)

    asyncio.run(run())
    gc.collect()
    asyncio.run(run())
    assert gc.collect() < 40


class Rows(list[int]):
    """The answer of a device, as a plugin may hold it."""


class _Plugin:
    name: ClassVar[str] = "holder"
    api_version: ClassVar[int] = api.API_VERSION
    Options: ClassVar[type[api.Options]] = api.Options
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()


class Keeper(_Plugin):
    """Stores its exception and raises it again, as a connection does that failed before."""

    def __init__(self, stored: BaseException) -> None:
        self._stored = stored

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        rows = Rows(range(100))
        yield api.Reading("rows", len(rows))
        try:
            raise self._stored
        except OSError:
            raise errors.DeviceUnreachable("it is gone") from None


class Reporter(_Plugin):
    """Remembers the error of a part in the target's memory, and yields it."""

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        rows = Rows(range(100))
        yield api.Reading("rows", len(rows))
        try:
            raise OSError("cut")
        except OSError as error:
            failure = errors.DeviceProtocolError(str(error))
            failure.__cause__ = error
        poll.memory["failure"] = failure
        yield api.PartFailed("rows", failure)


class Blocking(_Plugin):
    """Yields its rows in a thread, and fails then."""

    blocking: ClassVar[bool] = True

    def collect(self, poll: api.Poll) -> Iterator[api.Yielded]:
        rows = Rows(range(100))
        yield api.Reading("rows", len(rows))
        raise RuntimeError("a mistake")


@pytest.mark.parametrize(
    "collector",
    [
        Keeper(errors.DeviceTimeout("stored")),
        Keeper(OSError("stored")),
        Keeper(RuntimeError("stored")),
        Keeper(ExceptionGroup("stored", [OSError("one"), RuntimeError("two")])),
        Reporter(),
        Blocking(),
    ],
    ids=["stored", "translated", "crash", "group", "part", "blocking"],
)
def test_the_error_of_a_plugin_keeps_no_rows(
    collector: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector, the target's memory and the report stay in the worker; the frames do not."""
    # pytest would keep the log record of a crash, with its traceback
    monkeypatch.setattr(logging.getLogger("poller.collectors"), "disabled", True)
    memory: dict[str, Any] = {}

    async def run() -> list[Outcome]:
        reports = [await polled(collector, "127.0.0.1", None, memory) for _ in range(POLLS)]
        return [each.outcome for each in reports]

    outcomes = asyncio.run(run())
    assert Result.OK not in {each.result for each in outcomes}
    assert alive(Rows, PollRunner) == 0
