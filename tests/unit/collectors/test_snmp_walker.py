"""The walker on an agent made of a list: retries, loops, sizes, deadlines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import pytest

from poller import errors
from poller.collectors.snmp.engines import engine_protocol
from poller.collectors.snmp.engines.engine_protocol import (
    ErrorStatus,
    Garbled,
    NoReply,
    Page,
    Retry,
    Row,
    Silence,
)
from poller.collectors.snmp.read import walker
from poller.collectors.snmp.read.request_size import RequestSizes
from poller.collectors.snmp.read.walker import RetryPolicy, Walked, Walker

T = TypeVar("T")
ROOT = "1.3.6.1"
TREE: list[Row] = [(f"{ROOT}.{i}", i) for i in range(1, 101)]


class Agent:
    """Answers from a list of rows; `trouble` is called before each response and may raise."""

    max_get_oids = 20
    codec_only = False
    received = 0
    silence = Silence()
    exact = False

    def __init__(
        self, rows: Sequence[Row] = TREE, trouble: Callable[[int], None] | None = None
    ) -> None:
        self.rows = rows
        self.trouble = trouble or (lambda asked: None)
        self.requested: list[int] = []
        self.waits: list[float] = []

    async def handshake(self, retry: Retry) -> None: ...

    async def page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        self._receive(repetitions, wait_s)
        key = [int(part) for part in cursor.split(".")]
        after = [row for row in self.rows if [int(part) for part in row[0].split(".")] > key]
        page = after[:repetitions]
        return Page(page, ended=len(page) < repetitions)

    async def get(self, oids: Sequence[str], wait_s: float) -> Sequence[Row]:
        self._receive(len(oids), wait_s)
        return [row for row in self.rows if row[0] in oids]

    def _receive(self, asked: int, wait_s: float) -> None:
        self.requested.append(asked)
        self.waits.append(wait_s)
        self.trouble(asked)

    def close(self) -> None: ...


def run(
    agent: Agent,
    act: Callable[[Walker], Awaitable[T]],
    *,
    retries: int = 2,
    budget_s: float = 60,
    limit: int = 50,
    allow_disorder: bool = False,
) -> T:
    async def poll() -> T:
        deadline = asyncio.get_running_loop().time() + budget_s
        policy = RetryPolicy(1.0, retries, deadline)
        agent_name = "10.0.0.1 port 161"
        walker = Walker(agent, policy, RequestSizes(limit), agent_name, allow_disorder)
        return await act(walker)

    return asyncio.run(poll())


def walk(agent: Agent, **more: int) -> Walked:
    return run(agent, lambda w: w.walk(ROOT), **more)


def times(count: int, error: Exception) -> Callable[[int], None]:
    """Raise the error the first `count` times."""
    left = [count]

    def trouble(asked: int) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise error

    return trouble


def bigger_than(size: int, error: Exception) -> Callable[[int], None]:
    def trouble(asked: int) -> None:
        if asked > size:
            raise error

    return trouble


def test_a_walk_reads_every_row_once() -> None:
    walked = walk(Agent())
    assert walked.error is None
    assert walked.rows == TREE


def test_a_walk_of_a_scalar_returns_the_scalar() -> None:
    """A walk of a scalar's OID finds nothing beneath it, so a GET follows."""
    assert walk(Agent([(ROOT, 7)])).rows == [(ROOT, 7)]


def test_each_retry_waits_longer() -> None:
    agent = Agent(trouble=times(2, NoReply("silence")))
    assert walk(agent).rows == TREE
    assert agent.waits[:3] == pytest.approx([1.0, 1.5, 2.25])


def test_a_timeout_names_the_agent_and_the_number_of_tries() -> None:
    """The error gives the probable causes; nothing is sent after the last attempt."""
    agent = Agent(trouble=times(99, NoReply("silence")))
    error = walk(agent).error
    assert isinstance(error, errors.DeviceTimeout)
    assert str(error).startswith(
        "no answer from 10.0.0.1 port 161 (3 tries in 0.0 s) (wrong credential"
    )
    assert len(agent.requested) == 3


def test_no_attempt_starts_after_the_deadline() -> None:
    agent = Agent(trouble=times(99, NoReply("silence")))
    error = run(agent, lambda w: w.walk(ROOT), budget_s=0).error
    assert isinstance(error, errors.DeviceTimeout)
    assert agent.requested == []


def test_a_timeout_within_a_walk_shrinks_the_request() -> None:
    """A response that is too big for the path looks like a timeout."""
    agent = Agent()
    agent.trouble = lambda asked: (
        bigger_than(12, NoReply("lost"))(asked) if len(agent.requested) > 1 else None
    )
    assert walk(agent).rows == TREE
    assert agent.requested[:4] == [50, 50, 25, 12]


def test_rows_before_a_timeout_are_dropped() -> None:
    """A table that is cut off at any row would be a new shape every time."""
    agent = Agent()
    agent.trouble = lambda asked: (
        times(9, NoReply("lost"))(asked) if len(agent.requested) > 1 else None
    )
    walked = walk(agent)
    assert walked.rows == []
    assert "stopped answering" in str(walked.error)


@pytest.mark.parametrize("error", [Garbled("cut off"), ErrorStatus(engine_protocol.TOO_BIG)])
def test_responses_that_do_not_fit_are_requested_in_pieces(error: Exception) -> None:
    agent = Agent(trouble=bigger_than(7, error))
    assert walk(agent).rows == TREE
    assert max(agent.requested[3:]) <= 7


def test_garbage_at_every_size_is_a_protocol_error() -> None:
    walked = walk(Agent(trouble=bigger_than(0, Garbled("rubbish"))))
    assert isinstance(walked.error, errors.DeviceProtocolError)


class Looping(Agent):
    async def page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        self._receive(repetitions, wait_s)
        return Page([(f"{ROOT}.1", 1), (f"{ROOT}.2", 2)], ended=False)


def test_a_loop_is_stopped_and_the_rows_before_it_stay() -> None:
    agent = Looping()
    walked = walk(agent)
    assert isinstance(walked.error, errors.DeviceProtocolError)
    assert "repeats itself" in str(walked.error)
    assert len(agent.requested) == 2
    assert dict(walked.rows) == {f"{ROOT}.1": 1, f"{ROOT}.2": 2}


class Endless(Agent):
    async def page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        self._receive(repetitions, wait_s)
        start = int(cursor.rpartition(".")[2]) if cursor != ROOT else 0
        return Page([(f"{ROOT}.{start + i}", 0) for i in range(1, repetitions + 1)], ended=False)


def test_an_endless_table_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walker, "MAX_ROWS", 1000)
    walked = walk(Endless())
    assert "more than 1000 rows" in str(walked.error)
    assert walked.rows == []


def test_an_error_status_keeps_the_rows_before_it() -> None:
    """snmp_exporter keeps these rows, too; here the error is reported with them."""
    agent = Agent()
    agent.trouble = lambda asked: (
        times(1, ErrorStatus(5))(asked) if len(agent.requested) > 1 else None
    )
    walked = walk(agent)
    assert len(walked.rows) == 50
    assert str(walked.error) == f"the agent answered genErr at {ROOT}.50"


def test_no_such_name_ends_a_walk_of_version_1() -> None:
    agent = Agent()
    agent.trouble = lambda asked: (
        times(1, ErrorStatus(engine_protocol.NO_SUCH_NAME))(asked)
        if len(agent.requested) > 1
        else None
    )
    walked = walk(agent)
    assert walked.error is None
    assert len(walked.rows) == 50


@pytest.mark.parametrize("status", [engine_protocol.NO_ACCESS, engine_protocol.AUTHORIZATION_ERROR])
def test_a_refusal_is_the_credentials_fault(status: int) -> None:
    error = walk(Agent(trouble=times(1, ErrorStatus(status)))).error
    assert isinstance(error, errors.DeviceAuthFailed)
    assert "security level" in str(error)


def test_scalars_are_split_when_one_spoils_the_request() -> None:
    """SNMPv1 fails a whole GET for one absent OID; a response may be too big."""
    oids = [row[0] for row in TREE[:8]]

    class Fussy(Agent):
        async def get(self, oids: Sequence[str], wait_s: float) -> Sequence[Row]:
            if f"{ROOT}.3" in oids:
                raise ErrorStatus(
                    engine_protocol.NO_SUCH_NAME if len(oids) == 1 else engine_protocol.TOO_BIG
                )
            return await super().get(oids, wait_s)

    rows = run(Fussy(), lambda w: w.get(oids))
    assert rows == [row for row in TREE[:8] if row[0] != f"{ROOT}.3"]


class Disordered(Agent):
    """Answers one row at a time, in the order of its list."""

    async def page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        self._receive(repetitions, wait_s)
        order = [oid for oid, _ in self.rows]
        at = order.index(cursor) + 1 if cursor in order else 0
        return Page(self.rows[at : at + 1], ended=at >= len(self.rows))


@pytest.mark.parametrize("allowed", [False, True])
def test_rows_out_of_order_are_read_where_the_module_allows_it(allowed: bool) -> None:
    """Without allow_nonincreasing_oids a decreasing OID is a loop."""
    rows: list[Row] = [(f"{ROOT}.{i}", i) for i in (1, 3, 2, 4)]

    walked = walk(Disordered(rows), allow_disorder=allowed)
    assert (walked.error is None) == allowed
    assert [value for _, value in walked.rows] == ([1, 3, 2, 4] if allowed else [1, 3, 2])


def test_a_repeated_row_is_a_loop_even_if_disorder_is_allowed() -> None:
    """The repeated row ends the walk."""
    rows: list[Row] = [(f"{ROOT}.{i}", i) for i in (1, 3, 2, 1)]

    walked = walk(Disordered(rows), allow_disorder=True)
    assert isinstance(walked.error, errors.DeviceProtocolError)
