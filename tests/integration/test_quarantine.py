"""Crashes count in the whole cluster; a quarantined collector is refused until it is released."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis
from pydantic import SecretStr

from poller.bootstrap import Services
from poller.bootstrap import services as bootstrap_services
from poller.cli import main
from poller.collectors import registry
from poller.collectors.credentials import Community
from poller.db import migrate
from poller.db.inventory import credential_rows, devices
from poller.db.record import dead_letter_rows
from poller.domain.failures import error_codes
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.quarantine import Cause, Incident, Trust
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.event_kinds import Kind
from poller.settings import Settings
from poller.state.board.board_values import ClaimLimits
from poller.state.cluster import event_stream as stream
from poller.state.cluster import quarantine_records
from poller.workers.batch.worker_poller import Poller

QUEUE = "poll.snmp"
ROOM = ClaimLimits(targets=10, batch_size=64, lease_ms=30_000)


@pytest.fixture
def services(
    home: Path, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> Services:
    """Services with one snmp target on the board; no device responds at its address."""
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    monkeypatch.setenv("POLLER_RETRY_TRIES", "0")
    bootstrap_services.cache_clear()
    made = Services(Settings())
    migrate.upgrade(made.engine)
    secret = Community(community=SecretStr("public"))
    sealed = made.keyring.seal(secret.to_json(), "ro", secret.kind)
    credential_rows.add(made.engine, "ro", secret.kind, sealed)
    target = TargetDraft(
        "t", "snmp", {"port": 9, "retries": 0}, interval_ms=60_000, timeout_ms=1_000
    )
    devices.add(made.engine, DeviceDraft("router", "127.0.0.1", credential="ro"), [target])
    made.board.place("", [(TargetSpec(1, 1, QUEUE, 60_000, 1_000), 1)], 1)
    return made


def crash(poller: Poller, times: int = 3) -> None:
    release = quarantine_records.Release("snmp", registry.load().distributions["snmp"])
    for at_ms in range(1, times + 1):
        poller.isolation.record(release, Incident(at_ms, Cause.CRASH, f"crash {at_ms}"))


def poll(services: Services, poller: Poller, token: str) -> None:
    services.board.demand([1])
    services.board.claim("", token, "", {QUEUE: 100}, ROOM)
    poller.poll(token, [1])


def kinds(services: Services) -> list[Kind]:
    """Return the kinds of the collector events, the oldest first."""
    kinds = []
    for entry in reversed(stream.newest(services.redis, services.keys, 50)):
        if entry.event and entry.event.kind.value.startswith("collector_"):
            kinds.append(entry.event.kind)
    return kinds


def test_a_release_requeues_targets_refused_a_moment_before(
    services: Services, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that is refused during the release must not stay a dead letter."""
    poller = Poller(services, "w@host")
    release = quarantine_records.release
    crash(poller)

    def refuse_and_release(*args: Any) -> Any:
        poll(services, poller, "a")
        return release(*args)

    monkeypatch.setattr(quarantine_records, "release", refuse_and_release)
    capsys.readouterr()  # the log
    assert main.run(["collectors", "release", "snmp"]) == 0
    assert "requeued 1 dead letter" in capsys.readouterr().out
    poller.close()


def test_a_release_after_redis_was_emptied_still_requeues_the_dead_letters(
    services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    """The records are gone; without the requeue the targets would wait for half an hour."""
    poller = Poller(services, "w@host")
    crash(poller)
    poll(services, poller, "a")
    services.redis.delete(services.keys.doubts)
    capsys.readouterr()  # the log
    assert main.run(["collectors", "release", "snmp"]) == 0
    assert "requeued 1 dead letter" in capsys.readouterr().out
    assert main.run(["collectors", "release", "routeros"]) == 3
    poller.close()


def test_every_worker_refuses_a_quarantined_collector_with_the_reason(
    services: Services,
) -> None:
    """There is one event for each change; the dead letter has the last crash."""
    first = Poller(services, "first@host")
    second = Poller(services, "second@host")
    crash(first)
    assert kinds(services) == [Kind.COLLECTOR_ISOLATED, Kind.COLLECTOR_QUARANTINED]
    poll(services, second, "a")
    [named] = dead_letter_rows.listing(
        services.engine, dead_letter_rows.Wanted(reason=Reason.COLLECTOR_QUARANTINED)
    )
    assert named.letter.error_code == error_codes.COLLECTOR_QUARANTINED
    assert "crash 3" in named.letter.message
    assert services.board.statuses([1])[1].reason is Reason.COLLECTOR_QUARANTINED
    first.close()
    second.close()


def test_a_released_collector_is_polled_from_the_next_batch_on(
    services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    """A worker refreshes before it refuses; dead letters of that reason are requeued."""
    poller = Poller(services, "w@host")
    crash(poller)
    poll(services, poller, "a")
    [(release, _)] = quarantine_records.read(services.redis, services.keys).items()
    assert release.distribution == services.registry.distributions["snmp"]
    capsys.readouterr()  # the log
    assert main.run(["collectors", "release", "snmp", "--dry-run"]) == 0
    assert "would release collector snmp (poller " in capsys.readouterr().out
    assert main.run(["collectors", "release", "snmp", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["requeued"] == 1
    [released] = printed["released"]
    assert (released["state"], released["crashes"]) == ("quarantined", 3)
    assert kinds(services)[-1] is Kind.COLLECTOR_RELEASED
    services.board.claim("", "b", "a", {QUEUE: 100}, ROOM)
    poller.poll("b", [1])
    assert services.board.statuses([1])[1].code == error_codes.UNREACHABLE
    poller.close()


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("release", "snmp"), 3, "nothing is held against collector snmp"),
        (("release", "snmpp"), 3, "did you mean snmp?"),
        (("release",), 2, "NAME"),
    ],
)
def test_a_release_of_nothing_is_an_error(
    services: Services,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    code: int,
    expected: str,
) -> None:
    """The error names the mistake, and nothing changes."""
    assert main.run(["collectors", *words]) == code
    assert expected in capsys.readouterr().err


def test_the_list_shows_incidents_of_all_releases(
    services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list has releases that are not installed here, too."""
    poller = Poller(services, "w@host")
    crash(poller, 1)
    capsys.readouterr()  # the log
    elsewhere = quarantine_records.Release("olt", "acme 2.0")
    incident = Incident(5, Cause.STUCK, "8 of its threads hang in one worker")
    quarantine_records.record(
        services.redis, services.keys, elsewhere, incident, poller.isolation._rules
    )
    assert main.run(["collectors", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    states = {item["name"]: item["state"] for item in printed["items"]}
    assert (states["snmp"], states["routeros"]) == (Trust.ISOLATED, Trust.OK)
    assert [(item["collector"], item["reason"]) for item in printed["doubted"]] == [
        ("olt", "8 of its threads hang in one worker"),
        ("snmp", "crash 1"),
    ]
    assert main.run(["collectors", "snmp"]) == 0
    assert "isolated" in capsys.readouterr().out
    poller.close()


def test_without_redis_the_list_says_that_incidents_are_unknown(
    services: Services, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The installed collectors are listed all the same."""
    monkeypatch.setenv("POLLER_REDIS_URL", "redis://127.0.0.1:1/0")
    bootstrap_services.cache_clear()
    assert main.run(["collectors"]) == 0
    out, err = capsys.readouterr()
    assert "snmp" in out
    assert "is not known" in err
