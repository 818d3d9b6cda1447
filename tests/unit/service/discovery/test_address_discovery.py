"""Discovery at an address: whatever a collector does, it ends in time and names the reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from poller.cli.direct import plugin_runner
from poller.collectors import api, discovery_runner
from poller.service.discovery import address_discovery
from poller.service.discovery.address_discovery import NO_LOGIN, Discovery, Plan, Suggested


class Finder:
    """A collector whose suggestions depend on its deed."""

    name = "finder"

    def __init__(self, deed: str) -> None:
        self._deed = deed

    async def discover(self, poll: api.Poll) -> AsyncIterator[Any]:
        if self._deed == "rubbish":
            yield 5
        if self._deed == "unsayable":
            yield api.Suggestion({"x": object()}, "it might")
        if self._deed == "exit":
            raise SystemExit(3)
        if self._deed == "cancelled":
            raise asyncio.CancelledError
        while self._deed == "endless":
            yield api.Suggestion({}, "again")
        if self._deed == "deaf":
            for _ in range(2):
                try:
                    await asyncio.sleep(0.5)
                except asyncio.CancelledError:
                    continue
        yield api.Suggestion({"port": 1}, "it answers")


@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        ("rubbish", "it suggests a int"),
        ("unsayable", "not JSON serializable"),
        ("exit", "SystemExit: 3"),
        ("cancelled", "CancelledError"),
        ("deaf", "no answer within 0.2 s"),
    ],
)
def test_the_failure_of_one_collector_does_not_stop_the_others(deed: str, reason: str) -> None:
    """The result of the faulty collector has the reason; the healthy one has its suggestion."""
    collectors: Any = [Finder(deed), Finder("")]
    collectors[0].name = "odd"
    options = {"odd": 1, "finder": 1}
    logins = {"odd": [NO_LOGIN], "finder": [NO_LOGIN]}
    plan = Plan(collectors, options, logins, 0.2)
    work = address_discovery.discover_all("127.0.0.1", plan)
    [odd, good] = plugin_runner.run(work, 5.0)
    suggested = Suggested("finder", {"port": 1}, "it answers")
    assert good == Discovery("finder", [suggested])
    assert odd.collector == "odd"
    assert odd.suggestions == ()
    assert reason in odd.reason


def test_endless_suggestions_are_cut_off() -> None:
    """A collector that never ends yields its first hundred suggestions."""
    finder: Any = Finder("endless")
    logins = {"finder": [NO_LOGIN]}
    plan = Plan([finder], {"finder": 1}, logins, 5.0)
    work = address_discovery.discover_all("127.0.0.1", plan)
    [found] = plugin_runner.run(work, 10.0)
    assert len(found.suggestions) == discovery_runner.MAXIMUM == 100


class Counting:
    """A collector that counts how many addresses are asked at the same time."""

    name = "counting"

    def __init__(self) -> None:
        self.running = 0
        self.most = 0

    async def discover(self, poll: api.Poll) -> AsyncIterator[api.Suggestion]:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.01)
        self.running -= 1
        if poll.address.endswith("7"):
            yield api.Suggestion({}, "it answers")


def test_a_scan_asks_a_limited_number_of_addresses_at_a_time() -> None:
    """The results come in the order of the addresses, and each one is counted when it is done."""
    counting: Any = Counting()
    plan = Plan([counting], {"counting": 1}, {"counting": [NO_LOGIN]}, 5.0)
    addresses = [f"127.0.0.{number}" for number in range(1, 31)]
    done: list[int] = []
    results = asyncio.run(address_discovery.scan(addresses, plan, 4, lambda: done.append(1)))
    assert [result.address for result in results] == addresses
    assert [result.address for result in results if result.suggestions] == [
        "127.0.0.7",
        "127.0.0.17",
        "127.0.0.27",
    ]
    assert (counting.most, len(done)) == (4, 30)
