"""`poller why` in situations that a cluster of real processes is in.

The other situations are in tests/integration/test_why.py, made by their state; a quarantine is in
test_isolation.py, a clock that was set back in test_clock.py.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from poller import errors
from poller.cli.up import embedded_server
from poller.db.inventory import devices
from poller.db.inventory.inventory_feed import Author
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.why.causes import Cause
from poller.domain.why.explanation import Explanation
from poller.service import target_explanation
from tests.acceptance.cluster import COLLECTOR, Cluster, soon, target
from tests.acceptance.programs import POLLER
from tests.acceptance.valkey import free_port
from tests.conftest import missing

pytestmark = pytest.mark.timeout(180)

#: Devices of the site that goes dark.
FAR = 8
OPEN_MAKES = {
    "POLLER_BREAKER_FAILURES": "3",
    "POLLER_BREAKER_CONFIRM_S": "1",
    "POLLER_SITE_LEAST": "6",
    "POLLER_RETRY_SHARE": "1",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A leader, two workers, and devices in many situations."""
    try:
        embedded_server.find_server()
    except errors.ConfigError as error:
        missing(str(error))
    with Cluster(tmp_path_factory.mktemp("why"), **OPEN_MAKES) as made:
        made.valkey.start()
        _add_devices(made)
        made.start_beat()
        made.start_worker()
        made.start_worker()
        soon(lambda: why(made, "well").cause is Cause.HEALTHY, 60, "a device is polled")
        yield made


def _add_devices(cluster: Cluster) -> None:
    silent = target(2.0, seconds=30.0, timeout_s=0.4)
    add(cluster, "well", target(1.0), site="near")
    add(cluster, "mate", target(1.0), site="near")
    add(cluster, "silent", silent, site="near")
    add(cluster, "rare", target(3600.0))
    add(cluster, "paused", target(1.0))
    add(cluster, "busy", target(60.0, seconds=1.8, timeout_s=2.0))
    add(cluster, "off", target(1.0), enabled=False)
    add(cluster, "moon", target(1.0), requires={"zone": "moon"})
    add(cluster, "wrong", TargetDraft(COLLECTOR, COLLECTOR, {"word": "?"}, interval_ms=1_000))
    closed = {"port": free_port(), "scheme": "http"}
    add(cluster, "shut", TargetDraft("http", "http", closed, interval_ms=1_000, timeout_ms=500))
    for number in range(FAR):
        add(cluster, f"far{number}", silent, site="far")


def add(cluster: Cluster, name: str, draft: TargetDraft, **fields: Any) -> None:
    device = DeviceDraft(name, "127.0.0.1", **fields)
    author = Author(notify=cluster.services.notify)
    devices.add(cluster.services.engine, device, [draft], author)


def why(cluster: Cluster, name: str) -> Explanation:
    [found] = target_explanation.explain_device(cluster.services, name)
    return found


def command(cluster: Cluster, word: str, **env: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the document of `poller why`."""
    done = subprocess.run(
        [*POLLER, "why", word, "--json"],
        env=cluster.environment(cluster.valkey.port, env),
        cwd=cluster.directory,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout, done.stderr
    body = json.loads(done.stdout)
    return done.returncode, body["items"][0] if "items" in body else body


def becomes(cluster: Cluster, name: str, cause: Cause, within_s: float = 40) -> str:
    """Wait for the cause, and return the sentence that the command then prints."""
    soon(lambda: why(cluster, name).cause is cause, within_s, f"{name} is {cause.value}")
    code, body = command(cluster, name)
    assert body["cause"] == cause.value, body["sentence"]
    assert code == (1 if cause.is_bad else os.EX_OK)
    return str(body["sentence"])


@pytest.mark.parametrize(
    ("name", "cause", "begin"),
    [
        ("well", Cause.HEALTHY, "Polled every 1 s; the last poll was good"),
        ("silent", Cause.BREAKER_OPEN, "Polled every 2 s; the last"),
        ("shut", Cause.DOWN, "Polled every 1 s; the last"),
        ("rare", Cause.NEVER_POLLED, "Polled every 1 h; not polled yet, next poll in"),
        ("off", Cause.DISABLED, "Not polled: the device is disabled."),
        ("moon", Cause.UNROUTABLE, "Not polled: no worker may take it, needs tag zone=moon; 2"),
        ("wrong", Cause.DEAD_LETTER, "Needs a person: the last"),
    ],
)
def test_a_state_of_a_target_is_told(cluster: Cluster, name: str, cause: Cause, begin: str) -> None:
    """Each is produced by the device, the inventory or the fleet."""
    if cause in (Cause.HEALTHY, Cause.BREAKER_OPEN):
        # Some of its time the target is in flight.
        found = soon(lambda: _as(cluster, name, cause), 40, f"{name} is {cause.value}")
        assert found.sentence.startswith(begin)
        assert cause is Cause.HEALTHY or "the site is up: 2 of 2 neighbours" in found.sentence
    else:
        assert becomes(cluster, name, cause).startswith(begin)


def test_a_dark_site_holds_its_targets(cluster: Cluster) -> None:
    """All but its canaries, which change, are held."""

    def told() -> str:
        for number in range(FAR):
            if _as(cluster, f"far{number}", Cause.SITE_DARK):
                code, body = command(cluster, f"far{number}")
                is_told = (code, body["cause"]) == (1, "site_dark")
                return str(body["sentence"]) if is_told else ""
        return ""

    sentence = soon(told, 60, "a target of the dark site is held")
    assert sentence.startswith("Held: site far has been dark for ")


def _as(cluster: Cluster, name: str, cause: Cause) -> Explanation | None:
    found = why(cluster, name)
    return found if found.cause is cause else None


def test_a_person_stops_a_target(cluster: Cluster) -> None:
    """A breaker opened by hand names the person, a disabled target its command."""
    assert cluster.run("breaker", "open", "paused", "--for", "10m").returncode == 0
    sentence = becomes(cluster, "paused", Cause.PAUSED)
    assert "opened its breaker by hand" in sentence
    assert "for another 9 m" in sentence
    word = f"paused/{COLLECTOR}"
    assert cluster.run("target", "edit", word, "--disable").returncode == 0
    assert becomes(cluster, "paused", Cause.DISABLED) == "Not polled: the target is disabled."
    _, body = command(cluster, word)
    assert body["hint"] == f"poller target edit {word} --enable"


def test_a_new_target_waits_for_the_leader(cluster: Cluster) -> None:
    """Without a wake-up the leader reads the inventory after up to half a minute."""

    def added() -> bool:
        name = f"new{len(seen)}"
        draft = target(3600.0)
        devices.add(cluster.services.engine, DeviceDraft(name, "127.0.0.1"), [draft])
        seen.append(why(cluster, name).cause)
        return seen[-1] is Cause.NOT_ON_BOARD

    seen: list[Cause] = []
    soon(added, 10, "a target is seen before the leader reads it")


def test_a_worker_that_stands_still_with_a_poll_is_named(cluster: Cluster) -> None:
    """First the poll takes too long; then its worker is lost, and its lease has to end."""
    name = soon(lambda: _holder(cluster, "busy"), 30, "a worker polls it")
    [holder] = [worker for worker in cluster.workers if worker.name == name]
    holder.freeze()
    assert _holder(cluster, "busy") == name, "the poll ended before its worker stood still"
    found = soon(lambda: _as(cluster, "busy", Cause.LONG_IN_FLIGHT), 10, "it takes too long")
    assert f" on {name}, longer than its time limit of 2 s; due again" in found.sentence
    sentence = becomes(cluster, "busy", Cause.WORKER_LOST, 20)
    assert f" on {name}, which was lost " in sentence
    holder.kill()
    cluster.workers.remove(holder)


def _holder(cluster: Cluster, name: str) -> str:
    """The worker that polls a target now; demands the poll where there is none."""
    found = why(cluster, name).facts
    if found.board and found.board.place in ("due", "urgent") and found.board.at_ms:
        cluster.services.board.demand([found.target_id])
        cluster.services.board.wake("demand")
    board = why(cluster, name).facts.board
    return board.flight.holder if board and board.flight else ""


def test_a_cluster_that_dies_says_what_is_missing(cluster: Cluster) -> None:
    """Batches wait, then there is no worker, no leader, no write, no database and no Redis."""
    for worker in cluster.workers:
        worker.freeze()
    soon(lambda: _as(cluster, "well", Cause.NOT_STARTED), 15, "its batch waits")
    sentence = becomes(cluster, "well", Cause.NO_WORKER, 25)
    assert sentence.startswith("No worker is running: nothing is being polled")

    for beat in cluster.beats:
        beat.kill()
    cluster.beats.clear()
    sentence = becomes(cluster, "well", Cause.LEADER_MISSING, 20)
    assert sentence.startswith("No leader: nothing is being scheduled; the last claim was ")

    cluster.valkey.client.config_set("maxmemory", 1)
    code, body = command(cluster, "well")
    assert (code, body["cause"]) == (5, "redis_refuses_writes")
    cluster.valkey.client.config_set("maxmemory", 0)

    away = f"postgresql://poller@127.0.0.1:{free_port()}/poller"
    code, body = command(cluster, "well", POLLER_DATABASE_URL=away)
    assert (code, body["cause"]) == (5, "database_away")
    assert body["sentence"].startswith("The database does not answer: ")

    cluster.valkey.kill()
    code, body = command(cluster, "well")
    assert (code, body["cause"]) == (5, "redis_away")
    assert (body["device"], body["state"]) == ("well", None)
