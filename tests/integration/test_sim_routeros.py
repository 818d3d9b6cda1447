"""A real RouterOS API client (librouteros) accepts the simulated routers, and sees each fault."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from poller.sim import device_traffic, fleet, hardware
from poller.sim.fleet import Fault, SimDevice
from poller.sim.fleet_server import Ports
from poller.sim.routeros import sentence_framing
from poller.sim.routeros.router_session import REFUSED
from poller.sim.sim_process import simulated

if os.environ.get("CI") != "true":
    pytest.importorskip("librouteros", reason="the extra poller[routeros] is not installed")

import librouteros
from librouteros.exceptions import LibRouterosError, MultiTrapError, TrapError
from librouteros.login import plain, token

LOGIN = ("/login", f"=name={fleet.USERNAME}", f"=password={fleet.PASSWORD}")
# librouteros lets some nonsense through as IndexError.
Broken = (LibRouterosError, OSError, UnicodeError, ValueError, IndexError)


@pytest.fixture(scope="module")
def devices() -> list[SimDevice]:
    """Routers without fault, then two with each."""
    pool = fleet.devices(32, snmp_share=0, faulty_share=0, slow_seconds=0.3)
    faults = fleet.FAULTS * 2
    return [*pool[: -len(faults)], *map(_with, pool[-len(faults) :], faults)]


def _with(device: SimDevice, fault: Fault) -> SimDevice:
    return dataclasses.replace(device, fault=fault)


@pytest.fixture(scope="module")
def ports(devices: list[SimDevice]) -> Iterator[Ports]:
    with simulated(devices) as ports:
        yield ports


@pytest.fixture
def healthy(devices: list[SimDevice]) -> list[SimDevice]:
    return [device for device in devices if device.fault is Fault.NONE]


def with_fault(devices: list[SimDevice], fault: Fault) -> SimDevice:
    return next(device for device in devices if device.fault is fault)


def connect(
    device: SimDevice,
    ports: Ports,
    password: str = fleet.PASSWORD,
    timeout: float = 5,
    method: Callable[..., None] = plain,
) -> librouteros.Api:
    return librouteros.connect(
        host=device.address,
        port=ports.routeros,
        username=fleet.USERNAME,
        password=password,
        timeout=timeout,
        login_method=method,
    )


def version(device: SimDevice) -> tuple[int, ...]:
    return tuple(map(int, hardware.chassis(device.model, device.variant).software.split(".")))


def test_identity_resource_and_interfaces(healthy: list[SimDevice], ports: Ports) -> None:
    """Every router answers under its own address with its own name, version and ports."""
    for device in healthy:
        api = connect(device, ports)
        chassis = hardware.chassis(device.model, device.variant)
        assert [row["name"] for row in api("/system/identity/print")] == [device.name]
        resource = next(iter(api("/system/resource/print")))
        assert resource["version"] == f"{chassis.software} (stable)"
        assert resource["board-name"] == chassis.model.board
        assert [row["name"] for row in api("/interface/print")] == [
            port.name for port in chassis.ports
        ]
        api.close()


def test_interface_counters_grow(healthy: list[SimDevice], ports: Ports) -> None:
    """Two prints on one session show the octets of every running port growing."""
    api = connect(healthy[0], ports)
    first, second = (
        {
            row["name"]: row
            for row in api("/interface/print", **{"stats": "", ".proplist": "name,running,rx-byte"})
        }
        for _ in range(2)
    )
    running = [name for name, row in first.items() if row["running"] and row["rx-byte"]]
    assert running
    assert all(second[name]["rx-byte"] > first[name]["rx-byte"] for name in running)
    assert set(first[running[0]]) == {"name", "running", "rx-byte"}
    api.close()


def test_select_with_a_condition(healthy: list[SimDevice], ports: Ports) -> None:
    """librouteros' own query helpers work."""
    name, kind = librouteros.query.Key("name"), librouteros.query.Key("type")
    api = connect(healthy[0], ports)
    query = api.path("/interface").select(name, kind).where(name == "ether1", kind == "ether")
    assert list(query) == [{"name": "ether1", "type": "ether"}]
    api.close()


def test_empty_results_on_old_and_new_versions(healthy: list[SimDevice], ports: Ports) -> None:
    """A result without rows is empty, with !empty or without."""
    assert {version(device) >= (7, 18) for device in healthy} == {True, False}
    for device in healthy:
        api = connect(device, ports)
        assert list(api("/ip/kid-control/device/print")) == []
        assert list(api("/system/identity/print"))  # still in step
        api.close()


def test_challenge_login(healthy: list[SimDevice], ports: Ports) -> None:
    """The login of versions before 6.43 works as well, and refuses a wrong password."""
    api = connect(healthy[0], ports, method=token)
    assert list(api("/system/identity/print"))
    api.close()
    with pytest.raises(TrapError):
        connect(healthy[0], ports, password="guess", method=token)


def test_unknown_command_is_a_trap(healthy: list[SimDevice], ports: Ports) -> None:
    """A command that does not exist is a trap, and the session goes on."""
    api = connect(healthy[0], ports)
    with pytest.raises((TrapError, MultiTrapError), match="no such command"):
        list(api("/nonsense/print"))
    assert list(api("/system/identity/print"))
    api.close()


def test_wrong_password_is_refused(
    devices: list[SimDevice], healthy: list[SimDevice], ports: Ports
) -> None:
    """A wrong password, and the demo's on a device with another one, are refused with the router's
    text.
    """
    for device, password in (
        (healthy[0], "guess"),
        (with_fault(devices, Fault.WRONG_CREDENTIALS), fleet.PASSWORD),
    ):
        with pytest.raises(TrapError) as refused:
            connect(device, ports, password=password)
        assert refused.value.message == REFUSED


def test_router_that_is_down_never_answers(devices: list[SimDevice], ports: Ports) -> None:
    """A login to a router that is down times out."""
    with pytest.raises(TimeoutError):
        connect(with_fault(devices, Fault.DOWN), ports, timeout=0.4)


def test_slow_router_answers_late_and_in_order(devices: list[SimDevice], ports: Ports) -> None:
    """A slow router keeps the order of pipelined commands and delays each of them."""
    device = with_fault(devices, Fault.SLOW)
    before = time.monotonic()
    with raw(device, ports) as sock:
        sock.sendall(
            spoken(*LOGIN)
            + spoken("/interface/print", ".tag=1")
            + spoken("/interface/print", ".tag=2")
        )
        heard = hear(sock, lambda found: sum(s[0] == b"!done" for s in found) == 3)
    assert time.monotonic() - before >= 3 * 0.5 * device.slow_seconds
    assert [s[1:] for s in heard if s[0] == b"!done"] == [[], [b".tag=1"], [b".tag=2"]]


def test_lossy_router_loses_some_connections(devices: list[SimDevice], ports: Ports) -> None:
    """Of many sessions with a lossy router some work, some stall and some are reset."""
    device = with_fault(devices, Fault.LOSSY)
    ends = {"good": 0, "stalled": 0, "reset": 0}
    while not all(ends.values()):
        assert sum(ends.values()) < 200, ends
        try:
            api = connect(device, ports, timeout=0.15)
            list(api("/system/identity/print"))
            api.close()
        except TimeoutError:
            ends["stalled"] += 1
        except Broken:
            ends["reset"] += 1
        else:
            ends["good"] += 1


def test_garbage_router_cannot_be_used(devices: list[SimDevice], ports: Ports) -> None:
    """No login to a garbage router succeeds and yields rows."""
    device = with_fault(devices, Fault.GARBAGE)
    for _ in range(20):
        with pytest.raises(Broken):
            list(connect(device, ports, timeout=0.15)("/system/identity/print"))


def test_reboot_drops_the_session_and_the_uptime(healthy: list[SimDevice]) -> None:
    """A reboot resets open sessions, and the uptime is then a few seconds."""
    now = time.time()
    salt = next(
        s for s in range(100_000) if 4 < (device_traffic.life(s, True).until_reboot(now) or 0) < 5
    )
    device = dataclasses.replace(healthy[0], fault=Fault.REBOOT, salt=salt)
    with simulated([device]) as ports:
        with raw(device, ports) as sock:
            sock.sendall(spoken(*LOGIN))
            hear(sock, lambda found: bool(found))
            sock.settimeout(30)
            with pytest.raises(ConnectionResetError):
                sock.recv(1)
        uptime = next(iter(connect(device, ports)("/system/resource/print")))["uptime"]
        assert uptime in {f"{n}s" for n in range(11)}


def test_hostile_streams_do_not_stop_the_fleet(healthy: list[SimDevice], ports: Ports) -> None:
    """After hundreds of hostile connections every router still works."""
    dice = random.Random(13)
    evil = [b"\xf0\xff\xff\xff\xff", b"\xff" * 50, b"\0" * 5000, b"\x7f", b"GET / HTTP/1.1\r\n\r\n"]
    login = spoken(*LOGIN)
    for number in range(500):
        with raw(healthy[number % len(healthy)], ports) as sock:
            noise = dice.randbytes(dice.randrange(1, 400))
            sock.sendall((login if number % 3 else b"") + dice.choice([*evil, noise]))
    for device in healthy:
        assert list(connect(device, ports)("/system/identity/print")) == [{"name": device.name}]


def test_a_whole_fleet_accepts_connections_at_once(healthy: list[SimDevice]) -> None:
    """Hundreds of connections wait in the queue, also while the simulator is busy elsewhere."""
    with simulated(healthy) as ports, contextlib.ExitStack() as opened:
        os.kill(ports.pid, signal.SIGSTOP)
        try:
            socks = [
                opened.enter_context(raw(device, ports, timeout=0.5)) for device in healthy * 20
            ]
        finally:
            os.kill(ports.pid, signal.SIGCONT)
        for sock in socks:
            sock.settimeout(10)
            sock.sendall(spoken(*LOGIN))
        for sock in socks:
            assert hear(sock, lambda found: bool(found)) == [[b"!done"]]


def test_client_that_never_reads_is_dropped(healthy: list[SimDevice], ports: Ports) -> None:
    """A client that sends commands without reading is cut off before it fills the memory."""
    with raw(healthy[0], ports, timeout=30) as sock:
        sock.sendall(spoken(*LOGIN))
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_forever(sock, spoken("/interface/print") * 200)


def test_greedy_client_does_not_starve_the_others(healthy: list[SimDevice], ports: Ports) -> None:
    """While one client has thousands of commands waiting, another is served at once."""
    with raw(healthy[0], ports) as greedy:
        greedy.sendall(
            spoken(*LOGIN) + spoken("/system/resource/print", "=.proplist=version") * 20_000
        )
        api = connect(healthy[1], ports)
        before = time.monotonic()
        assert list(api("/system/identity/print")) == [{"name": healthy[1].name}]
        assert time.monotonic() - before < 0.25
        api.close()


def send_forever(sock: socket.socket, data: bytes) -> None:
    while True:
        sock.sendall(data)


def raw(device: SimDevice, ports: Ports, timeout: float = 5) -> socket.socket:
    return socket.create_connection((device.address, ports.routeros), timeout=timeout)


def spoken(*words: str) -> bytes:
    return sentence_framing.encode(word.encode() for word in words)


def hear(
    sock: socket.socket, enough: Callable[[list[sentence_framing.Sentence]], bool]
) -> list[sentence_framing.Sentence]:
    decoder = sentence_framing.Decoder()
    found: list[sentence_framing.Sentence] = []
    while not enough(found):
        data = sock.recv(65536)
        assert data, "the router hung up"
        found += decoder.feed(data)
    return found
