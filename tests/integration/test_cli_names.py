"""The name `DEVICE/TARGET`, which every list prints, works in every command."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis

from poller import bootstrap, event_publisher
from poller.cli import main
from poller.db import migrate
from poller.db.inventory import devices, targets
from poller.db.record import dead_letter_rows, run_ledger
from poller.domain.failures.dead_letter import Letter, Reason
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.run import Run


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def items(self) -> list[dict[str, Any]]:
        return list(json.loads(self.out)["items"])


Cli = Callable[..., Done]


@pytest.fixture
def cli(
    home: Path,
    valkey_url: str,
    redis_client: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Cli]:
    """Two targets, each with a run, an event and a dead letter; an event of a removed device."""
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    services = bootstrap.services()
    migrate.upgrade(services.engine)
    drafts = [TargetDraft("snmp", "snmp"), TargetDraft("extra", "snmp")]
    devices.add(services.engine, DeviceDraft("sw-1", "192.0.2.1", site="ams"), drafts)
    now = time.time_ns() // 1_000_000
    for target in targets.of_device(services.engine, "sw-1"):
        run_ledger.write(services.engine, [Run(target.id, now, Result.OK)])
        letter = Letter(
            target.id, now, Reason.AUTH_FAILED, "auth_failed", "refused", now, now, now, 2
        )
        dead_letter_rows.write(services.engine, [letter])
        event_publisher.emit(
            services, [Event(now, Kind.BREAKER_OPENED, target.name, "sw-1", target.name, target.id)]
        )
    event_publisher.emit(services, [Event(now, Kind.DEVICE_WENT_DOWN, "old", "gone", "snmp")])

    def run(*arguments: str) -> Done:
        capsys.readouterr()
        return Done(main.run(arguments), *capsys.readouterr())

    yield run
    services.engine.dispose()


@pytest.mark.parametrize(
    "words", [("runs",), ("events", "--device"), ("deadletter", "list", "--device")]
)
def test_a_device_is_all_of_its_targets_and_a_slash_chooses_one(
    cli: Cli, words: tuple[str, ...]
) -> None:
    """Every command that reads targets accepts a device, or a device and a target."""
    assert {item["target"] for item in cli(*words, "sw-1", "--json").items} == {"snmp", "extra"}
    assert [item["target"] for item in cli(*words, "sw-1/extra", "--json").items] == ["extra"]


def test_commands_that_change_a_target_take_the_same_name(cli: Cli) -> None:
    """The two parts as separate arguments still work."""
    assert cli("target", "edit", "sw-1/snmp", "--disable").out == "changed target sw-1/snmp\n"
    assert cli("target", "edit", "sw-1", "snmp", "--enable").out == "changed target sw-1/snmp\n"
    assert cli("target", "rm", "sw-1/extra", "--yes").out == "removed target sw-1/extra\n"


def test_a_poll_and_its_readings_take_the_same_name(cli: Cli) -> None:
    """The board and the readings are empty, but the target is found."""
    assert 'target "sw-1/extra" is not on the board' in cli("poll", "sw-1/extra").err
    assert cli("readings", "sw-1/extra").code == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("runs", "sw-1/extra", "snmp"), 2, '"sw-1/extra" and "snmp" are two targets'),
        (("readings", "sw-1/extra", "--target", "snmp"), 2, "are two targets"),
        (("poll", "sw-1/"), 2, "leave out the slash: sw-1"),
        (("runs", "sw-1/nosuch"), 3, 'no target named "nosuch"'),
        (("device", "show", "sw-1/snmp"), 2, 'leave out "/snmp": poller device show sw-1\n'),
        (("target", "list", "sw-1/snmp"), 2, 'leave out "/snmp": poller target list sw-1\n'),
        (
            ("target", "edit", "sw-1", "--disable"),
            2,
            'which target of "sw-1"?\n  try: poller target list sw-1\n',
        ),
        (("target", "rm", "sw-1/snmp", "extra"), 2, "are two targets"),
        (("events", "--device", "sw-2"), 3, "did you mean sw-1?"),
        (("events", "--device", "sw-1/snnp"), 3, 'no target named "snnp"'),
        (("events", "--device", "sw-2", "--follow"), 3, "did you mean sw-1?"),
        (("deadletter", "list", "--device", "sw-2"), 3, "did you mean sw-1?"),
        (("deadletter", "list", "--site", "amz"), 3, "did you mean ams? (or: poller site list)"),
        (
            ("deadletter", "list", "--collector", "snmpp"),
            3,
            "did you mean snmp? (or: poller collectors)",
        ),
        (("deadletter", "drop", "--collector", "nosuch"), 3, 'no collector named "nosuch"'),
    ],
)
def test_an_impossible_name_is_refused_with_a_hint(
    cli: Cli, words: tuple[str, ...], code: int, said: str
) -> None:
    """The hint shows what to write instead; stdout stays empty."""
    done = cli(*words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_events_of_a_removed_device_can_be_listed(cli: Cli) -> None:
    """A name that occurs in events is no typing error, even if a filter leaves no event."""
    assert [item["message"] for item in cli("events", "--device", "gone", "--json").items] == [
        "old"
    ]
    none = cli("events", "--device", "gone", "--kind", "breaker_closed")
    assert (none.code, none.err) == (0, "no event is on record, or nothing matches\n")


def test_existing_names_without_dead_letters_are_no_error(cli: Cli) -> None:
    """An installed collector and a site with devices give an empty list."""
    for words in (("--collector", "routeros"), ("--site", "ams", "--reason", "open_too_long")):
        done = cli("deadletter", "list", *words)
        assert (done.code, done.err) == (0, "no dead letter matches\n")
