"""Flower is safe and shows the poll queues, however it is started."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from benchmarks import job_package
from poller.app import app
from poller.beat.jobs import job_messages
from poller.bootstrap import Services
from poller.db.jobs import job_history
from poller.domain.jobs.job_queue import queue_of
from poller.state.keys import Keys
from tests.conftest import wait_until

PROGRAM = [sys.executable, "-m", "poller", "flower"]
STOCK = [sys.executable, "-m", "celery", "-A", "poller", "flower"]
LOGIN = "ops:hunter22"
Start = Callable[..., str]


@pytest.fixture
def flower(home: Path, tmp_path: Path, valkey_url: str, free_port: int) -> Iterator[Start]:
    """Start Flower; returns its address once it responds."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*argv: str, **more: str) -> str:
        env = {
            **os.environ,
            "POLLER_REDIS_URL": valkey_url,
            "POLLER_FLOWER_PORT": str(free_port),
            **more,
        }
        with (tmp_path / "log").open("wb") as log:
            program = argv or PROGRAM
            process = subprocess.Popen(program, env=env, cwd=tmp_path, stdout=log, stderr=log)
        started.append(process)
        wait_until(lambda: _answers(f"http://127.0.0.1:{free_port}/"), "Flower", process)
        return f"http://127.0.0.1:{free_port}"

    yield start
    for process in started:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


def _answers(url: str) -> bool:
    try:
        return urllib.request.urlopen(url, timeout=5).status == 200
    except urllib.error.HTTPError as refusal:
        return refusal.code == 401


def _queues(url: str) -> set[str]:
    page = urllib.request.urlopen(f"{url}/broker", timeout=5).read().decode()
    return {urllib.parse.unquote(name) for name in re.findall(r'<tr id="([^"]+)"', page)}


def test_the_broker_page_shows_the_poll_queues(flower: Start, redis_client: redis.Redis) -> None:
    """Queues on the board at the start and later ones appear, before any worker has answered."""
    redis_client.sadd(Keys().queues, "poll.snmp", "poll.snmp;site=ams")
    url = flower()
    wait_until(
        lambda: _queues(url) == {"poller", "poll.snmp", "poll.snmp;site=ams"},
        "the queues of the board",
    )
    redis_client.sadd(Keys().queues, "poll.routeros")
    wait_until(lambda: "poll.routeros" in _queues(url), "a queue that came later")


def test_a_password_is_required_and_not_shown(flower: Start) -> None:
    """The password is not on the command line, and requests without it are refused."""
    url = flower(POLLER_FLOWER_BASIC_AUTH=LOGIN)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(url, timeout=5)
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if _readable(path)]
    assert not any(b"hunter22" in line for line in lines)


def _readable(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


def test_the_stock_command_is_as_safe(flower: Start) -> None:
    """`celery -A poller flower` listens on loopback only, asks for the password everywhere, and
    answers to its own names.
    """
    url = flower(*STOCK, POLLER_FLOWER_BASIC_AUTH=LOGIN, POLLER_FLOWER_HOSTS="flower.example")
    port = int(url.rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):  # another address of this machine
        socket.create_connection(("127.0.0.2", port), timeout=5)

    assert [_status(url, path) for path in ("/workers", "/metrics", "/healthcheck")] == [
        401,
        401,
        200,
    ]
    assert _status(url, "/metrics", Authorization=_basic(LOGIN)) == 200
    assert _status(url, "/healthcheck", Host="evil.example") == 421
    assert _status(url, "/healthcheck", Host="flower.example") == 200


def test_behind_a_trusted_proxy_flower_has_the_users_of_the_page(flower: Start) -> None:
    """Only the proxy names a user, whose role decides; a foreign peer or site is refused."""
    url = flower(
        POLLER_TRUSTED_PROXIES="127.0.0.1",
        POLLER_PROXY_USER_HEADER="X-Forwarded-User",
        POLLER_GROUP_ROLES="noc=viewer,net=operator",
        FLOWER_UNAUTHENTICATED_API="true",
    )
    viewer = {"X-Forwarded-User": "kim", "X-Forwarded-Groups": "noc"}
    operator = {"X-Forwarded-User": "lee", "X-Forwarded-Groups": "net"}
    assert _status(url, "/workers") == 401
    assert _status(url, "/healthcheck") == 200
    assert _status(url, "/workers", **viewer) == 200
    assert _status(url, "/workers", **{"X-Forwarded-User": "eve"}) == 403
    stop = "/api/worker/shutdown/none"
    assert _status(url, stop, "POST", **viewer) == 403
    assert _status(url, stop, "POST", **operator) == 404  # there is no such worker
    assert _status(url, stop, "POST", **operator, Origin="http://evil.example") == 403


def test_a_peer_that_is_no_proxy_cannot_name_a_user(flower: Start) -> None:
    """The header of an untrusted address is worth nothing."""
    url = flower(
        POLLER_TRUSTED_PROXIES="192.0.2.1",
        POLLER_PROXY_USER_HEADER="X-Forwarded-User",
        POLLER_GROUP_ROLES="*=admin",
    )
    forged = {"X-Forwarded-User": "kim", "X-Forwarded-For": "192.0.2.1", "X-Real-Ip": "192.0.2.1"}
    assert _status(url, "/workers", **forged) == 401


def _status(url: str, path: str, method: str = "GET", **headers: str) -> int:
    request = urllib.request.Request(url + path, headers=headers, method=method)
    try:
        return int(urllib.request.urlopen(request, timeout=5).status)
    except urllib.error.HTTPError as refusal:
        return refusal.code


def _basic(login: str) -> str:
    return "Basic " + base64.b64encode(login.encode()).decode()


@pytest.mark.parametrize("program", [PROGRAM, STOCK, [*STOCK, "--address=0.0.0.0"]])
def test_beyond_loopback_a_password_is_required(
    program: list[str], home: Path, tmp_path: Path
) -> None:
    """Flower can stop workers."""
    env = dict(os.environ)
    if program[-1] != "--address=0.0.0.0":
        env["POLLER_FLOWER_BIND"] = "0.0.0.0"
    done = subprocess.run(
        program, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 2
    assert (
        "flower_bind: 0.0.0.0 can be reached from outside, and Flower has no password"
        in done.stderr
    )


def test_job_tasks_have_readable_arguments(
    flower: Start, services: Services, tmp_path: Path
) -> None:
    """Flower shows which jobs were planned and which plan ran, and no result, token or setting."""
    package = tmp_path / "package"
    job_package.write(package, job_package.together(1, every_s=3600))
    queue = queue_of(job_package.DISTRIBUTION)
    url = flower(POLLER_FLOWER_BASIC_AUTH=LOGIN)
    with _worker(package, tmp_path) as process:
        with app.connection_for_write(services.settings.broker_url) as connection:
            producer = app.amqp.Producer(connection)
            job_messages.send(app, producer, [(queue, "together_0000")])
        wait_until(lambda: _tasks(url, "poller.run_job"), "a run", process)
        planned, run = (_tasks(url, name)[0] for name in ("poller.plan_jobs", "poller.run_job"))
    hour = job_history.runs(services.engine)[0].plan.plan_ms // 1000
    plan = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(hour))
    assert (planned["args"], planned["kwargs"]) == ("(['together_0000'])", "{}")
    assert (run["args"], run["kwargs"]) == (f"('together_0000', 'global', '{plan}')", "{}")
    wait_until(lambda: _tasks(url, "poller.run_job")[0]["state"] == "SUCCESS", "its end")
    shown = json.dumps(_tasks(url, "poller.run_job"))
    assert "rows_affected" not in shown
    assert not {"hunter22", services.settings.broker_url} & set(re.split(r"[\s\"']", shown))


@contextmanager
def _worker(package: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that has a package of jobs and sends events, as `celery worker -E` does."""
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((root, str(package)))}
    command = [*STOCK[:-1], "--quiet", "worker", "-E", "-n", "jobs@test"]
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(command, env=env, cwd=folder, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0, (folder / "worker.log").read_text()[-2000:]


def _tasks(url: str, name: str) -> list[dict[str, Any]]:
    """The tasks of a name that Flower knows."""
    request = urllib.request.Request(f"{url}/api/tasks?taskname={name}")
    request.add_header("Authorization", _basic(LOGIN))
    found: dict[str, dict[str, Any]] = json.load(urllib.request.urlopen(request, timeout=5))
    return list(found.values())
