"""Polls on demand by the API: waiting, tickets, bounds."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import anyio
import httpx
import pytest

from poller.bootstrap import Services
from poller.domain.record.overview import State, Worker
from poller.state.cluster import worker_registry
from poller.state.requests import poll_tickets
from poller.state.requests.poll_tickets import PollTicket
from poller.web.api.operations import poll_wait
from tests.conftest import wait_until
from tests.integration import api_clients
from tests.integration.audited_actions import audited, facts, finish
from tests.integration.breaker_worlds import QUEUE, World

API = "/api/v1"


@pytest.fixture
def served(world: World) -> None:
    """A living worker that takes the targets."""
    worker = Worker("w1@a", 0, 1, 0, 0, 2**20, queues=[QUEUE])
    worker_registry.announce(world.services.redis, world.services.keys, worker)


@pytest.fixture
def world(services: Services) -> World:
    return World(services)


@pytest.fixture
def api(world: World) -> api_clients.TestClient:
    return api_clients.client(world.services)


@pytest.mark.usefixtures("served")
def test_a_poll_on_demand_is_waited_for(world: World, api: api_clients.TestClient) -> None:
    """The response has the outcome of each target."""
    ids = world.add(2)

    def work() -> None:
        urgent = world.services.keys.urgent(QUEUE)
        wait_until(lambda: world.services.redis.zcard(urgent) == 2, "the request")
        finish(world, ids, State.FAILING)

    worker = threading.Thread(target=work)
    worker.start()
    response = api.post(f"{API}/polls", json={"targets": ids, "wait_s": 20})
    worker.join()
    body = response.json()
    assert (response.status_code, body["complete"], body["ticket"]) == (200, True, None)
    assert [each["error_code"] for each in body["items"]] == ["timeout", "timeout"]
    [row] = audited(world.services)
    assert facts(row) == ("ci", "target.poll", "d1/snmp d2/snmp", 2)


@pytest.mark.usefixtures("served")
def test_waiting_requests_hold_no_thread(world: World, api: api_clients.TestClient) -> None:
    """With one thread for all requests another request is answered while two wait."""
    ids = world.add(2)

    async def ask() -> list[int]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = 1
        transport = httpx.ASGITransport(api.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            wait = partial(client.post, f"{API}/polls", timeout=60)
            polls = [
                asyncio.create_task(wait(json={"targets": [key], "wait_s": 60})) for key in ids
            ]
            requested = partial(wait_until, lambda: len(audited(world.services)) == 2, "the polls")
            await asyncio.get_running_loop().run_in_executor(None, requested)
            shown = await client.get(f"{API}/breakers/{ids[0]}", timeout=60)
            assert shown.status_code == 200
            assert not any(poll.done() for poll in polls)
            finish(world, ids)
            return [(await poll).status_code for poll in polls]

    assert asyncio.run(ask()) == [200, 200]


@pytest.mark.usefixtures("served")
def test_a_wait_too_many_is_answered_at_once(
    world: World, api: api_clients.TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of waiting requests is bounded: the next one gets its ticket."""
    [key] = world.add(1)
    monkeypatch.setattr(poll_wait, "_places", asyncio.Semaphore(0))
    response = api.post(f"{API}/polls", json={"targets": [key], "wait_s": 60})
    assert response.status_code == 202


@pytest.mark.usefixtures("served")
def test_a_poll_without_a_wait_has_a_ticket(world: World, api: api_clients.TestClient) -> None:
    """202, and the address of the results; an unknown ticket is 404."""
    ids = world.add(2)
    response = api.post(f"{API}/polls", json={"device": "d1"})
    assert response.status_code == 202
    ticket = response.json()["ticket"]
    assert response.headers["location"] == f"{API}/polls/{ticket}"
    finish(world, ids[:1])
    body = api.get(response.headers["location"]).json()
    assert (body["complete"], body["waiting"], body["items"][0]["device"]) == (True, 0, "d1")
    assert api.get(f"{API}/polls/{'0' * 32}").status_code == 404
    assert api.get(f"{API}/polls/nonsense").status_code == 422
    assert 0 < world.services.redis.ttl(world.services.keys.ticket(ticket)) <= 3_600


@pytest.mark.usefixtures("served")
def test_many_polls_are_confirmed_and_bounded(
    world: World, api: api_clients.TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above 64 the number is needed; above the limit of a request nothing is polled."""
    world.add(65)
    body = {"where": "name:'d*'"}
    assert api.post(f"{API}/polls", json={**body, "dry_run": True}).json()["matches"] == 65
    assert api.post(f"{API}/polls", json=body).status_code == 409
    monkeypatch.setattr("poller.web.api.operations.poll_wait.MOST_TARGETS", 64)
    refused = api.post(f"{API}/polls", json={**body, "confirm": 65})
    assert (refused.status_code, "at most" in refused.json()["detail"]) == (422, True)
    assert audited(world.services) == []
    monkeypatch.undo()
    assert api.post(f"{API}/polls", json={**body, "confirm": 65}).status_code == 202


def test_a_target_that_no_worker_takes_is_not_waited_for(
    world: World, api: api_clients.TestClient
) -> None:
    """404 with what is missing, at once."""
    [key] = world.add(1)
    response = api.post(f"{API}/polls", json={"targets": [key], "wait_s": 60})
    assert response.status_code == 404
    assert "no running worker takes" in response.json()["detail"]


def test_tickets_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest ticket makes room for a new one."""
    monkeypatch.setattr(poll_tickets, "MOST_TICKETS", 2)
    store = (world.services.redis, world.services.keys)
    for number in range(4):
        poll_tickets.keep(*store, f"t{number}", PollTicket(number + 1, [number], None))
    kept = [poll_tickets.read(*store, f"t{number}") is not None for number in range(4)]
    assert kept == [False, False, True, True]
    assert world.services.redis.zcard(world.services.keys.tickets) == 2
