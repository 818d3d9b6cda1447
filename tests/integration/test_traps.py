"""Traps of net-snmp's snmptrap: known devices are polled at once, other traps are only counted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import structlog

from poller import bootstrap, errors
from poller.beat.reconcile import reconcile
from poller.bootstrap import Services
from poller.cli import main
from poller.collectors.credentials import Community, Credential, SnmpV3
from poller.db import migrate
from poller.db.inventory import credential_rows, devices, inventory_feed
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.event_kinds import Kind
from poller.state.cluster import event_stream as stream
from poller.state.cluster import overview_reader
from poller.traps import listener, trap_socket
from poller.traps.listener import Listener
from tests.acceptance.valkey import Valkey
from tests.conftest import missing, wait_until

COLD, DOWN, UP = (f"1.3.6.1.6.3.1.1.5.{number}" for number in (1, 3, 4))
COMMUNITY, AUTH, PRIV = "mysecretword", "authpass123", "privpass123"
USERS = [
    ("127.0.0.11", "MD5", "DES"),
    ("127.0.0.12", "SHA", "AES"),
    ("127.0.0.13", "SHA256", "AES256"),
    ("127.0.0.14", "SHA512", "AES192C"),
    ("127.0.0.15", "SHA", None),
]
OTHER = "127.0.0.99"


class Running:
    """A listener in its own thread, as the command runs it."""

    def __init__(self, services: Services) -> None:
        self.sock = trap_socket.bind("127.0.0.1", 0)
        self.port = int(self.sock.getsockname()[1])
        self.listener = Listener(services, self.sock)
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        wait_until(lambda: self.listener.senders.by_address, "the inventory")

    def _run(self) -> None:
        self._task = self._loop.create_task(self.listener.run())
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)
        self._loop.run_until_complete(self.listener.finish())
        self._loop.close()

    def stop(self) -> None:
        if self._task is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)
        self.sock.close()

    @property
    def count(self) -> Counter[str]:
        return self.listener.counters

    def until(self, **wanted: int) -> None:
        wait_until(
            lambda: all(self.count[name] >= number for name, number in wanted.items()), f"{wanted}"
        )


@pytest.fixture
def services(
    home: Path, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Services]:
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    monkeypatch.setenv("POLLER_TRAP_GAP_S", "1")
    monkeypatch.setattr(listener, "INVENTORY_S", 0.2)
    with prepared() as made:
        yield made


@contextlib.contextmanager
def prepared() -> Iterator[Services]:
    """Six devices, placed on the board."""
    if shutil.which("snmptrap") is None:
        missing("snmptrap is not installed")
    made = bootstrap.services()
    migrate.upgrade(made.engine)
    add(
        made,
        "plain",
        "127.0.0.1",
        Community.from_text(COMMUNITY),
        TargetDraft(name="fast", collector="snmp"),
    )
    for address, auth, priv in USERS:
        fields = {"username": "mon", "auth_protocol": auth, "auth_password": AUTH}
        fields |= {"priv_protocol": priv, "priv_password": PRIV} if priv else {}
        add(made, f"v3-{address}", address, SnmpV3.from_fields(fields))
    place(made)
    yield made
    made.engine.dispose()


def add(
    services: Services, name: str, address: str, credential: Credential, *more: TargetDraft
) -> None:
    sealed = services.keyring.seal(credential.to_json(), f"of {name}", credential.kind)
    credential_rows.add(services.engine, f"of {name}", credential.kind, sealed)
    draft = DeviceDraft(name, address=address, credential=f"of {name}")
    devices.add(services.engine, draft, [TargetDraft(collector="snmp"), *more])


def place(services: Services) -> None:
    reconcile(services.board, services.engine, "", services.board.now_ms())


@pytest.fixture
def running(services: Services) -> Iterator[Running]:
    it = Running(services)
    yield it
    it.stop()


def trap(port: int, source: str, *words: str, what: str = DOWN, tool: str = "snmptrap") -> None:
    variables = ["1.3.6.1.2.1.2.2.1.1.3", "i", "3"]
    command = [
        tool,
        "-Ln",
        f"--clientAddr={source}",
        *words,
        f"127.0.0.1:{port}",
        "",
        what,
        *variables,
    ]
    environment = {
        **os.environ,
        "MIBS": "",
        "SNMPCONFPATH": "/nonexistent",
        "SNMP_PERSISTENT_DIR": "/nonexistent",
    }
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=20)
    assert done.returncode == 0, done.stderr


def v2c(community: str = COMMUNITY) -> list[str]:
    return ["-v", "2c", "-c", community]


def v3(auth: str, priv: str | None, *, user: str = "mon", password: str = AUTH) -> list[str]:
    """Arguments for a v3 trap of an unknown engine."""
    dashed = re.sub(r"SHA(\d)", r"SHA-\1", auth)
    words = ["-v", "3", "-e", "0x80001f88aa", "-u", user, "-a", dashed, "-A", password]
    return [*words, *(["-l", "authPriv", "-x", priv, "-X", PRIV] if priv else ["-l", "authNoPriv"])]


def urgent(services: Services) -> set[str]:
    return {str(key) for key in services.redis.zrange(services.keys.urgent("poll.snmp"), 0, -1)}


def trap_events(services: Services) -> list[str]:
    entries = stream.newest(services.redis, services.keys, 100)
    return [e.event.message for e in entries if e.event and e.event.kind is Kind.TRAP_RECEIVED]


def test_a_trap_of_a_known_device_causes_a_poll_at_once(
    running: Running, services: Services
) -> None:
    """All targets of the device become urgent; an event gives the cause, and the totals count the
    trap.
    """
    trap(running.port, "127.0.0.1", *v2c())
    running.until(polls=1)
    assert len(urgent(services)) == 2
    assert trap_events(services) == [
        "plain sent linkDown (interface 3); polling 2 of its 2 targets now"
    ]
    running.stop()
    totals = overview_reader.read(services.redis, services.keys).totals
    assert (totals["traps_received"], totals["traps_accepted"], totals["traps_polls"]) == (1, 1, 1)


def test_v1_traps_and_informs_are_accepted(running: Running) -> None:
    """snmpinform waits for the acknowledgement."""
    where = f"127.0.0.1:{running.port}"
    old = [
        "snmptrap",
        "-v",
        "1",
        "-c",
        COMMUNITY,
        where,
        "1.3.6.1.4.1.9999",
        "127.0.0.1",
        "2",
        "0",
        "",
    ]
    subprocess.run(old, check=True, capture_output=True, env={**os.environ, "MIBS": ""}, timeout=20)
    trap(running.port, "127.0.0.1", *v2c(), what=COLD, tool="snmpinform")
    running.until(accepted=2)


@pytest.mark.parametrize(("source", "auth", "priv"), USERS)
def test_a_v3_trap_is_opened_with_the_devices_own_credential(
    running: Running, services: Services, source: str, auth: str, priv: str | None
) -> None:
    """Every protocol of net-snmp, from an engine that was unknown before."""
    trap(running.port, source, *v3(auth, priv), what=UP)
    running.until(polls=1)
    assert trap_events(services) == [
        f"v3-{source} sent linkUp (interface 3); polling 1 of its 1 targets now"
    ]


def test_other_traps_are_only_counted(running: Running, services: Services) -> None:
    """Unknown senders, wrong credentials and missing signatures cause no poll."""
    with structlog.testing.capture_logs() as lines:
        trap(running.port, OTHER, *v2c())
        trap(running.port, "127.0.0.1", *v2c("wrong"))
        trap(running.port, "127.0.0.12", *v2c())
        trap(running.port, "127.0.0.1", *v3("SHA", "AES"))
        trap(running.port, "127.0.0.12", *v3("SHA", "AES", password="wrong-password"))
        trap(running.port, "127.0.0.12", *v3("SHA", "AES", user="root"))
        trap(
            running.port,
            "127.0.0.12",
            "-v",
            "3",
            "-e",
            "0x80001f88aa",
            "-u",
            "mon",
            "-l",
            "noAuthNoPriv",
        )
        trap(running.port, "127.0.0.1", *v2c(), what="1.3.6.1.4.1.9999.0.1")
        running.until(unknown_sender=1, bad_credential=6, ignored=1)
    assert running.count["accepted"] == running.count["polls"] == running.listener.waiting == 0
    assert urgent(services) == set()
    assert not any(
        secret in str(line) for line in lines for secret in (COMMUNITY, AUTH, PRIV, "wrong")
    )


def test_a_trap_storm_costs_two_polls(running: Running, services: Services) -> None:
    """One poll at once and one after the gap; the second event counts the traps between them."""
    trap(running.port, "127.0.0.1", *v2c())
    running.until(polls=1)
    for _ in range(4):
        trap(running.port, "127.0.0.1", *v2c(), what=UP)
    running.until(polls=2)
    assert running.listener.waiting == 0
    assert running.count["polls"] == 2
    assert running.count["accepted"] == 5
    assert running.count["coalesced"] == 3
    assert trap_events(services)[0].startswith("plain sent 4 x linkUp (interface 3)")


def test_a_flood_does_not_delay_a_valid_trap(running: Running) -> None:
    """Fifty thousand invalid datagrams, half of them from a known address."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as known,
    ):
        stranger.bind((OTHER, 0))
        known.bind(("127.0.0.12", 0))
        for number in range(25_000):
            stranger.sendto(b"\x30\x82" + b"x" * 200, ("127.0.0.1", running.port))
            known.sendto(b"\x30\x82" + b"x" * 200, ("127.0.0.1", running.port))
            if number % 500 == 0:
                time.sleep(0.001)
    began = time.monotonic()
    trap(running.port, "127.0.0.1", *v2c())
    running.until(polls=1)
    assert time.monotonic() - began < 5.0
    assert running.count["unknown_sender"] > 1000
    assert running.count["dropped"] > 1000
    assert running.count["malformed"] >= 1


def test_the_listener_follows_the_inventory(running: Running, services: Services) -> None:
    """Devices are added and removed without a restart."""
    add(services, "new", OTHER, Community.from_text(COMMUNITY))
    wait_until(lambda: OTHER in running.listener.senders.by_address, "the new device")
    trap(running.port, OTHER, *v2c())
    running.until(accepted=1)
    devices.remove(services.engine, ["new"])
    wait_until(lambda: OTHER not in running.listener.senders.by_address, "its removal")
    trap(running.port, OTHER, *v2c())
    running.until(unknown_sender=1)


def test_a_redis_outage_costs_no_poll(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outage is logged once; the poll is demanded at its end."""
    server = Valkey(tmp_path / "valkey")
    server.start()
    monkeypatch.setenv("POLLER_REDIS_URL", server.url)
    with contextlib.ExitStack() as stack:
        stack.callback(server.kill)
        services = stack.enter_context(prepared())
        running = Running(services)
        stack.callback(running.stop)
        with structlog.testing.capture_logs() as lines:
            server.kill()
            trap(running.port, "127.0.0.1", *v2c())
            running.until(accepted=1)
            wait_until(
                lambda: "trap_store_away" in [line["event"] for line in lines],
                "the log line of the outage",
            )
            server.start()
            running.until(polls=1)
            wait_until(
                lambda: "trap_store_back" in [line["event"] for line in lines],
                "the log line of its end",
            )
        assert [line["event"] for line in lines].count("trap_store_away") == 1
        assert len(urgent(services)) == 2


def test_a_database_outage_leaves_only_unread_credentials_undecided(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known senders and cached credentials still count; other traps are undecided."""
    trap(running.port, "127.0.0.1", *v2c())
    running.until(polls=1)

    def away(*_: object) -> int:
        raise errors.StoreUnavailable("no database")

    with structlog.testing.capture_logs() as lines:
        monkeypatch.setattr(inventory_feed, "version", away)
        monkeypatch.setattr(inventory_feed, "credentials", away)
        wait_until(
            lambda: "trap_store_away" in [line["event"] for line in lines],
            "the log line of the outage",
        )
        trap(running.port, "127.0.0.1", *v2c())
        trap(running.port, "127.0.0.12", *v3("SHA", "AES"))
        running.until(accepted=2, undecided=1)
        monkeypatch.undo()
        wait_until(
            lambda: "trap_store_back" in [line["event"] for line in lines],
            "the log line of its end",
        )
        trap(running.port, "127.0.0.12", *v3("SHA", "AES"))
        running.until(accepted=3)
    assert [line["event"] for line in lines].count("trap_store_away") == 1


def test_the_command_listens_until_it_is_stopped(services: Services, free_port: int) -> None:
    """The process writes its last counts before it exits."""
    environment = {**os.environ, "POLLER_TRAP_PORT": str(free_port), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "poller", "traps"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert f"address=127.0.0.1:{free_port}" in process.stderr.readline()
    trap(free_port, "127.0.0.1", *v2c())
    wait_until(lambda: urgent(services), "the poll", process)  # type: ignore[arg-type]
    process.terminate()
    said = process.communicate(timeout=20)[1]
    assert process.returncode == 0, said
    assert "traps_stopped" in said
    assert COMMUNITY not in said
    assert overview_reader.read(services.redis, services.keys).totals["traps_accepted"] == 1


def test_a_wrong_address_or_port_is_explained(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A port in use, and an address of another host."""
    assert main.run(["db", "upgrade"]) == 0
    bootstrap.services.cache_clear()
    with trap_socket.bind("127.0.0.1", 0) as taken:
        monkeypatch.setenv("POLLER_TRAP_PORT", str(taken.getsockname()[1]))
        assert main.run(["traps"]) == 2
    assert "is in use" in capsys.readouterr().err
    monkeypatch.setenv("POLLER_TRAP_BIND", "192.0.2.1")
    bootstrap.services.cache_clear()
    assert main.run(["traps"]) == 2
    assert "trap_bind: cannot listen on 192.0.2.1" in capsys.readouterr().err
