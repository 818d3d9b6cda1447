"""Both engines end in time with the same result, whatever an agent or a forger sends."""

from __future__ import annotations

import asyncio
import functools
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from poller import errors
from poller.collectors.credentials import Credential, SnmpV3
from poller.collectors.snmp.engines.engine_protocol import ErrorStatus, Garbled
from poller.collectors.snmp.engines.link_pool import EngineOption, LinkPool
from poller.collectors.snmp.wire import v3_message, value_types
from poller.sim.snmp.usm_agent import SecuredRequest
from tests.integration.snmp_hostile import (
    COLUMN,
    COMMUNITY,
    CREDENTIALS,
    TABLE,
    Rows,
    Spoiler,
    altered,
    foreign_id,
    honest,
    renamed,
    respond,
    serving,
    unsigned,
    user,
)
from tests.integration.snmp_links import get, rows, talk, walk
from tests.integration.snmp_v3_agent import V3Agent, v3_agent
from tests.integration.test_collector_snmp_hostile import agent
from tests.unit.collectors import snmp_agent
from tests.unit.collectors.snmp_agent import GET_BULK, Request, element, integer, octets

ENGINES: list[EngineOption] = ["gufo", "exact"]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> EngineOption:
    found: EngineOption = request.param
    return found


@pytest.fixture(params=list(CREDENTIALS))
def credential(request: pytest.FixtureRequest) -> Credential:
    return CREDENTIALS[request.param]


@pytest.fixture(params=[True, False], ids=["exact", "plain"])
def exact(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_a_correct_table_is_read(engine: EngineOption, credential: Credential, exact: bool) -> None:
    with serving(credential, honest) as made:
        found = rows(engine, made.port, credential, COLUMN, exact=exact)
    assert found == [(name, row) for row, (name, _) in enumerate(TABLE, 1)]
    if exact:
        assert {type(value) for _, value in found} == {value_types.Counter32}


ODD: list[tuple[str, bytes, Any]] = [
    ("no address", element(0x40, b""), value_types.IpAddress("")),
    ("an unsigned number without its zero", element(0x41, b"\xff\xff\xff\xff"), 2**32 - 1),
    ("a float", element(0x44, b"\x9fx\x04" + struct.pack(">f", 1.5)), 1.5),
    ("a double", element(0x44, b"\x9fy\x08" + struct.pack(">d", 0.25)), 0.25),
    ("something opaque", element(0x44, b"\x04\x02hi"), b"\x04\x02hi"),
    ("the largest counter", integer(2**64 - 1, 0x46), 2**64 - 1),
    ("an object identifier", snmp_agent.oid("1.3.6.1.4.1"), "1.3.6.1.4.1"),
]


@pytest.mark.parametrize(
    ("encoded", "value"), [row[1:] for row in ODD], ids=[row[0] for row in ODD]
)
def test_odd_values_are_read(engine: EngineOption, exact: bool, encoded: bytes, value: Any) -> None:
    """Odd values between ordinary ones. Only exact reading decodes numbers in Opaque."""
    if isinstance(value, float) and not exact and engine == "gufo":
        value = encoded[2:]
    table = [(f"{COLUMN}.1", integer(1)), (f"{COLUMN}.2", encoded), (f"{COLUMN}.3", integer(3))]
    for name in ("2c", "authPriv"):
        with serving(CREDENTIALS[name], lambda request: honest(request, table)) as made:
            found = rows(
                engine, made.port, CREDENTIALS[name], COLUMN, exact=exact, timeout_s=0.2, retries=3
            )
        assert [row[1] for row in found] == [1, value, 3], name


@pytest.mark.parametrize("size", [100, 1000])
def test_long_responses_are_read(engine: EngineOption, size: int, exact: bool) -> None:
    """Up to the size of a datagram: fifty values of a thousand octets."""
    table = [(f"{COLUMN}.{row}", octets(b"x" * size)) for row in range(1, 61)]
    with serving(COMMUNITY, lambda request: honest(request, table)) as made:
        found = rows(engine, made.port, COMMUNITY, COLUMN, exact=exact, repetitions=50)
        asked = len(made.requests)
    assert [value for _, value in found] == [b"x" * size] * 60
    assert asked <= 4


def test_one_value_of_sixty_thousand_octets(engine: EngineOption, exact: bool) -> None:
    table = [(f"{COLUMN}.1", octets(b"x" * 60_000))]
    with serving(COMMUNITY, lambda request: honest(request, table)) as made:
        ((_, value),) = rows(engine, made.port, COMMUNITY, COLUMN, exact=exact)
        ((_, same),) = get(engine, made.port, COMMUNITY, (f"{COLUMN}.1",), exact=exact)
    assert value == same == b"x" * 60_000


def test_long_responses_of_version_3_are_read(engine: EngineOption, exact: bool) -> None:
    """gufo announces 4 kB as its maximum; this agent ignores it."""
    table = [(f"{COLUMN}.{row}", octets(b"x" * 200)) for row in range(1, 61)]
    with serving(CREDENTIALS["authPriv"], lambda request: honest(request, table)) as made:
        found = rows(
            engine, made.port, CREDENTIALS["authPriv"], COLUMN, exact=exact, repetitions=50
        )
    assert [len(value) for _, value in found] == [200] * 60  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [*range(3, 20), 255])
def test_every_error_status_is_reported(engine: EngineOption, status: int, exact: bool) -> None:
    """gufo hides the status, so our code reads it."""
    for name in ("2c", "authPriv"):
        with serving(
            CREDENTIALS[name], lambda request: ([(request.oids[0], b"\x05\0")], status)
        ) as made:
            walked = walk(engine, made.port, CREDENTIALS[name], COLUMN, exact=exact)
        refused = errors.DeviceAuthFailed if status in (6, 16) else errors.DeviceProtocolError
        assert isinstance(walked.error, refused), name
        assert walked.rows == []


def test_no_such_name_ends_a_walk(
    engine: EngineOption, credential: Credential, exact: bool
) -> None:
    def handler(request: Request) -> tuple[Rows, int]:
        found, _ = honest(request)
        return (found, 0) if found[0][1] != b"\x82\0" else ([(request.oids[0], b"\x05\0")], 2)

    with serving(credential, handler) as made:
        assert len(rows(engine, made.port, credential, COLUMN, exact=exact)) == 60


def test_too_big_shrinks_the_request(
    engine: EngineOption, credential: Credential, exact: bool
) -> None:
    def handler(request: Request) -> tuple[Rows, int]:
        return ((), 1) if request.repetitions > 7 else honest(request)

    with serving(credential, handler) as made:
        assert len(rows(engine, made.port, credential, COLUMN, exact=exact)) == 60


@pytest.mark.parametrize("tag", [0x80, 0x81])
def test_exceptions_within_a_table_are_no_rows(
    engine: EngineOption, credential: Credential, exact: bool, tag: int
) -> None:
    table = [*TABLE[:5], (f"{COLUMN}.6", bytes((tag, 0))), *TABLE[6:]]
    with serving(credential, lambda request: honest(request, table)) as made:
        found = rows(engine, made.port, credential, COLUMN, exact=exact)
    assert [value for _, value in found] == [*range(1, 6), *range(7, 61)]


LOOPS: dict[str, Callable[[Request], Rows]] = {
    "the same again": lambda request: TABLE[:2],
    "the one that was asked for": lambda request: [(request.oids[0], integer(1))],
    "backwards": lambda request: [
        (f"{COLUMN}.{10_000 - len(request.oids[0])}", integer(1)),
        *TABLE[3:4],
    ],
}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_is_stopped(
    engine: EngineOption, credential: Credential, exact: bool, loop: str
) -> None:
    def handler(request: Request) -> tuple[Rows, int]:
        return (LOOPS[loop](request), 0) if request.kind == GET_BULK else honest(request)

    with serving(credential, handler) as made:
        walked = walk(engine, made.port, credential, COLUMN, exact=exact)
        asked = len(made.requests)
    assert isinstance(walked.error, errors.DeviceProtocolError)
    assert "repeats itself" in str(walked.error)
    assert asked <= 4


def test_an_endless_table_ends_with_the_deadline(
    engine: EngineOption, credential: Credential
) -> None:
    def handler(request: Request) -> tuple[Rows, int]:
        last = int(request.oids[0].rpartition(".")[2])
        return [
            (f"{COLUMN}.{last + row}", integer(1)) for row in range(1, request.repetitions + 1)
        ], 0

    with serving(credential, handler) as made:
        started = time.monotonic()
        walked = walk(engine, made.port, credential, COLUMN, budget_s=0.5)
    assert time.monotonic() - started < 1.5
    assert isinstance(walked.error, errors.DeviceTimeout)


STRANGERS: dict[str, Spoiler] = {
    "silence": lambda answer, request: [],
    "another id": lambda answer, request: [renamed(request, request_id=b"\x01")],
    "another community": lambda answer, request: [renamed(request, community=b"other")],
    "a flood of other ids": lambda answer, request: [renamed(request, request_id=b"\x01")] * 500,
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_foreign_responses_are_a_timeout(engine: EngineOption, exact: bool, stranger: str) -> None:
    with agent(respond(STRANGERS[stranger])) as made:
        started = time.monotonic()
        walked = walk(engine, made.port, COMMUNITY, COLUMN, exact=exact, timeout_s=0.1)
    assert isinstance(walked.error, errors.DeviceTimeout)
    assert time.monotonic() - started < 2


def test_a_response_from_another_port_is_ignored(engine: EngineOption, exact: bool) -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
    ):
        listening.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))

        def serve() -> None:
            data, peer = listening.recvfrom(65535)
            found, status = honest(snmp_agent.parse(data))
            other.sendto(snmp_agent.parse(data).answer(found, status), peer)

        threading.Thread(target=serve, daemon=True).start()
        port = listening.getsockname()[1]
        walked = walk(engine, port, COMMUNITY, COLUMN, exact=exact, timeout_s=0.2, retries=0)
    assert isinstance(walked.error, errors.DeviceTimeout)


RUBBISH: dict[str, Callable[[bytes], bytes]] = {
    "text": lambda data: b"hello",
    "nothing": lambda data: b"",
    "one octet": lambda data: data[:1],
    "cut short": lambda data: data[:-5],
    "too much": lambda data: data + b"\0\0",
    "a huge length": lambda data: b"\x30\x84\xff\xff\xff\xff",
    "sixty thousand zeros": lambda data: b"\0" * 60_000,
    "the request, sent back": lambda data: data.replace(b"\xa2", b"\xa5", 1),
    "deep nesting": lambda data: b"\x24\x80" * 30_000,
}


@pytest.mark.parametrize("rubbish", RUBBISH)
def test_garbage_is_a_protocol_error(engine: EngineOption, exact: bool, rubbish: str) -> None:
    with agent(respond(lambda answer, request: [RUBBISH[rubbish](answer)])) as made:
        walked = walk(engine, made.port, COMMUNITY, COLUMN, exact=exact, timeout_s=0.2)
    assert isinstance(walked.error, errors.DeviceProtocolError | errors.DeviceTimeout)
    assert rubbish == "the request, sent back" or isinstance(walked.error, Garbled)
    assert "s3cret" not in str(walked.error)


@pytest.mark.parametrize("forge", [altered, unsigned, foreign_id])
@pytest.mark.parametrize("name", ["authNoPriv", "authPriv", "authPriv-des"])
def test_a_forged_response_is_ignored(
    engine: EngineOption, exact: bool, name: str, forge: Any
) -> None:
    with v3_agent(honest, forge) as made:
        walked = walk(engine, made.port, CREDENTIALS[name], COLUMN, exact=exact, timeout_s=0.15)
    assert isinstance(walked.error, errors.DeviceTimeout)
    assert len(made.requests) == 2  # one, and its retry


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        (user("shaaes", priv_password="wrong-password"), "wrong privacy password or protocol"),
        (user("md5des", "MD5", "DES", priv_password="wrong"), "wrong privacy password or protocol"),
        (user("shaonly", "SHA", None, auth_password="wrong"), "wrong user name, authentication"),
        (user("nobody", None, None), "wrong user name; or"),
    ],
)
def test_an_agent_that_is_silent_after_its_discovery_names_the_credential(
    engine: EngineOption, wrong: SnmpV3, cause: str
) -> None:
    """Agents may drop what they cannot authenticate or decrypt instead of a report."""
    with v3_agent(honest, silent=True) as made:
        error = walk(engine, made.port, wrong, COLUMN, timeout_s=0.15).error
    assert isinstance(error, errors.DeviceTimeout)
    assert "answered the SNMPv3 discovery and none of our requests (2 tries" in str(error)
    assert cause in str(error)
    assert "poller credential rotate" in error.hint


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        (user("stranger"), "no such user"),
        (user("shaaes", auth_password="wrong-password"), "authentication password"),
        (user("shaaes", "SHA256"), "authentication password"),
        (user("shaonly"), "security level"),
        (user("shaaes", None, None), "security level"),
    ],
)
def test_a_refused_user_gets_the_cause_at_once(
    engine: EngineOption, wrong: SnmpV3, cause: str
) -> None:
    """A report is an answer, so no retry follows."""
    with v3_agent(honest) as made:
        error = walk(engine, made.port, wrong, COLUMN).error
    assert isinstance(error, errors.DeviceAuthFailed)
    assert cause in str(error)
    assert made.datagrams == 2  # the introduction, and one try


async def walked_twice(
    engine: EngineOption, made: V3Agent, between: Callable[[], None], **how: Any
) -> tuple[int, int]:
    """Number of rows and datagrams of the second walk."""
    pool = LinkPool()
    act = CREDENTIALS["authPriv"], lambda walker, _: walker.walk(COLUMN)
    try:
        await talk(engine, made.port, *act, pool=pool, **how)
        before = made.datagrams
        between()
        second = await talk(engine, made.port, *act, pool=pool, **how)
        assert second.error is None, second.error
        return len(second.rows), made.datagrams - before
    finally:
        pool.close()


def test_a_warm_walk_begins_with_its_request(engine: EngineOption, exact: bool) -> None:
    with v3_agent(honest) as made:
        found, datagrams = asyncio.run(walked_twice(engine, made, lambda: None, exact=exact))
    assert (found, datagrams, made.authority.discoveries) == (60, 4, 1)


def test_an_agent_that_rebooted_is_followed_without_an_error(
    engine: EngineOption, exact: bool
) -> None:
    """One report corrects the clock; no discovery follows."""
    with v3_agent(honest) as made:
        reboot = functools.partial(made.authority.reboot, time.time())
        found, datagrams = asyncio.run(walked_twice(engine, made, reboot, exact=exact))
    assert (found, datagrams, made.authority.discoveries) == (60, 5, 1)
    assert made.authority.reports[v3_message.NOT_IN_TIME] == 1


def test_a_clock_that_always_jumps_is_an_error(engine: EngineOption) -> None:
    class Restless(V3Agent):
        def _answers(self, data: bytes) -> Sequence[bytes]:
            self.authority.reboot(time.time())
            return super()._answers(data)

    made = Restless(honest)
    try:
        walked = walk(engine, made.port, CREDENTIALS["authPriv"], COLUMN)
        assert isinstance(walked.error, errors.DeviceAuthFailed)
        assert "clock" in str(walked.error)
        assert made.datagrams < 10
    finally:
        made.stop()


def test_another_engine_at_the_same_address_is_reported(engine: EngineOption) -> None:
    """The collector then discovers the agent again."""
    with v3_agent(honest) as first:
        port = first.port

        async def run() -> str:
            pool = LinkPool()
            act = CREDENTIALS["authPriv"], lambda walker, _: walker.walk(COLUMN)
            await talk(engine, port, *act, pool=pool)
            first.authority._engine_id = b"\x80another"
            first.authority._keys.clear()
            second = await talk(engine, port, *act, pool=pool)
            pool.close()
            return str(second.error)

        assert "another SNMP engine" in asyncio.run(run())


def test_an_unknown_context_is_unsupported(engine: EngineOption) -> None:
    """An unknown context is no authentication failure."""

    def spoil(made: V3Agent, answer: bytes, asked: SecuredRequest) -> list[bytes]:
        row = snmp_agent.sequence(snmp_agent.oid("1.3.6.1.6.3.12.1.5.0"), integer(1, 0x41))
        pdu = element(
            0xA8,
            element(2, made.requests[-1].request_id) + integer(0) * 2 + snmp_agent.sequence(row),
        )
        return [made.authority.seal(pdu, asked, time.time())]

    choice: EngineOption = "auto" if engine == "gufo" else engine
    with v3_agent(honest, spoil) as made:
        error = walk(choice, made.port, CREDENTIALS["authPriv"], COLUMN, context="nowhere").error
    assert isinstance(error, errors.DeviceUnsupported)
    assert "no such SNMP context" in str(error)


def test_errors_have_a_status(engine: EngineOption) -> None:
    """The walker reads the status from the exception."""
    with serving(COMMUNITY, lambda request: ((), 5)) as made:

        async def ask() -> int:
            async def act(_: Any, link: Any) -> int:
                with pytest.raises(ErrorStatus) as caught:
                    await link.get((f"{COLUMN}.1",), 1.0)
                return int(caught.value.status)

            return await talk(engine, made.port, COMMUNITY, act)

        assert asyncio.run(ask()) == 5
