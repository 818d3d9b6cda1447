"""Three independent programs accept the simulated routers: librouteros, RouterOS-api and mktxp."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks import mktxp
from poller.sim import clock, fleet, hardware
from poller.sim.fleet_server import TlsPorts
from poller.sim.routeros import menu_commands, router_users
from poller.sim.sim_process import Running, simulated
from tests.conftest import missing, wait_until
from tests.integration import other_programs

if os.environ.get("CI") != "true":
    pytest.importorskip("librouteros", reason="the extra poller[routeros] is not installed")

import librouteros
from librouteros.exceptions import MultiTrapError, TrapError
from librouteros.login import async_plain, token
from librouteros.query import And, Key, Or

PORTS = 60
LAB = fleet.laboratory(PORTS)
OLD = dataclasses.replace(fleet.laboratory(PORTS, index=1, version=6), software="6.42.7")
NOW = 1_800_000_000.0

NAME, TYPE, ADDRESS = Key("name"), Key("type"), Key("address")


@pytest.fixture(scope="module")
def ports() -> Iterator[Running]:
    with simulated([LAB, OLD], tls=TlsPorts(), clock=clock.frozen(NOW)) as running:
        yield running


def login(ports: Running, **more: Any) -> dict[str, Any]:
    default = {
        "host": LAB.address,
        "username": fleet.USERNAME,
        "password": fleet.PASSWORD,
        "port": ports.routeros,
    }
    return {**default, **more}


# librouteros


def names(*kinds: str) -> list[str]:
    return [
        port.name
        for port in hardware.chassis(LAB.model, LAB.variant).ports
        if port.kind.value in kinds
    ]


def test_librouteros_selects_with_conditions(ports: Running) -> None:
    """Equal, unlike, smaller, in, and, or: the query words of librouteros find the right rows."""
    api = librouteros.connect(**login(ports))
    interfaces = api.path("/interface")
    for condition, expected in (
        ([TYPE == "vlan"], names("vlan")),
        (
            [TYPE != "ether", TYPE != "vlan"],
            [n for n in names(*hardware.Kind) if n not in names("ether", "vlan")],
        ),
        ([TYPE.In("lte", "w60g", "wg")], names("lte", "w60g", "wg")),
        ([Or(TYPE == "lte", NAME == "ether7")], ["ether7", "lte1"]),
        ([And(TYPE == "ether", NAME == "ether7")], ["ether7"]),
        ([Key("mtu") < 1450], names("wg")),
    ):
        assert sorted(row["name"] for row in interfaces.select(NAME).where(*condition)) == sorted(
            expected
        )
    assert len(tuple(interfaces)) == PORTS
    api.close()


def test_librouteros_async_reads_and_monitors(ports: Running) -> None:
    """The asynchronous client reads several results and a monitor of several items."""
    up = [port for port in hardware.chassis(LAB.model, LAB.variant).ports if port.up]
    linked = [up[0].name, next(port.name for port in up if port.optical)]

    async def run() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        api = await librouteros.async_connect(**login(ports, login_method=async_plain))
        rows = [row async for row in api.path("/interface").select(NAME).where(TYPE == "wlan")]
        ethernet = api.path("/interface/ethernet")
        seen = [row async for row in ethernet("monitor", numbers=",".join(linked), once=True)]
        await api.close()
        return rows, seen

    rows, seen = asyncio.run(run())
    assert [row["name"] for row in rows] == names("wlan")
    assert [row["name"] for row in seen] == linked
    assert "sfp-vendor-name" in seen[1]


def test_librouteros_sees_traps_of_every_kind(ports: Running) -> None:
    """Traps have a category or none, or come in pairs; the session goes on after each."""
    limited = librouteros.connect(**login(ports, username=router_users.LIMITED))
    with pytest.raises(TrapError) as one:
        list(limited("/interface/ethernet/monitor", numbers="99", once=True))
    assert one.value.message == menu_commands.DENIED
    api = librouteros.connect(**login(ports))
    with pytest.raises(TrapError) as none:
        list(api("/interface/ethernet/monitor", numbers="999", once=True))
    assert (none.value.message, none.value.category) == ("no such item", 0)
    with pytest.raises(MultiTrapError) as two:
        list(api("/no/such/menu/print"))
    assert [trap.message for trap in two.value.traps] == [
        "no such command or directory (no)",
        "no such command prefix",
    ]
    for session in (limited, api):
        assert list(session("/system/identity/print")) == [{"name": LAB.name}]
        session.close()


def test_librouteros_adds_updates_and_removes(ports: Running) -> None:
    """A row that a client added is found by its id until it is removed."""
    api = librouteros.connect(**login(ports, username=router_users.ADMIN))
    addresses = api.path("ip", "address")
    number = addresses.add(interface="ether1", address="172.16.1.1/24", comment="x" * 300)
    addresses.update(**{".id": number, "address": "172.16.2.1/24"})
    assert list(addresses.select(ADDRESS).where(Key(".id") == number)) == [
        {"address": "172.16.2.1/24"}
    ]
    addresses.remove(number)
    assert list(addresses.select(ADDRESS).where(Key(".id") == number)) == []
    api.close()


def test_librouteros_answers_the_challenge_of_an_old_router(ports: Running) -> None:
    """Before 6.43 a login is two sentences; a wrong one is refused with the text of that
    version.
    """
    api = librouteros.connect(**login(ports, host=OLD.address, login_method=token))
    assert next(iter(api("/system/resource/print")))["version"] == "6.42.7 (stable)"
    api.close()
    with pytest.raises(TrapError, match="cannot log in"):
        librouteros.connect(**login(ports, host=OLD.address, login_method=token, password="guess"))


def wrapped(context: ssl.SSLContext, host: str = LAB.address) -> Any:
    return lambda sock: context.wrap_socket(sock, server_hostname=host)


def test_librouteros_uses_tls(ports: Running) -> None:
    """TLS works with the authority's certificate and without any, but not with an unknown
    signer.
    """
    known = ssl.create_default_context(cafile=ports.ca_file)
    api = librouteros.connect(**login(ports, port=ports.routeros_tls, ssl_wrapper=wrapped(known)))
    assert list(api("/system/identity/print")) == [{"name": LAB.name}]
    assert len(tuple(api.path("/interface"))) == PORTS
    api.close()
    with pytest.raises(ssl.SSLCertVerificationError):
        librouteros.connect(
            **login(
                ports, port=ports.routeros_tls, ssl_wrapper=wrapped(ssl.create_default_context())
            )
        )
    nobody = ssl.create_default_context()
    nobody.check_hostname = False
    nobody.set_ciphers("ADH:@SECLEVEL=0")
    api = librouteros.connect(
        **login(ports, port=ports.routeros_anonymous, ssl_wrapper=wrapped(nobody))
    )
    assert list(api("/system/identity/print")) == [{"name": LAB.name}]
    api.close()


# RouterOS-api


@pytest.fixture(scope="module")
def routeros_api() -> ModuleType:
    return other_programs.routeros_api()


@pytest.fixture
def api(ports: Running, routeros_api: ModuleType) -> Iterator[Any]:
    pool = routeros_api.RouterOsApiPool(
        **login(ports, username=router_users.ADMIN), plaintext_login=True
    )
    yield pool.get_api()
    pool.disconnect()


def test_routeros_api_reads_with_queries(api: Any, routeros_api: ModuleType) -> None:
    """RouterOS-api reads queries, properties, counts and empty results."""
    interfaces = api.get_resource("/interface")
    assert [row["name"] for row in interfaces.get(type="wlan")] == names("wlan")
    equal = routeros_api.query.IsEqualQuery
    either = routeros_api.query.OrQuery(equal("type", "lte"), equal("type", "wlan"))
    rows = interfaces.call("print", {"proplist": "name"}, additional_queries=[either])
    assert sorted(row["name"] for row in rows) == sorted(names("lte", "wlan"))
    assert interfaces.call("print", {"count-only": ""}).done_message["ret"] == str(PORTS)
    assert interfaces.get(name="nosuch") == []  # !empty, since 7.18


def test_routeros_api_has_several_commands_in_flight(api: Any) -> None:
    """Three commands are sent before the first reply is read, and each gets its own reply."""
    asked = {
        path: api.get_resource(path).call_async("print")
        for path in ("/interface", "/system/identity", "/ip/dhcp-server/lease")
    }
    assert len(asked["/ip/dhcp-server/lease"].get()) == 40
    assert asked["/system/identity"].get() == [{"name": LAB.name}]
    assert len(asked["/interface"].get()) == PORTS


def test_routeros_api_listens_and_cancels(
    ports: Running, api: Any, routeros_api: ModuleType
) -> None:
    """A listener receives the rows that another session adds; /cancel interrupts it."""
    news = iter(api.get_resource("/ip/address").call_async("listen"))
    wait_until(lambda: "/ip/address/listen" in ports.visits(LAB.address).commands, "the command")
    other = librouteros.connect(**login(ports, username=router_users.ADMIN))
    number = other.path("ip", "address").add(interface="ether1", address="172.16.9.1/24")
    heard = next(news)
    assert (heard["id"], heard["address"]) == (number, "172.16.9.1/24")
    other.path("ip", "address").remove(number)
    assert next(news) == {"id": number, ".dead": "yes"}
    other.close()
    api.get_binary_resource("/").call("cancel")
    with pytest.raises(routeros_api.exceptions.RouterOsApiCommunicationError, match="interrupted"):
        next(news)


def test_routeros_api_gets_a_trap_for_an_error(api: Any, routeros_api: ModuleType) -> None:
    """A trap ends a command, not the connection."""
    trap = routeros_api.exceptions.RouterOsApiCommunicationError
    with pytest.raises(trap, match="no such command"):
        api.get_resource("/no/such").get()
    addresses = api.get_resource("/ip/address")
    with pytest.raises(trap, match="input does not match any value of interface"):
        addresses.add(address="10.1.1.1/24", interface="nosuch")
    assert api.get_resource("/system/identity").get() == [{"name": LAB.name}]


def test_routeros_api_logs_in_with_a_challenge(ports: Running, routeros_api: ModuleType) -> None:
    """An old router accepts only the login with a challenge."""
    opened = routeros_api.RouterOsApiPool(**login(ports, host=OLD.address), plaintext_login=False)
    assert opened.get_api().get_resource("/system/identity").get() == [{"name": OLD.name}]
    opened.disconnect()


# mktxp


def test_mktxp_collects_everything_without_a_complaint(ports: Running, tmp_path: Path) -> None:
    """With all collectors on, every menu exists and the log of mktxp is clean; test_mktxp compares
    the numbers.
    """
    if not mktxp.installed():
        missing("mktxp is not installed: make clients")
    before = ports.visits(LAB.address)
    with mktxp.running(tmp_path, LAB.address, ports.routeros, ["blocked", "allowed"]):
        seen = ports.visits(LAB.address)  # it has collected once when it listens
    log = (tmp_path / "mktxp.log").read_text()
    assert "has been established" in log
    bad = ("error", "warning", "traceback", "exception", "failed", "could not")
    assert [line for line in log.splitlines() if any(word in line.lower() for word in bad)] == []
    assert seen.commands.get("unknown") == before.commands.get("unknown")
    asked = {
        command
        for command, count in seen.commands.items()
        if count > before.commands.get(command, 0)
    }
    assert len(asked) > 55
    assert {command.rpartition("/")[2] for command in asked} == {"login", "print", "monitor"}
