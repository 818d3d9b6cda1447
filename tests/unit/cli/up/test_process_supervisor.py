"""Child processes are restarted with growing pauses, replaced when they grow, never left behind."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from poller.cli.up import process_supervisor, role_commands
from poller.cli.up.process_supervisor import Child, Role, Supervisor
from poller.cli.up.role_logs import PrivateLogFile

MIB = 2**20
#: Stops on SIGTERM.
OBEDIENT = (
    "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); "
    "print('ready', flush=True); "
)
STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); "


class Stage:
    """A supervisor and its printed lines."""

    def __init__(self, patience_s: float) -> None:
        self.said: list[str] = []
        self.supervisor = Supervisor(None, lambda _, text: self.said.append(text), patience_s)

    def run(self, code: str, memory_bytes: int = 0) -> Child:
        return self.supervisor.add(
            Role("kid", [sys.executable, "-c", code], memory_bytes=memory_bytes)
        )

    def until(self, done: Callable[[], bool]) -> None:
        until = time.monotonic() + 20
        while not done():
            assert time.monotonic() < until, self.said
            self.supervisor.check()
            time.sleep(0.01)

    def was_said(self, text: str) -> bool:
        return any(text in line for line in self.said)


@pytest.fixture(params=[10.0])
def stage(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Stage]:
    monkeypatch.setattr(process_supervisor, "MEMORY_CHECK_EVERY_S", 0.05)
    made = Stage(patience_s=request.param)
    yield made
    made.supervisor.kill(lambda _: True)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise SystemExit(3)", "kid ended with exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "kid was ended by SIGKILL"),
    ],
)
def test_an_ended_process_is_restarted_with_a_reason(stage: Stage, code: str, why: str) -> None:
    """The pause grows with each failure."""
    stage.run(code)
    stage.until(lambda: stage.was_said(f"{why}; starting it again in 1 s"))
    assert stage.was_said(f"{why}; starting it again in 0.5 s")


def test_a_configuration_error_is_retried_after_a_minute(stage: Stage) -> None:
    """With no healthy child left, no restart is promised."""
    healthy = stage.run(OBEDIENT + "time.sleep(60)")
    stage.run("raise SystemExit(78)")
    stage.until(
        lambda: stage.was_said(
            "kid ended with exit code 78, its configuration; starting it again in 60 s"
        )
    )
    assert not stage.supervisor.all_misconfigured(lambda _: True)
    assert not stage.supervisor.all_misconfigured(lambda name: name == "somebody else")
    stage.supervisor.children.remove(healthy)
    healthy.signal(signal.SIGKILL)
    stage.said.clear()
    stage.run("raise SystemExit(78)")
    stage.until(lambda: stage.supervisor.all_misconfigured(lambda _: True))
    stage.supervisor.check()
    assert stage.said == []


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("subprocess.Popen", OSError(errno.EAGAIN, "Resource temporarily unavailable")),
        ("threading.Thread.start", RuntimeError("can't start new thread")),
    ],
    ids=["no process", "no thread"],
)
def test_a_process_that_cannot_be_started_is_retried_later(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, what: str, error: Exception
) -> None:
    """Other children run on, and nothing of the failed start stays."""
    healthy = stage.run(OBEDIENT + "time.sleep(60)")
    first = healthy.process
    kid = stage.run("raise SystemExit(3)")
    stage.until(lambda: stage.was_said("exit code 3; starting it again"))

    def refused(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as without:
        without.setattr(what, refused)
        stage.until(
            lambda: stage.was_said(f"kid cannot be started ({error}); starting it again in 1 s")
        )
    tried = kid.process
    stage.until(lambda: kid.process is not tried)
    assert healthy.process is first
    assert healthy.running
    assert tried is not None
    assert tried.wait(5) != 0


def test_a_child_above_its_memory_limit_is_replaced(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped softly and restarted without a pause."""
    monkeypatch.setattr(process_supervisor, "HEALTHY_S", 0.0)
    child = stage.run(
        OBEDIENT + "x = b'x' * 80_000_000\nwhile True: time.sleep(0.05)", memory_bytes=60 * MIB
    )
    first = child.process
    stage.until(lambda: child.process is not first)
    assert first is not None
    assert first.returncode == 0
    assert stage.was_said("MiB, more than its limit of 60 MiB: it is replaced")
    assert not stage.was_said("starting it again")


@pytest.mark.parametrize("stage", [0.3], indirect=True)
def test_a_replaced_child_that_does_not_stop_is_killed(stage: Stage) -> None:
    """It is killed after its deadline, then restarted like a failed one."""
    child = stage.run(STUBBORN + "x = b'x' * 80_000_000; time.sleep(60)", memory_bytes=60 * MIB)
    stage.until(lambda: stage.was_said("starting it again"))
    assert child.process is not None
    assert child.process.returncode == -signal.SIGKILL
    assert stage.was_said("kid did not stop in time: killed")


def test_a_child_replaced_on_request_has_a_successor_at_once(stage: Stage) -> None:
    """It restarts without a pause and a line, however young it is; other roles run on."""
    child = stage.run(OBEDIENT + "time.sleep(60)")
    stage.until(lambda: stage.was_said("ready"))
    first = child.process
    assert first is not None
    stage.supervisor.replace(lambda name: name == "somebody else", 10)
    assert child.replace_by_mono is None
    stage.supervisor.replace(lambda name: name == "kid", 10)
    stage.until(lambda: child.process is not first and child.running)
    assert first.returncode == 0
    assert not stage.was_said("starting it again")
    assert not child.replace_requested


def test_a_child_below_its_memory_limit_runs_on(stage: Stage) -> None:
    """Repeated checks change nothing."""
    child = stage.run(OBEDIENT + "time.sleep(60)", memory_bytes=500 * MIB)
    stage.until(lambda: stage.was_said("ready"))
    first = child.process
    for _ in range(20):
        stage.supervisor.check()
        time.sleep(0.02)
    assert child.process is first
    assert child.running


def test_hurry_ends_the_wait_of_stop(stage: Stage) -> None:
    """A process that still runs is killed, and its id returned."""
    child = stage.run(STUBBORN + "time.sleep(60)")
    stage.until(lambda: stage.was_said("ready"))
    stage.supervisor.stop(lambda _: True, 60, hurry=lambda: True)
    assert child.process is not None
    assert stage.supervisor.kill(lambda _: True) == [child.process.pid]
    assert child.process.returncode == -signal.SIGKILL


def test_a_worker_is_a_plain_celery_command() -> None:
    """It has its own name and only the given options."""
    role = role_commands.worker(
        2, {"POLLER_WORKER_TAGS": "zone=dmz"}, "edge", concurrency=4, memory_bytes=MIB
    )
    assert role.argv[1:] == [
        "-m",
        "celery",
        "-A",
        "poller",
        "--quiet",
        "worker",
        "-n",
        "edge2@%h",
        "--concurrency=4",
    ]
    assert (role.name, role.env["POLLER_WORKER_TAGS"], role.memory_bytes) == (
        "edge2",
        "zone=dmz",
        MIB,
    )


def test_the_cpu_time_of_a_role_does_not_fall_when_its_process_is_replaced(stage: Stage) -> None:
    """The summary would have a negative CPU time per poll."""
    burn = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    child = stage.run(f"{OBEDIENT}{burn}\nprint('burnt', flush=True); time.sleep(60)")
    stage.until(lambda: stage.was_said("burnt"))
    stage.supervisor.check()
    before = stage.supervisor.cpu_ms()["kid"]
    assert before >= 250
    first = child.process
    stage.supervisor.replace(lambda _: True, 10.0)
    stage.until(lambda: child.process is not first and child.running)
    assert stage.supervisor.cpu_ms()["kid"] >= before


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_log_files_and_files_of_the_embedded_server_are_private(tmp_path: Path, umask: int) -> None:
    """Whatever the umask of the shell, and also after a rotation."""
    before = os.umask(umask)
    try:
        supervisor = Supervisor(tmp_path / "logs", lambda *_: None)
        made = tmp_path / "made"
        code = f"open({str(made)!r}, 'w')"
        child = supervisor.add(Role("kid", [sys.executable, "-c", code], private_files=True))
        assert child.process is not None
        child.process.wait(20)
        log = PrivateLogFile(
            tmp_path / "logs" / "big.log", maxBytes=10, backupCount=1, encoding="utf-8"
        )
        for text in ("0123456789", "0123456789"):
            log.emit(logging.makeLogRecord({"msg": text}))
        log.close()
        supervisor.kill(lambda _: True)
    finally:
        os.umask(before)

    files = [made, *(tmp_path / "logs").iterdir()]
    assert {path.name for path in files} == {"made", "kid.log", "big.log", "big.log.1"}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
