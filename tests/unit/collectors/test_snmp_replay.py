"""A poll by prepared requests gives what the usual ones give, and costs no more when it fails."""

from __future__ import annotations

import asyncio

import pytest

from poller import errors
from poller.collectors.snmp.read import replay
from poller.collectors.snmp.read.request_size import RequestSizes
from poller.collectors.snmp.read.route import Route, RowRange
from poller.collectors.snmp.read.walker import RetryPolicy, Walker
from tests.unit.collectors import snmp_agent
from tests.unit.collectors.snmp_device import NUMBER, TABLE, UPTIME, Link
from tests.unit.collectors.test_snmp_shortcut import Poller, cold, device

COLUMN = f"{TABLE}.10"
ROUTE = Route((UPTIME, NUMBER), (RowRange("ifTable", COLUMN, COLUMN, 5, ends=True),), (), ())
ROWS = [(UPTIME, 1), (NUMBER, 5), *((f"{COLUMN}.{index}", index) for index in range(1, 6))]


def sizes(rows: int = 50, oids: int = 50) -> RequestSizes:
    made = RequestSizes(50)
    made.rows.now, made.oids.now = rows, oids
    return made


@pytest.mark.parametrize("count", [1, 4, 33])
def test_a_third_poll_sends_prepared_requests_only(count: int) -> None:
    """The second poll follows the route and prepares them."""
    poller = Poller(device(count))
    replayed = []
    for _ in range(4):
        poller.device.clock += 60
        assert poller.poll() == cold(poller.device)
        replayed.append(poller.last.replayed)
    assert replayed[0] == 0
    assert replayed[3] > 0
    assert poller.memory.shortcut is not None
    assert poller.memory.shortcut.replayable


def test_a_poll_after_a_failed_replay_uses_the_usual_requests() -> None:
    """Values are right in the poll that notices, and no later poll tries again in this period."""
    poller = Poller(device(4))
    for _ in range(4):
        poller.poll()
        poller.device.clock += 1
    poller.link["rows"] = 7  # the agent has got a smaller buffer
    for expected in (True, False):
        poller.device.clock += 1
        assert poller.poll() == cold(poller.device)
        assert bool(poller.last.replayed) is expected


def test_pages_of_a_range_begin_where_the_last_one_ended() -> None:
    """The last page asks for one row more, which shows the end of the subtree."""
    made = replay.make(ROUTE, ROWS, sizes(rows=4, oids=1))
    assert made is not None
    asked = [
        snmp_agent.parse_pdu(each.before_id + bytes(4) + each.after_id) for each in made.requests
    ]
    assert [(each.kind, each.repetitions, each.oids) for each in asked] == [
        (snmp_agent.GET_BULK, 4, [COLUMN]),
        (snmp_agent.GET_BULK, 2, [f"{COLUMN}.4"]),
        (snmp_agent.GET, 0, [UPTIME]),
        (snmp_agent.GET, 0, [NUMBER]),
    ]
    assert [bool(each.root) for each in made.requests] == [False, True, False, False]
    assert made.fits(sizes(rows=4, oids=1))
    assert not made.fits(sizes(rows=5, oids=1))


def test_rows_that_are_not_those_of_the_route_prepare_nothing() -> None:
    assert replay.make(ROUTE, ROWS[:-1], sizes()) is None
    assert replay.make(ROUTE, [ROWS[1], ROWS[0], *ROWS[2:]], sizes()) is None


@pytest.mark.parametrize("retries", [0, 2])
def test_a_silent_device_gets_no_more_requests_than_its_retries_allow(retries: int) -> None:
    made = replay.make(ROUTE, ROWS, sizes())
    assert made is not None

    async def poll() -> Walker:
        link = Link({})
        link.silent = ("1",)
        deadline = asyncio.get_running_loop().time() + 60
        walker = Walker(link, RetryPolicy(0.01, retries, deadline), sizes(), "it")
        assert await walker.replay(made.requests, window=4) is None
        with pytest.raises(errors.DeviceTimeout, match="no answer"):
            await walker.get((UPTIME, NUMBER))
        return walker

    walker = asyncio.run(poll())
    assert (walker.sent, walker.retried) == (retries + 1, retries)
