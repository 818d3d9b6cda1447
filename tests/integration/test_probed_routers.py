"""Probes of simulated routers: from the last poll of a target, and by a poll of the probe's own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from poller.bootstrap import Services
from poller.collectors.credentials import Login
from poller.domain.scrapes.scrape_poll import ScrapePoll
from poller.sim import fleet
from poller.sim.fleet import SimDevice
from poller.sim.fleet_server import TlsPorts
from poller.sim.sim_process import Running, simulated
from tests.integration.scrape_worlds import ScrapeWorld
from tests.integration.test_scrapes import value

if os.environ.get("CI") != "true":
    pytest.importorskip("librouteros", reason="the extra poller[routeros] is not installed")

ROUTERS = fleet.devices(2, snmp_share=0, faulty_share=0)
KNOWN, STRANGER = ROUTERS


@pytest.fixture(scope="module")
def routers() -> Iterator[Running]:
    with simulated(ROUTERS, tls=TlsPorts()) as running:
        yield running


@pytest.fixture
def world(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScrapeWorld]:
    made = ScrapeWorld(services, monkeypatch)
    made.announce_worker()
    made.add_login("router", Login(username=fleet.USERNAME, password=fleet.PASSWORD))
    yield made
    made.close()


def add(world: ScrapeWorld, routers: Running, device: SimDevice, credential: str) -> int:
    return world.add_device(
        "gw1",
        routers.routeros_tls,
        credential,
        collector="routeros",
        address=device.address,
        options={"families": ["resource", "interfaces"], "insecure": True},
    )


def probe(device: SimDevice, port: int, auth: str = "router") -> str:
    return f"/probe?module=routeros&target={device.address}:{port}&auth={auth}"


def test_a_router_of_the_inventory_answers_from_its_last_poll(
    world: ScrapeWorld, routers: Running
) -> None:
    """By name and by address, with the metrics of mktxp's families, and without a command."""
    world.poll(add(world, routers, KNOWN, "router"))
    before = routers.visits(KNOWN.address).commands
    targets = ("gw1", KNOWN.address)
    answers = world.get_all([f"/probe?module=routeros&target={target}" for target in targets])
    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert value(answer.text, "probe_success") == 1
        assert value(answer.text, "probe_duration_seconds") > 0
        assert value(answer.text, "poller_scrape_age_seconds") >= 0
        assert "# HELP routeros_interface_rx_byte " in answer.text
        assert "# TYPE routeros_interface_rx_byte counter" in answer.text
    assert routers.visits(KNOWN.address).commands == before
    assert world.sent == []


def test_ten_probes_of_a_strange_router_log_in_once(world: ScrapeWorld, routers: Running) -> None:
    """Two web processes share the poll, over api-ssl with the login that `auth` names."""
    before = routers.visits(STRANGER.address).logins
    answers = world.get_all([probe(STRANGER, routers.routeros_tls)] * 10, processes=2)
    assert {answer.status_code for answer in answers} == {200}
    assert {value(answer.text, "probe_success") for answer in answers} == {1}
    assert routers.visits(STRANGER.address).logins == before + 1
    [sent] = world.sent
    assert fleet.PASSWORD not in sent.to_json()


def test_a_router_with_another_port_is_polled_with_the_options_of_its_target(
    world: ScrapeWorld, routers: Running
) -> None:
    """The families and the trust of the target are taken over, and its login without `auth`."""
    add(world, routers, KNOWN, "router")
    path = f"/probe?module=routeros&target={KNOWN.address}:{routers.routeros_anonymous}"
    answer = world.get(path)
    assert (answer.status_code, value(answer.text, "probe_success")) == (200, 1)
    [sent] = world.sent
    assert sent == ScrapePoll(
        "routeros",
        KNOWN.address,
        {
            "families": ["resource", "interfaces"],
            "insecure": True,
            "port": routers.routeros_anonymous,
        },
        sent.credential_id,
    )


def test_a_refused_login_is_no_success_and_says_why(world: ScrapeWorld, routers: Running) -> None:
    """The reason is a comment, which Prometheus skips and a person reads; no secret is in it."""
    world.add_login("wrong", Login(username=fleet.USERNAME, password="not-this-one"))
    answer = world.get(probe(STRANGER, routers.routeros_tls, "wrong"))
    assert (answer.status_code, value(answer.text, "probe_success")) == (200, 0)
    [reason] = [line for line in answer.text.splitlines() if line.startswith("# error probing")]
    assert "auth_failed" in reason
    assert "not-this-one" not in answer.text


def test_a_router_without_a_login_is_not_polled(world: ScrapeWorld, routers: Running) -> None:
    """A stranger needs `auth`; a community is of the wrong kind."""
    world.add_credential("lab", "public")
    nameless = probe(STRANGER, routers.routeros_tls).replace("&auth=router", "")
    paths = [nameless, probe(STRANGER, routers.routeros_tls, "lab")]
    without, wrong = world.get_all(paths)
    assert (without.status_code, "needs a credential" in without.text) == (400, True), without.text
    assert (wrong.status_code, "of kind community" in wrong.text) == (400, True), wrong.text
    assert world.sent == []
