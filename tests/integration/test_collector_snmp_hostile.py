"""Loops, garbage, silence or half a packet: the outcome is one of ours, and in time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from poller.collectors.credentials import Community
from poller.collectors.snmp import SnmpCollector
from poller.domain.failures.outcome import Outcome, Result
from tests.unit.collectors import snmp_agent
from tests.unit.collectors.polls import by_series, outcome
from tests.unit.collectors.snmp_agent import GET, GET_NEXT, Request, integer, octets

PUBLIC = Community.from_text("public-s3cret")
IF_TABLE, IF_X_TABLE = "1.3.6.1.2.1.2", "1.3.6.1.2.1.31.1.1"
ROWS: list[tuple[str, bytes]] = [
    ("1.3.6.1.2.1.1.3.0", integer(4200, 0x43)),
    ("1.3.6.1.2.1.2.1.0", integer(2)),
    *[
        (f"1.3.6.1.2.1.2.2.1.{column}.{row}", integer(column * row))
        for column in (1, 4, 8, 10)
        for row in (1, 2)
    ],
    *[(f"1.3.6.1.2.1.31.1.1.1.1.{row}", octets(b"eth%d" % row)) for row in (1, 2)],
    *[(f"1.3.6.1.2.1.31.1.1.1.6.{row}", integer(2**40 + row, 0x46)) for row in (1, 2)],
    ("1.3.6.1.2.1.99.1.0", integer(1)),
]
Handler = Callable[[Request], Sequence[bytes]]


def key(oid: str) -> list[int]:
    return [int(part) for part in oid.split(".")]


def honest(request: Request, rows: Sequence[tuple[str, bytes]] = ROWS) -> list[bytes]:
    """The correct response to a GET, GETNEXT or GETBULK."""
    if request.kind == GET:
        there = dict(rows)
        return [request.answer([(oid, there.get(oid, b"\x80\0")) for oid in request.oids])]
    after = [row for row in rows if key(row[0]) > key(request.oids[0])]
    count = request.repetitions if request.kind == snmp_agent.GET_BULK else 1
    return [request.answer(after[:count] or [(request.oids[0], b"\x82\0")])]


class Agent:
    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.requests: list[Request] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            data, peer = self._socket.recvfrom(65535)
            if data == b"stop":
                return
            request = snmp_agent.parse(data)
            self.requests.append(request)
            for answer in self._handler(request):
                self._socket.sendto(answer, peer)

    def stop(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
            caller.sendto(b"stop", ("127.0.0.1", self.port))
        self._thread.join(10)
        self._socket.close()


@contextmanager
def agent(handler: Handler) -> Iterator[Agent]:
    made = Agent(handler)
    try:
        yield made
    finally:
        made.stop()


def poll(made: Agent, **more: Any) -> Outcome:
    settings = {"timeout": 0.1, "retries": 1, "modules": "if_mib", "timeout_s": 3, **more}
    return outcome(SnmpCollector(), "127.0.0.1", PUBLIC, port=made.port, **settings)


def test_a_correct_agent_is_read() -> None:
    with agent(honest) as made:
        found = by_series(poll(made))
    assert (
        found[
            "ifHCInOctets", (("ifAlias", ""), ("ifDescr", ""), ("ifIndex", "2"), ("ifName", "eth2"))
        ]
        == 2**40 + 2
    )
    assert found["ifNumber", ()] == 2


def test_a_silent_agent_is_retried_and_then_a_timeout() -> None:
    with agent(lambda request: []) as made:
        started = time.monotonic()
        result = poll(made, retries=2, timeout=0.1)
        took = time.monotonic() - started
    assert (result.error_code, len(made.requests)) == ("timeout", 3)
    assert 0.45 < took < 1.5  # 0.1 + 0.15 + 0.225
    assert "(3 tries in 0.5 s)" in result.message


def test_a_silent_signal_costs_nothing_but_time() -> None:
    """The change signals share a GET with the first scalars, and must not silence them."""

    def choking(request: Request) -> list[bytes]:
        return [] if "1.3.6.1.2.1.31.1.5.0" in request.oids else honest(request)

    with agent(choking) as made:
        result = poll(made, retries=1, timeout=0.1)
    with agent(honest) as made:
        assert by_series(result) == by_series(poll(made))
    assert result.result is Result.OK


def test_retries_end_with_the_deadline() -> None:
    """The number of configured retries does not matter."""
    with agent(lambda request: []) as made:
        started = time.monotonic()
        result = poll(made, retries=10, timeout=5, timeout_s=0.3)
        took = time.monotonic() - started
    assert result.error_code == "timeout"
    assert took < 1


def test_a_lost_packet_is_requested_again() -> None:
    seen: list[int] = []

    def lossy(request: Request) -> list[bytes]:
        seen.append(1)
        return [] if len(seen) % 2 else honest(request)

    with agent(lossy) as made:
        result = poll(made, timeout=0.3, retries=3, timeout_s=30)
    assert result.result is Result.OK, result.message
    assert len(made.requests) > 2


def test_a_late_response_to_an_earlier_attempt_is_ignored() -> None:
    held: list[bytes] = []

    def late(request: Request) -> list[bytes]:
        answers, held[:] = [*held, *honest(request)], []
        if len(made.requests) == 1:
            held[:] = [request.answer([("1.3.6.1.2.1.2.1.0", integer(666))])]
            return []
        return answers

    with agent(late) as made:
        assert by_series(poll(made))["ifNumber", ()] == 2


def wrong_id(request: Request) -> list[bytes]:
    return [snmp_agent.response(request.community, b"\x01", [], version=request.version)]


def wrong_community(request: Request) -> list[bytes]:
    return [snmp_agent.response(b"other", request.request_id, [], version=request.version)]


@pytest.mark.parametrize("handler", [wrong_id, wrong_community])
def test_a_foreign_response_is_ignored(handler: Handler) -> None:
    with agent(handler) as made:
        assert poll(made).error_code == "timeout"


def flood(request: Request) -> list[bytes]:
    return wrong_id(request) * 2000


def test_a_flood_of_foreign_responses_ends_with_the_timeout() -> None:
    with agent(flood) as made:
        started = time.monotonic()
        assert poll(made).error_code == "timeout"
    assert time.monotonic() - started < 3


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"hello",
        lambda data: data[:-5],
        lambda data: data + b"\0\0",
        lambda data: b"\x30\x84\xff\xff\xff\xff",
        lambda data: b"\0" * 60_000,
        lambda data: b"",
        lambda data: data[:1],
    ],
)
def test_garbage_is_a_protocol_error_that_quotes_nothing(spoil: Callable[[bytes], bytes]) -> None:
    with agent(lambda request: [spoil(answer) for answer in honest(request)]) as made:
        result = poll(made)
    assert (result.result, result.error_code) == (Result.FAILED, "protocol_error")
    assert "public-s3cret" not in result.message


def test_a_panic_of_the_library_is_a_protocol_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The library reads no more of this agent: each panic writes to stderr."""

    def lying(request: Request) -> list[bytes]:
        """A row whose length has thirty octets, more than are left."""
        row = b"\x30\x9e" + snmp_agent.oid("1.3.6.1.2.1.2.1.0") + integer(1)
        body = (
            snmp_agent.element(2, request.request_id)
            + integer(0)
            + integer(0)
            + snmp_agent.sequence(row)
        )
        message = (
            snmp_agent.element(2, request.version)
            + octets(request.community)
            + snmp_agent.element(0xA2, body)
        )
        return [snmp_agent.sequence(message)]

    memory: dict[str, Any] = {}
    answers = [honest]
    with agent(lambda request: answers[0](request)) as made:
        assert (
            poll(made, memory=memory).result is Result.OK
        )  # a first poll is read without the library
        answers[0] = lying
        first = poll(made, memory=memory)
        panicked = capfd.readouterr().err
        second = poll(made, memory=memory)
    assert first.error_code == second.error_code == "protocol_error"
    assert "panicked" in panicked
    assert capfd.readouterr().err == ""


def test_responses_too_big_for_the_engine_are_requested_in_pieces() -> None:
    """The next poll starts with the size that fits."""
    alias = octets(b"x" * 200)
    rows = [
        ("1.3.6.1.2.1.2.1.0", integer(60)),
        *[(f"{IF_X_TABLE}.1.18.{row}", alias) for row in range(1, 61)],
    ]
    rows += [(f"{IF_X_TABLE}.1.19.{row}", integer(0)) for row in range(1, 61)]
    memory: dict[str, Any] = {}
    with agent(lambda request: honest(request, rows)) as made:
        first = poll(made, memory=memory)
        asked = len(made.requests)
        second = poll(made, memory=memory)
    assert first.result is second.result is Result.OK
    assert first.samples == 61
    again = [
        request for request in made.requests[asked:] if request.kind != GET_NEXT
    ]  # that asks for empty tables
    assert len(again) < asked


def looping(request: Request) -> list[bytes]:
    """The first two rows of ifXTable, endlessly."""
    if request.oids[0].startswith(IF_X_TABLE):
        return [request.answer([row for row in ROWS if row[0].startswith(IF_X_TABLE)][:2])]
    return honest(request)


def test_a_loop_costs_only_its_table() -> None:
    with agent(looping) as made:
        result = poll(made)
    assert (result.result, result.error_code) == (Result.PARTIAL, "protocol_error")
    assert result.message.startswith(f"if_mib {IF_X_TABLE}: the agent repeats itself")
    assert ("ifNumber", ()) in by_series(result)
    assert len(made.requests) < 10


def endless(request: Request) -> list[bytes]:
    """A new row after every row, endlessly."""
    if not request.oids[0].startswith(IF_X_TABLE) or request.kind == GET:
        return honest(request)
    last = int(request.oids[0].rpartition(".")[2])
    return [
        request.answer(
            [
                (f"{IF_X_TABLE}.1.6.{last + i}", integer(1))
                for i in range(1, request.repetitions + 1)
            ]
        )
    ]


def test_an_endless_table_ends_with_the_deadline() -> None:
    with agent(endless) as made:
        started = time.monotonic()
        result = poll(made, timeout_s=1)
    assert time.monotonic() - started < 2
    assert (result.result, result.error_code) == (Result.PARTIAL, "timeout")
    assert ("ifNumber", ()) in by_series(result)


def test_a_silent_table_costs_only_itself_and_renames_nothing() -> None:
    """Labels of the last poll are used while the table of names is silent."""
    silent: list[bool] = []

    def handler(request: Request) -> list[bytes]:
        return [] if silent and request.oids[0].startswith(IF_X_TABLE) else honest(request)

    memory: dict[str, Any] = {}
    with agent(handler) as made:
        poll(made, memory=memory)
        silent.append(True)
        result = poll(made, memory=memory)
    assert (result.result, result.error_code) == (Result.PARTIAL, "timeout")
    assert f"if_mib {IF_X_TABLE}" in result.message
    mtu = {dict(labels)["ifName"] for name, labels in by_series(result) if name == "ifMtu"}
    assert mtu == {"eth1", "eth2"}


@pytest.mark.parametrize(
    ("status", "code"), [(5, "protocol_error"), (16, "auth_failed"), (6, "auth_failed")]
)
def test_an_error_status_does_not_end_a_table(status: int, code: str) -> None:
    """The library hides the status; a half-read table must not look complete."""

    def handler(request: Request) -> list[bytes]:
        if request.oids[0].startswith(IF_X_TABLE):
            return [request.answer([(request.oids[0], b"\x05\0")], status)]
        return honest(request)

    with agent(handler) as made:
        result = poll(made)
    assert (result.result, result.error_code) == (Result.PARTIAL, code)


def test_too_big_causes_a_smaller_request() -> None:
    def handler(request: Request) -> list[bytes]:
        if request.kind == snmp_agent.GET_BULK and request.repetitions > 3:
            return [request.answer([], 1)]
        return honest(request)

    with agent(handler) as made:
        result = poll(made)
    assert result.result is Result.OK
    assert ("ifNumber", ()) in by_series(result)


def test_version_1_ends_with_no_such_name() -> None:
    def handler(request: Request) -> list[bytes]:
        if request.kind != GET and not any(key(oid) > key(request.oids[0]) for oid, _ in ROWS[:-1]):
            return [request.answer([(request.oids[0], b"\x05\0")], 2)]
        return honest(request, ROWS[:-1])

    with agent(handler) as made:
        result = poll(made, version="1", modules="if_mib")
    assert result.result is Result.OK, result.message
    assert {request.kind for request in made.requests} <= {snmp_agent.GET_NEXT, GET}


def test_a_device_without_the_objects_is_unsupported() -> None:
    with agent(lambda request: honest(request, [("1.3.6.1.2.1.99.1.0", integer(1))])) as made:
        result = poll(made)
    assert (result.result, result.error_code) == (Result.FAILED, "unsupported")


def test_options_reach_the_wire() -> None:
    with agent(honest) as made:
        poll(made, max_repetitions=3)
    assert {
        request.repetitions for request in made.requests if request.kind == snmp_agent.GET_BULK
    } <= {1, 2, 3}
    assert {request.community for request in made.requests} == {b"public-s3cret"}
