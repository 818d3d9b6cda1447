"""What a test can make a simulated router do: stall, reset, babble, forget its clients, and stop its clock."""

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
    """An answer, up to its end."""
    decoder, found = sentence_framing.Decoder(), []
    while not found or found[-1][0] != b"!done":
        data = opened.recv(65536)
        assert data, "the router hung up"
        found += decoder.feed(data)
    return found


def whole(ports: Running) -> bytes:
    """What the answer to the question is, undisturbed."""
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
    """The beginning comes, then nothing more, whatever is asked; another session is served."""
    ports.misbehave(ROUTER.address, Mishap.STALL, after=7)
    say(session, ASK)
    assert exactly(session, 7) == whole(ports)[:7]
    say(session, ASK)
    assert silent(session)


def test_the_rest_of_an_answer_comes_late(ports: Running, session: socket.socket) -> None:
    """After the pause it is complete, and what was asked meanwhile is answered after it."""
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
    """What came before the end can be read."""
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
    """The protocol is left in the middle of an answer."""
    ports.misbehave(ROUTER.address, Mishap.GARBAGE, after=5)
    say(session, ASK)
    assert exactly(session, 6)[:5] == whole(ports)[:5]


def test_a_fatal_word_ends_the_session(ports: Running, session: socket.socket) -> None:
    """It has its reason, and the connection is closed after it."""
    ports.misbehave(ROUTER.address, Mishap.FATAL, text="out of memory")
    say(session, ASK)
    decoder = sentence_framing.Decoder()
    assert decoder.feed(session.recv(100)) == [[b"!fatal", b"out of memory"]]
    assert session.recv(1) == b""


def test_a_refusal_can_be_ordered_for_some_answers(ports: Running, session: socket.socket) -> None:
    """As often as said, for the command named, then all is well again."""
    ports.misbehave(ROUTER.address, Mishap.TRAP, command=ASK, text="busy", times=2)
    for expected in ([b"!trap", b"=message=busy", b".tag=7"],) * 2:
        say(session, ASK, ".tag=7")
        assert hear(session)[0] == expected
    say(session, ASK)
    assert hear(session)[0][0] == b"!re"


def test_what_was_ordered_can_be_taken_back(ports: Running, session: socket.socket) -> None:
    """Nothing happens any more, also of what was to happen always."""
    ports.misbehave(ROUTER.address, Mishap.TRAP, times=0)
    for _ in range(3):
        say(session, ASK)
        assert hear(session)[0][0] == b"!trap"
    ports.behave(ROUTER.address)
    say(session, ASK)
    assert hear(session)[0][0] == b"!re"


def test_an_idle_session_is_ended(ports: Running) -> None:
    """A router with an idle limit hangs up politely; saying something starts the time anew."""
    with logged_in(ports, IDLER) as opened:
        for _ in range(3):
            time.sleep(0.2)
            say(opened, ASK)
            hear(opened)
        before = time.monotonic()
        assert opened.recv(1) == b""
        assert time.monotonic() - before > 0.3


def test_a_kicked_client_and_a_reboot(ports: Running, session: socket.socket) -> None:
    """One ends politely, the other with a reset, after which the router is young."""
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


def test_a_router_tells_what_it_has_seen(ports: Running) -> None:
    """Logins, commands by name, sentences said, connections: to the test, not over the API."""
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
    """Everything is a function of the time; when it goes on, so do the counters."""
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
    """Orders name their router, and a wrong name changes nothing."""
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
    """Answers wait for their reader: megabytes that are read bit by bit arrive complete and in order."""
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


def test_an_answer_that_nobody_reads_is_not_made(ports: Running) -> None:
    """What the system's buffers do not take is not even written down: the client's reading sets the pace."""
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
