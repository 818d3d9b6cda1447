"""A Redis that accepts connections and never answers: each call ends after two tries."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
import redis

from poller import errors, wakeups
from poller.state import redis_client as clients
from poller.state.board.moves import Board
from poller.state.keys import Keys
from tests.acceptance.cluster import soon
from tests.acceptance.proxy import Proxy

#: A short one, so that the test is short: the tries are counted in it.
TIMEOUT_S = 0.3
CALLS: dict[str, Callable[[Board], object]] = {
    "command": lambda board: board.now_ms(),
    "script": lambda board: board.reap(""),
    "pipeline": lambda board: board.sizes(),
}


@pytest.fixture
def client(network: Proxy, redis_client: redis.Redis) -> redis.Redis:
    return connect(network)


def connect(network: Proxy) -> redis.Redis:
    return clients.connect(f"redis://127.0.0.1:{network.port}/0", TIMEOUT_S)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("is_warm", [True, False], ids=["old connection", "new connection"])
def test_a_call_ends_after_two_tries(
    client: redis.Redis, network: Proxy, call: Callable[[Board], object], is_warm: bool
) -> None:
    """redis-py would try again inside each try: to connect, and to check the connection."""
    board = Board(client, Keys())
    if is_warm:
        call(board)
        # The check of an idle connection would be due.
        for connection in client.connection_pool._available_connections:
            connection.next_health_check = 0.0
    network.silence()
    began = time.monotonic()
    with pytest.raises(errors.StoreUnavailable):
        call(board)
    tries = (time.monotonic() - began) / TIMEOUT_S
    assert 2 <= tries < 5
    network.heal()
    call(board)


def test_a_subscription_that_fell_silent_is_made_again(
    network: Proxy, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection stays open, so only an unanswered question shows that it is dead."""
    monkeypatch.setattr(wakeups, "CHECK_S", 0.1)
    monkeypatch.setattr(wakeups, "PASS_S", 0.1)
    stopping = threading.Event()
    heard: list[str] = []
    wakeups.listen(connect(network), "a channel", heard.append, stopping)
    soon(lambda: heard == [wakeups.RESUBSCRIBED], 5, "a subscription")
    network.silence()
    accepted = network.accepted
    soon(lambda: network.accepted > accepted, 10, "another connection")
    network.heal()
    soon(lambda: heard == [wakeups.RESUBSCRIBED] * 2, 10, "another subscription")
    redis_client.publish("a channel", "news")
    soon(lambda: "news" in heard, 5, "the message")
    stopping.set()
