"""A plugin that crashes is isolated after its first crash, and quarantined after its third."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from poller.db.record import dead_letter_rows
from poller.domain.failures import error_codes
from poller.domain.failures.dead_letter import Reason
from poller.domain.record.event_kinds import Kind
from tests.acceptance import troublemaker
from tests.acceptance.cluster import soon
from tests.acceptance.programs import descendants, is_running
from tests.acceptance.test_plugins import CRASHED, MATES, OTHERS, Deadly, add, ledger, striking

pytestmark = pytest.mark.timeout(180)

HOG = "allocate-p"


def collectors(deadly: Deadly) -> dict[str, dict[str, Any]]:
    """Return the output of `poller collectors` by name."""
    done = deadly.cluster.run("collectors", "--json")
    assert done.returncode == 0, done.stderr
    return {item["name"]: item for item in json.loads(done.stdout)["items"]}


def children(deadly: Deadly) -> list[int]:
    """Return the child processes of isolated collectors, of all workers."""
    return [
        pid for pid in descendants(deadly.up.pid) if b"poller.workers.guard.child" in command(pid)
    ]


def only_child(deadly: Deadly) -> int | None:
    pids = children(deadly)
    return pids[0] if len(pids) == 1 else None


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_crashing_plugin_is_isolated_then_quarantined_then_released(
    tmp_path: Path,
) -> None:
    """Only the first crash affects others; its targets have the reason; a hog ends at its limit."""
    env = {"POLLER_ISOLATED_COLLECTORS": troublemaker.PLODDER, "POLLER_ISOLATION_MEMORY_MB": "256"}
    with striking(tmp_path, "segfault", 4, 1, env=env) as deadly:
        add(deadly.cluster, {HOG: ""}, troublemaker.PLODDER)
        [isolated] = soon(lambda: deadly.events(Kind.COLLECTOR_ISOLATED), 30, "it was isolated")
        assert (
            "collector troublemaker (poller-troublemaker 1.0) runs in a process of its own"
            in isolated.message
        )
        since = time.time()
        [quarantined] = soon(
            lambda: deadly.events(Kind.COLLECTOR_QUARANTINED), 40, "it was quarantined"
        )
        assert "after 3 crashes" in quarantined.message
        assert "SIGSEGV" in quarantined.message
        assert len(deadly.deaths()) == 1

        engine = deadly.cluster.services.engine
        quarantine = dead_letter_rows.Wanted(reason=Reason.COLLECTOR_QUARANTINED)
        devices = {*MATES, "segfault"}
        letters = soon(
            lambda: _all_of(dead_letter_rows.listing(engine, quarantine), devices),
            30,
            "its targets are dead letters",
        )
        assert all("SIGSEGV" in named.letter.message for named in letters)
        rows = ledger(deadly.cluster, since)
        assert {row.error_code for name in OTHERS for row in rows[name]} <= {
            "",
            error_codes.LEASE_LOST,
        }
        assert {row.error_code for name in MATES for row in rows[name]} <= {
            "", error_codes.LEASE_LOST, error_codes.COLLECTOR_QUARANTINED,
        }  # fmt: skip
        assert {error_codes.COLLECTOR_DIED} <= {row.error_code for row in rows["segfault"]}
        pause = max(deadly.longest_pause_s(name) for name in OTHERS)
        assert pause <= 1.0 + deadly.lease_s + 2.0
        ended = [row.message for row in rows[HOG] if (row.outcome, row.error_code) == CRASHED]
        assert ended, "some may time out on a busy machine, not all"
        assert all("MemoryError" in message for message in ended)

        [explained] = json.loads(deadly.cluster.run("why", MATES[0], "--json").stdout)["items"]
        assert explained["cause"] == "quarantined"
        assert "collector troublemaker was quarantined" in explained["sentence"]

        shown = collectors(deadly)
        assert (shown[troublemaker.NAME]["state"], shown[troublemaker.NAME]["crashes"]) == (
            "quarantined",
            3,
        )
        assert shown[troublemaker.PLODDER]["state"] == "isolated"
        assert shown["snmp"]["state"] == "ok"

        (tmp_path / "gate").unlink()
        done = deadly.cluster.run("collectors", "release", troublemaker.NAME, "--wait", "30")
        print(done.stdout, done.stderr)
        assert done.returncode == 0, done.stderr
        assert f"requeued {len(devices)} dead letters: {len(devices)} answer" in done.stdout
        assert len(deadly.events(Kind.COLLECTOR_RELEASED)) == 1
        assert (
            soon(
                lambda: not dead_letter_rows.listing(engine, quarantine),
                10,
                "no dead letter is left",
            )
            is True
        )
        assert deadly.cluster.run("collectors", "release", troublemaker.NAME).returncode == 3
        deadly.cluster.checked()

        deadly.cluster.run("poll", HOG)  # with an open breaker no poll would start its process
        child = soon(lambda: only_child(deadly), 5, "one isolated collector has one process")
        os.kill(parent(child), signal.SIGKILL)
        soon(lambda: not is_running(child), 5, "a child does not outlive its worker")
        again = time.time()
        soon(lambda: deadly.all_good_since(again), deadly.lease_s + 10, "the next worker goes on")


def _all_of(letters: list[Any], names: set[str]) -> list[Any] | None:
    """Return the dead letters if they are those of the named devices."""
    return letters if {named.device for named in letters} == names else None
