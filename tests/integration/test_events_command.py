"""`poller events`: events are listed and followed, even while a server is away."""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from poller import bootstrap, event_publisher
from poller.beat import event_recorder
from poller.bootstrap import Services
from poller.cli import main
from poller.domain.record.event_kinds import Kind
from poller.settings import Settings
from tests.acceptance.valkey import Valkey
from tests.integration.happenings import DOWN, without_redis


def cli(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main.run(["events", *arguments])
    return (code, *capsys.readouterr())


def test_events_are_listed_from_sql_and_from_the_stream(
    services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    """The newest comes first, and both sources are filtered alike."""
    now_ms = time.time_ns() // 1_000_000
    old = dataclasses.replace(DOWN, at_ms=now_ms - 7_200_000, message="old")
    event_publisher.emit(services, [old, dataclasses.replace(old, device="sw2", message="other")])
    event_recorder.copy(services)
    event_publisher.emit(
        services,
        [dataclasses.replace(DOWN, at_ms=now_ms, message="new", kind=Kind.DEVICE_RECOVERED)],
    )

    def found(*words: str) -> list[str]:
        items = json.loads(cli(capsys, "--json", *words)[1])["items"]
        return [each["message"] for each in items]

    assert found() == ["new", "other", "old"]
    assert found("--device", "sw1") == ["new", "old"]
    assert found("--kind", "device_recovered") == ["new"]
    assert found("--since", "1h") == ["new"]
    assert found("--until", "1h") == ["other", "old"]
    assert found("--since", "2000-01-01T00:00:00Z", "--until", "2001-01-01") == []
    assert found("--bad") == ["other", "old"]
    assert found("--limit", "1") == ["new"]
    event_recorder.copy(services)
    assert found() == ["new", "other", "old"]


def test_without_redis_the_events_in_sql_are_shown(
    services: Services, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note says that the newest events may be missing."""
    event_publisher.emit(services, [DOWN])
    event_recorder.copy(services)
    without_redis(services, monkeypatch)
    bootstrap.services.cache_clear()
    code, out, err = cli(capsys)
    assert (code, "sw1 is down" in out) == (0, True)
    assert "Redis is not reachable" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--since", "soon"), '--since: "soon" is not a duration'),
        (("--kind", "moon"), "moon"),
        (("--kind", "breaker_opend"), "did you mean breaker_opened?"),
        (("--follow", "--until", "1h"), "--until does not go with --follow"),
        (("--bad", "--kind", "device_recovered"), "device_recovered is not bad"),
        (("--follow", "--limit", "3"), "--limit does not go with --follow"),
        (("--limit", "0"), "limit"),
    ],
)
def test_wrong_options_are_refused_by_name(
    services: Services, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    """The exit code is 2, and stdout stays empty."""
    code, out, err = cli(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err


class Follower:
    """`poller events --follow --json` as a process."""

    def __init__(self, url: str, *arguments: str) -> None:
        environment = {**os.environ, "POLLER_REDIS_URL": url}
        command = [sys.executable, "-m", "poller", "events", "--follow", *arguments]
        self.process = subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def next(self) -> str:
        return self._lines.get(timeout=30)


def test_following_survives_a_server_that_restarts(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server restarts with and without its data; Ctrl-C ends the command quietly."""
    server = Valkey(tmp_path / "own")
    server.start()
    monkeypatch.setenv("POLLER_REDIS_URL", server.url)
    own = Services(Settings())
    event_publisher.emit(own, [dataclasses.replace(DOWN, message="before")])
    follower = Follower(server.url, "--json", "--kind", "device_went_down")
    try:
        assert json.loads(follower.next())["message"] == "before"
        for empty in (False, True):
            other = dataclasses.replace(DOWN, kind=Kind.DEVICE_RECOVERED)
            event_publisher.emit(own, [other, dataclasses.replace(DOWN, message=f"then {empty}")])
            fields = json.loads(follower.next())
            assert (fields["schema"], fields["message"]) == ("poller.event/1", f"then {empty}")
            server.kill()
            server.start(empty=empty)
        event_publisher.emit(own, [dataclasses.replace(DOWN, message="after")])
        assert json.loads(follower.next())["message"] == "after"
        follower.process.send_signal(signal.SIGINT)
        assert follower.process.wait(timeout=20) == 130
        assert follower.process.stderr is not None
        complaints = follower.process.stderr.read().splitlines()
        assert [line for line in complaints if not line.startswith("note: ")] == []
    finally:
        follower.process.kill()
        server.kill()


def test_following_without_a_server_is_an_error(
    services: Services, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistyped address must not wait for ever."""
    without_redis(services, monkeypatch)
    bootstrap.services.cache_clear()
    code, _, err = cli(capsys, "--follow")
    assert (code, "error[P301]" in err) == (5, True)
