"""A collector in a child process: its faults end neither the worker nor other polls.

The children are real processes; the hostile plugin is installed as pip would install it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import uvloop
from pydantic import SecretStr

from poller.collectors import api
from poller.collectors.credentials import Community
from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.scheduling.session_limits import Limits
from poller.workers.guard.child import child_supervisor
from poller.workers.guard.child.child_messages import ChildConfig
from poller.workers.guard.child.child_process import ChildProcess
from poller.workers.guard.child.child_supervisor import ChildSupervisor
from poller.workers.guard.collector_incidents import CollectorIncidents
from tests.acceptance import troublemaker

ROOT = Path(__file__).parents[2]
CONFIG = ChildConfig(
    collector=troublemaker.NAME,
    memory_mb=256,
    threads=4,
    stuck=2,
    targets=100,
    session=asdict(Limits()),
    sessions=10,
    log_level="INFO",
    log_format="text",
)


class Supervised:
    """A supervisor, and the incidents it recorded."""

    def __init__(self, config: ChildConfig = CONFIG) -> None:
        self._incidents = CollectorIncidents()
        self.supervisor = ChildSupervisor("collector x (y 1.0)", config, self._incidents)

    def crashes(self) -> list[str]:
        """Return the texts of the crashes since the last call."""
        texts = []
        while (incident := self._incidents.take()) is not None:
            texts.append(incident.incident.text)
        return texts

    async def poll(
        self,
        do: str,
        timeout_s: float = 10.0,
        target_id: int = 1,
        credential: api.Credential | None = None,
        **more: Any,
    ) -> Outcome:
        options = {"do": do, **more}
        version = sum(do.encode())  # a target that does something else was edited
        target = PollTarget(
            target_id, version, "t", 1, f"d{target_id}", "127.0.0.1", "", "x", 1000, 1000, options
        )
        deadline = asyncio.get_running_loop().time() + timeout_s
        poll = api.Poll(target_id, target.device, "127.0.0.1", None, credential, deadline, {})
        return await self.supervisor.poll(target, poll)

    async def pid(self, of: str = "tell_pid") -> int:
        outcome = await self.poll(of, target_id=99)
        assert outcome.readings is not None, outcome.message
        return int(outcome.readings.values[-1])


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Coroutine[Any, Any, None]], None]:
    troublemaker.install(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(tmp_path)]))
    monkeypatch.setattr(child_supervisor, "BASE_MS", 10)
    return uvloop.run


Run = Callable[[Coroutine[Any, Any, None]], None]


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def start_data(pid: int) -> bytes:
    return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))


async def gone(pid: int, within_s: float = 5.0) -> bool:
    until = time.monotonic() + within_s
    while lives(pid) and time.monotonic() < until:  # noqa: ASYNC110  there is no event
        await asyncio.sleep(0.01)
    return not lives(pid)


def test_polls_run_side_by_side_in_another_process(run: Run) -> None:
    """There is one child for all polls, and its outcomes are those of any poll."""

    async def go() -> None:
        supervised = Supervised()
        waiting = asyncio.create_task(supervised.poll("wait_for_ever", 3.0))
        pids = {await supervised.pid() for _ in range(3)}
        assert len(pids) == 1
        assert pids != {os.getpid()}
        outcome = await supervised.poll("nan", target_id=2)
        assert outcome.result is Result.OK
        assert outcome.readings is not None
        assert [series.name for series in outcome.readings.series.series] == [
            "odd",
            "odd",
            "odd",
            "polled",
        ]
        assert (
            await supervised.poll("crash", target_id=3)
        ).error_code == error_codes.COLLECTOR_CRASHED
        assert not waiting.done()
        assert (await waiting).error_code == error_codes.TIMEOUT
        supervised.supervisor.close()
        assert await gone(pids.pop())
        assert supervised.crashes() == []

    run(go())


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("segfault", "it was ended by SIGSEGV at "),
        ("exit", "it exited with code 3"),
        ("spin", "it did not answer in time"),
    ],
)
def test_only_the_poll_whose_code_ended_the_process_fails(
    run: Run, action: str, expected: str
) -> None:
    """The other poll has no outcome and is handed back; the next poll has a new process."""

    async def go() -> None:
        supervised = Supervised()
        before = await supervised.pid()
        other = asyncio.create_task(supervised.poll("wait_for_ever", target_id=2))
        await asyncio.sleep(0.1)
        outcome = await supervised.poll(action, 0.5)
        assert (outcome.result, outcome.error_code) == (Result.FAILED, error_codes.COLLECTOR_DIED)
        assert f"the process of collector x (y 1.0) ended: {expected}" in outcome.message
        await asyncio.wait([other], timeout=5)
        assert other.cancelled()
        assert len(supervised.crashes()) == 1
        assert await supervised.pid() != before
        assert await gone(before)

    run(go())


@pytest.mark.parametrize("action", ["exit", "spin"])
def test_processes_of_a_collector_end_with_its_child(run: Run, action: str) -> None:
    """Processes of a collector end when the child ends by itself and when it is killed."""

    async def go() -> None:
        supervised = Supervised()
        left_behind = await supervised.pid("start_another")
        assert lives(left_behind)
        await supervised.poll(action, 0.5)
        assert await gone(left_behind)

    run(go())


def processes() -> set[int]:
    """Return the children of this test process that run a collector."""
    pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {
        int(pid)
        for pid in pids
        if lives(int(pid)) and b"poller.workers.guard.child" in start_data(int(pid))
    }


def test_a_closed_supervisor_starts_no_process_for_a_waiting_poll(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collector was quarantined or released in the pause after a crash; no code would end a new
    process.
    """
    monkeypatch.setattr(child_supervisor, "BASE_MS", 300)

    async def go() -> None:
        supervised = Supervised()
        await supervised.poll("exit")
        waiting = asyncio.create_task(supervised.poll("tell_pid", target_id=2))
        await asyncio.sleep(0.05)
        supervised.supervisor.close()
        await asyncio.wait([waiting], timeout=5)
        assert waiting.cancelled()
        assert processes() == set()

    run(go())


def test_a_process_that_is_closed_before_it_is_ready_keeps_no_poll_waiting(run: Run) -> None:
    """The polls are handed back at once, and no crash is recorded."""

    async def go() -> None:
        supervised = Supervised()
        waiting = asyncio.create_task(supervised.poll("tell_pid", 30.0))
        await asyncio.sleep(0.02)
        supervised.supervisor.close()
        done, _ = await asyncio.wait([waiting], timeout=10)
        assert done == {waiting}
        assert waiting.cancelled()
        assert supervised.crashes() == []

    run(go())


def test_an_allocation_beyond_the_memory_limit_is_an_error(run: Run) -> None:
    """The allocation fails where it is made; the process and the worker live on."""

    async def go() -> None:
        supervised = Supervised()
        pid = await supervised.pid()
        outcome = await supervised.poll("allocate")
        assert outcome.error_code == error_codes.COLLECTOR_CRASHED
        assert "MemoryError" in outcome.message
        assert await supervised.pid() == pid

    run(go())


def test_a_leaking_process_is_replaced_before_a_poll_fails(run: Run) -> None:
    """The old process finishes its polls; no crash is recorded."""

    async def go() -> None:
        supervised = Supervised(replace(CONFIG, collector=troublemaker.PLODDER))
        pids = []
        for number in range(16):
            outcome = await supervised.poll("leak", target_id=number)
            assert outcome.result is Result.OK, outcome.message
            assert outcome.readings is not None
            pids.append(int(outcome.readings.values[-1]))
        assert 2 <= len(set(pids)) <= 8
        assert await gone(pids[0])
        assert supervised.crashes() == []

    run(go())


def test_stuck_threads_end_with_their_process(run: Run) -> None:
    """At the limit of stuck threads the child is replaced; each poll has its outcome in time."""

    async def go() -> None:
        supervised = Supervised(replace(CONFIG, collector=troublemaker.PLODDER))
        first = (await supervised.poll("answer")).readings
        for number in range(3):
            began = time.monotonic()
            outcome = await supervised.poll("hang", 0.3, target_id=number)
            assert (outcome.result, outcome.error_code) == (Result.PARTIAL, error_codes.TIMEOUT)
            assert time.monotonic() - began < 1.0
            await asyncio.sleep(0.6)
        second = (await supervised.poll("answer")).readings
        assert first is not None
        assert second is not None
        assert first.values[-1] != second.values[-1] or await self_replaced(
            supervised, first.values[-1]
        )
        assert supervised.crashes() == []

    async def self_replaced(supervised: Supervised, pid: float) -> bool:
        again = (await supervised.poll("answer")).readings
        return again is not None and again.values[-1] != pid

    run(go())


def test_a_fault_in_a_thread_is_blamed_on_the_poll_of_that_thread(run: Run) -> None:
    """Other polls run in threads beside it."""

    async def go() -> None:
        supervised = Supervised(replace(CONFIG, collector=troublemaker.PLODDER))
        await supervised.poll("answer")
        others = [asyncio.create_task(supervised.poll("block", 5.0, target_id=n)) for n in (5, 6)]
        await asyncio.sleep(0.2)
        assert (await supervised.poll("segfault")).error_code == error_codes.COLLECTOR_DIED
        await asyncio.wait(others, timeout=2)
        assert all(each.cancelled() for each in others)

    run(go())


def test_credentials_reach_the_child_by_the_socket_only(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments, environment and error texts of the child have no secret."""
    monkeypatch.setenv("POLLER_SECRET_KEY", "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I=")
    monkeypatch.setenv("POLLER_REDIS_URL", "redis://:hunter22@127.0.0.1/0")

    async def go() -> None:
        supervised = Supervised()
        pid = await supervised.pid()
        outcome = await supervised.poll(
            "crash", credential=Community(community=SecretStr("hunter22")), text="it is hunter22"
        )
        assert outcome.error_code == error_codes.COLLECTOR_CRASHED
        assert "hunter22" not in outcome.message
        assert (
            start_data(pid).count(b"hunter22") == start_data(pid).count(b"POLLER_SECRET_KEY") == 0
        )

    run(go())


def test_a_child_that_ends_when_it_is_ready_keeps_no_poll_waiting(run: Run) -> None:
    """A poll that waited for the child has no outcome and is due again."""

    async def go() -> None:
        process = ChildProcess(CONFIG)
        await process.ready
        process.kill("a test")
        await process.ended
        poll = api.Poll(
            1, "d", "127.0.0.1", None, None, asyncio.get_running_loop().time() + 0.1, {}
        )
        target = PollTarget(1, 1, "t", 1, "d", "127.0.0.1", "", "x", 1000, 1000, {})
        done, _ = await asyncio.wait(
            [asyncio.create_task(process.poll(target, poll, 0.1))], timeout=5
        )
        assert [task.cancelled() for task in done] == [True]

    run(go())


def test_a_child_does_not_outlive_a_worker_that_is_killed(run: Run, tmp_path: Path) -> None:
    """A child ends with its killed worker even while the collector holds the interpreter."""
    code = (
        "import asyncio, sys; from tests.integration.test_child import Supervised\n"
        "async def go():\n"
        "    supervised = Supervised(); print(await supervised.pid(), flush=True)\n"
        "    await supervised.poll('spin', 600.0)\n"
        "asyncio.run(go())\n"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT, env=os.environ
    )
    assert worker.stdout is not None
    pid = int(worker.stdout.readline())
    assert lives(pid)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert asyncio.run(gone(pid))
