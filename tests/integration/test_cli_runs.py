"""`poller runs`: the ledger for people and for programs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from poller import bootstrap
from poller.cli import main
from poller.db import migrate
from poller.db.inventory import devices, targets
from poller.db.record import run_ledger
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.run import Run

HOUR = 3_600_000


@pytest.fixture
def ledger(home: Path) -> dict[str, int]:
    """Two devices, three targets and four runs, one of a removed target. Returns ids by name."""
    engine = bootstrap.services().engine
    migrate.upgrade(engine)
    devices.add(
        engine,
        DeviceDraft("sw1", "192.0.2.1"),
        [TargetDraft("snmp", "snmp"), TargetDraft("extra", "snmp")],
    )
    devices.add(engine, DeviceDraft("sw2", "192.0.2.2"), [TargetDraft("snmp", "snmp")])
    names = (("sw1", "snmp"), ("sw1", "extra"), ("sw2", "snmp"))
    ids = {f"{device}/{name}": targets.show(engine, device, name).id for device, name in names}
    now = time.time_ns() // 1_000_000
    good = Run(
        ids["sw1/snmp"],
        now - 3 * HOUR,
        Result.OK,
        started_ms=now - 3 * HOUR + 40,
        finished_ms=now - 3 * HOUR + 290,
        samples=160,
        runner="w1@h",
        queue_ms=12,
        collect_ms=210,
        write_ms=9,
        token="7.abc.def",
    )
    lost = Run(
        ids["sw1/extra"],
        now - 2 * HOUR,
        Result.FAILED,
        2,
        error_code="lease_lost",
        message="no worker took \x1b[31mit",
        finished_ms=now,
    )
    refused = Run(ids["sw2/snmp"], now - HOUR, Result.REFUSED, error_code="options_invalid")
    run_ledger.write(engine, [good, lost, refused, Run(4711, now, Result.OK)])
    return ids


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main.run(["runs", *arguments, "--json"]) == 0
    return list(json.loads(capsys.readouterr().out)["items"])


def names(items: list[dict[str, Any]]) -> list[str]:
    return [f"{item['device']}/{item['target']}" for item in items]


def test_runs_are_listed_newest_first_and_filtered(
    ledger: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs are filtered by device, target, failure, age and number."""
    assert names(listed(capsys)) == ["/", "sw2/snmp", "sw1/extra", "sw1/snmp"]
    assert names(listed(capsys, "sw1")) == ["sw1/extra", "sw1/snmp"]
    assert names(listed(capsys, "sw1", "snmp")) == ["sw1/snmp"]
    assert names(listed(capsys, "--failed")) == ["sw2/snmp", "sw1/extra"]
    assert names(listed(capsys, "sw1", "--failed")) == ["sw1/extra"]
    assert names(listed(capsys, "sw1", "--since", "2h30m")) == ["sw1/extra"]
    assert names(listed(capsys, "--limit", "1")) == ["/"]


def test_a_run_shows_the_parts_of_its_time(
    ledger: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Durations are in seconds; a run that never started has neither lateness nor duration."""
    [good] = listed(capsys, "sw1", "snmp")
    times = {key: value for key, value in good.items() if key.endswith("_seconds")}
    assert times == {
        "late_seconds": 0.04,
        "took_seconds": 0.25,
        "queue_seconds": 0.012,
        "collect_seconds": 0.21,
        "write_seconds": 0.009,
    }
    assert (good["samples"], good["attempt"], good["runner"], good["lease"]) == (
        160,
        1,
        "w1@h",
        "7.abc.def",
    )
    [lost] = listed(capsys, "sw1", "extra")
    assert (lost["late_seconds"], lost["took_seconds"], lost["started"]) == (None, None, None)
    assert (lost["attempt"], lost["error_code"]) == (2, "lease_lost")


def test_the_piped_list_has_one_line_per_run_and_no_escape_codes(
    ledger: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    """A removed target is shown by its id."""
    assert main.run(["runs"]) == 0
    out = capsys.readouterr().out
    head, *lines = out.splitlines()
    assert head.split("\t") == [
        "planned",
        "target",
        "late",
        "took",
        "outcome",
        "code",
        "category",
        "samples",
        "try",
        "runner",
        "message",
    ]
    assert [line.split("\t")[1] for line in lines] == [
        "(removed)/4711",
        "sw2/snmp",
        "sw1/extra",
        "sw1/snmp",
    ]
    assert lines[3].split("\t")[2:5] == ["40 ms", "250 ms", "ok"]
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("sw9",), 3, 'no device named "sw9"'),
        (("sw1", "nothing"), 3, 'has no target named "nothing"'),
        (("sw1", "--since", "soon"), 2, '--since: "soon" is not a duration'),
        (("sw1", "--limit", "0"), 2, "limit"),
    ],
)
def test_a_wrong_name_or_duration_is_refused(
    ledger: dict[str, int],
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    """The error differs from an empty list."""
    assert main.run(["runs", *arguments]) == code
    assert said in capsys.readouterr().err


def test_an_empty_list_has_a_note(
    ledger: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The note goes to stderr, because it is no result."""
    assert main.run(["runs", "sw2", "--failed", "--since", "1m"]) == 0
    assert "no failed run is on record" in capsys.readouterr().err
