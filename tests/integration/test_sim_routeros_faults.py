"""Faults that a test injects into a simulated router: stall, reset, garbage, lost clients, a
stopped clock.
"""

from __future__ import annotations

import dataclasses
import socket
import time
from collections.abc import Iterator

import pytest

from poller import errors
from poller.sim import fleet
from poller.sim.routeros import sentence_framing
from poller.sim.routeros.injected_faults import Mishap
from poller.sim.sim_process import Running, simulated
from tests.conftest import wait_until

ROUTER, IDLER, OTHER = fleet.devices(3, snmp_share=0, faulty_share=0)
IDLER = dataclasses.replace(IDLER, idle_seconds=0.4)
LAB = fleet.laboratory(300, index=3)
LOGIN = ("/login", f"=name={fleet.USERNAME}", f"=password={fleet.PASSWORD}")
ASK = "/system/identity/print"


@pytest.fixture(scope="module")
def ports() -> Iterator[Running]:
    with simulated([ROUTER, IDLER, OTHER, LAB]) as running:
        yield running


@pytest.fixture
def session(ports: Running) -> Iterator[socket.socket]:
    with logged_in(ports) as opened:
        yield opened
    ports.behave(ROUTER.address)


def logged_in(ports: Running, device: fleet.SimDevice = ROUTER) -> socket.socket:
    opened = socket.create_connection((device.address, ports.routeros), timeout=5)
    say(opened, *LOGIN)
    assert hear(opened) == [[b"!done"]]
    return opened


def say(opened: socket.socket, *words: str) -> None:
    opened.sendall(sentence_framing.encode(word.encode() for word in words))


def hear(opened: socket.socket) -> list[list[bytes]]:
    """Read a reply up to its end."""
    decoder, found = sentence_framing.Decoder(), []
    while not found or found[-1][0] != b"!done":
        data = opened.recv(65536)
        assert data, "the router hung up"
        found += decoder.feed(data)
    return found


def whole(ports: Running) -> bytes:
    """Return the undisturbed reply to a command."""
    with logged_in(ports) as opened:
        say(opened, ASK)
        return opened.recv(65536)


def silent(opened: socket.socket) -> bool:
    opened.settimeout(0.3)
    try:
        return not opened.recv(1)
    except TimeoutError:
        return True
    finally:
        opened.settimeout(5)


def exactly(opened: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        got += opened.recv(count - len(got)) or pytest.fail("the router hung up")
    return got


def test_an_answer_stops_in_the_middle_of_a_sentence(
    ports: Running, session: socket.socket
) -> None:
    """The start of a reply comes, then nothing more for any command; another session is served."""
    ports.misbehave(ROUTER.address, Mishap.STALL, after=7)
    say(session, ASK)
    assert exactly(session, 7) == whole(ports)[:7]
    say(session, ASK)
    assert silent(session)


def test_the_rest_of_an_answer_comes_late(ports: Running, session: socket.socket) -> None:
    """The reply is complete after the pause, and later commands are answered after it."""
    ports.misbehave(ROUTER.address, Mishap.STALL, after=7, seconds=0.4)
    before = time.monotonic()
    say(session, ASK)
    say(session, "/system/clock/print", ".tag=2")
    assert exactly(session, 7) == whole(ports)[:7]
    assert time.monotonic() - before < 0.4
    assert exactly(session, len(whole(ports)) - 7) == whole(ports)[7:]
    assert time.monotonic() - before >= 0.4
    assert hear(session)[-1] == [b"!done", b".tag=2"]


@pytest.mark.parametrize(
    ("mishap", "ends"), [(Mishap.RESET, ConnectionResetError), (Mishap.CLOSE, None)]
)
def test_a_connection_ends_in_the_middle_of_an_answer(
    ports: Running, session: socket.socket, mishap: Mishap, ends: type[OSError] | None
) -> None:
    """The part of a reply before the end can be read."""
    ports.misbehave(ROUTER.address, mishap, after=9, command=ASK)
    say(session, "/system/clock/print")
    hear(session)
    say(session, ASK)
    assert exactly(session, 9) == whole(ports)[:9]
    if ends is None:
        assert session.recv(1) == b""
    else:
        with pytest.raises(ends):
            session.recv(1)


def test_garbage_follows_the_beginning(ports: Running, session: socket.socket) -> None:
    """A reply leaves the protocol in its middle."""
    ports.misbehave(ROUTER.address, Mishap.GARBAGE, after=5)
    say(session, ASK)
    assert exactly(session, 6)[:5] == whole(ports)[:5]


def test_a_fatal_word_ends_the_session(ports: Running, session: socket.socket) -> None:
    """A fatal sentence has its reason, and the connection is closed after it."""
    ports.misbehave(ROUTER.address, Mishap.FATAL, text="out of memory")
    say(session, ASK)
    decoder = sentence_framing.Decoder()
    assert decoder.feed(session.recv(100)) == [[b"!fatal", b"out of memory"]]
    assert session.recv(1) == b""


def test_a_refusal_can_be_injected_for_some_replies(ports: Running, session: socket.socket) -> None:
    """The named command is refused the given number of times, and then works again."""
    ports.misbehave(ROUTER.address, Mishap.TRAP, command=ASK, text="busy", times=2)
    for expected in ([b"!trap", b"=message=busy", b".tag=7"],) * 2:
        say(session, ASK, ".tag=7")
        assert hear(session)[0] == expected
    say(session, ASK)
    assert hear(session)[0][0] == b"!re"


def test_injected_faults_can_be_removed(ports: Running, session: socket.socket) -> None:
    """No removed fault happens any more, not even a permanent one."""
    ports.misbehave(ROUTER.address, Mishap.TRAP, times=0)
    for _ in range(3):
        say(session, ASK)
        assert hear(session)[0][0] == b"!trap"
    ports.behave(ROUTER.address)
    say(session, ASK)
    assert hear(session)[0][0] == b"!re"


def test_an_idle_session_is_ended(ports: Running) -> None:
    """A router with an idle limit closes the connection; a command restarts the time."""
    with logged_in(ports, IDLER) as opened:
        for _ in range(3):
            time.sleep(0.2)
            say(opened, ASK)
            hear(opened)
        before = time.monotonic()
        assert opened.recv(1) == b""
        assert time.monotonic() - before > 0.3


def test_a_kicked_client_and_a_reboot(ports: Running, session: socket.socket) -> None:
    """A kicked client gets a regular end, a reboot a reset; the uptime is then short."""
    ports.kick(ROUTER.address)
    assert session.recv(1) == b""
    with logged_in(ports) as opened:
        ports.reboot(ROUTER.address)
        with pytest.raises(ConnectionResetError):
            opened.recv(1)
    with logged_in(ports) as opened:
        say(opened, "/system/resource/print", "=.proplist=uptime")
        uptime = hear(opened)[0][1].removeprefix(b"=uptime=")
        assert uptime in {b"%ds" % n for n in range(20)}


def test_a_router_counts_logins_commands_and_connections(ports: Running) -> None:
    """The test reads logins, commands by name, sentences and connections, which the API does not
    show.
    """
    with logged_in(ports, OTHER) as opened:
        say(opened, ASK)
        hear(opened)
        seen = ports.visits(OTHER.address)
    assert (seen.logins, seen.commands, seen.said, seen.connections) == (
        1,
        {"/login": 1, ASK: 1},
        3,
        1,
    )
    wait_until(lambda: ports.visits(OTHER.address).connections == 0, "the end of the connection")


def test_a_stopped_clock_gives_the_same_answer_twice(ports: Running) -> None:
    """All values depend on the time; when the clock goes on, counters grow."""
    with logged_in(ports, LAB) as opened:

        def interfaces() -> list[list[bytes]]:
            say(opened, "/interface/print")
            return hear(opened)

        ports.set_clock(1_800_000_000.0, rate=0)
        first = interfaces()
        assert len(first) == 301
        assert interfaces() == first
        ports.set_clock(1_800_000_060.0, rate=0)
        assert interfaces() != first
        ports.set_clock()


def test_an_unknown_router_is_refused(ports: Running) -> None:
    """A fault for an unknown router is an error and changes nothing."""
    for order in (
        ports.kick,
        ports.reboot,
        ports.visits,
        lambda a: ports.misbehave(a, Mishap.STALL),
    ):
        with pytest.raises(errors.InvalidInput, match=r"127\.9\.9\.9") as refused:
            order("127.9.9.9")
        assert refused.value.hint


def test_a_slow_reader_gets_everything(ports: Running) -> None:
    """Megabytes that a client reads bit by bit arrive complete and in order."""
    count = 40
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        opened.settimeout(10)
        opened.connect((LAB.address, ports.routeros))
        say(opened, *LOGIN)
        for number in range(count):
            say(opened, "/interface/print", f".tag={number}")
        decoder = sentence_framing.Decoder()
        rows: dict[bytes, int] = {}
        ended: list[bytes] = []
        while len(ended) < count + 1:
            for sentence in decoder.feed(opened.recv(3000)):
                if sentence[0] == b"!re":
                    rows[sentence[-1]] = rows.get(sentence[-1], 0) + 1
                else:
                    ended.append(sentence[-1])
    assert set(rows.values()) == {300}
    assert len(rows) == count


def test_an_unread_reply_is_not_made(ports: Running) -> None:
    """A reply is made no faster than the client reads it."""
    count = 400
    before = ports.visits(LAB.address).said
    with socket.create_connection((LAB.address, ports.routeros), timeout=10) as opened:
        say(opened, *LOGIN)
        for number in range(count):
            say(opened, "/interface/print", f".tag={number}")
        seen = [-1, ports.visits(LAB.address).said - before]
        while seen[-1] != seen[-2]:
            time.sleep(0.2)
            seen.append(ports.visits(LAB.address).said - before)
    assert 0 < seen[-1] < count * 301 / 2
