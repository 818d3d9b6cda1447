"""The rows that explain a target, on every backend."""

from __future__ import annotations

import pytest
from sqlalchemy.engine import Engine

from poller import errors
from poller.db.inventory import credential_rows, devices, explained_rows, sites
from poller.db.record import run_ledger, run_pages
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.run import Run
from poller.domain.scheduling.interval import Policy


def add(engine: Engine, name: str, site: str = "ams", **fields: object) -> int:
    """Add a device with the targets `ping` and `snmp`. Returns its id."""
    drafts = [TargetDraft(target, target, {"port": 1}) for target in ("snmp", "ping")]
    device = DeviceDraft(name, "192.0.2.1", site=site, **fields)  # type: ignore[arg-type]
    return devices.add(engine, device, drafts).id


def test_a_row_has_all_that_decides_about_a_target(engine: Engine) -> None:
    """The queue follows from the tags of site, device and target; the credential has its name."""
    credential_rows.add(engine, "lab", "community", "sealed")
    device_id = add(engine, "sw1", requires={"zone": "dmz"}, credential="lab")
    sites.edit(engine, "ams", {"site": "ams"})
    ping, snmp = explained_rows.of_device(engine, "sw1")
    assert (ping.target, snmp.target, snmp.device_id) == ("ping", "snmp", device_id)
    assert snmp.queue == "poll.snmp;site=ams;zone=dmz"
    assert (snmp.credential, snmp.credential_of) == ("lab", "device")
    assert (snmp.policy, snmp.enabled, snmp.options) == (Policy.FIXED, True, {"port": 1})
    assert explained_rows.of_device(engine, "sw1", "snmp") == [snmp]
    assert explained_rows.by_ids(engine, [snmp.target_id, 999]) == [snmp]


def test_an_unknown_name_is_an_error(engine: Engine) -> None:
    """A device and a target that do not exist are NotFound."""
    add(engine, "sw1")
    with pytest.raises(errors.NotFound):
        explained_rows.of_device(engine, "sw2")
    with pytest.raises(errors.NotFound):
        explained_rows.of_device(engine, "sw1", "http")


def test_neighbours_are_other_enabled_devices_of_the_site(engine: Engine) -> None:
    """Devices of another site, disabled ones and the device itself are none."""
    own = add(engine, "sw1")
    near = add(engine, "sw2")
    add(engine, "sw3", site="fra")
    add(engine, "sw4", enabled=False)
    found = explained_rows.neighbours(engine, "ams", own)
    assert list(found.targets) == [near]
    assert len(found.targets[near]) == 2
    assert not found.is_sample
    assert explained_rows.neighbours(engine, "", own) == explained_rows.NO_NEIGHBOURS


def test_a_large_site_has_a_sample_of_neighbours(engine: Engine) -> None:
    """The number of devices that are looked at is bounded."""
    own = add(engine, "sw")
    for number in range(explained_rows.NEIGHBOURS + 1):
        add(engine, f"sw{number}")
    found = explained_rows.neighbours(engine, "ams", own)
    assert (len(found.targets), found.is_sample) == (explained_rows.NEIGHBOURS, True)


def test_the_newest_runs_of_each_target_are_read_together(engine: Engine) -> None:
    """A target with many runs takes no room from another one."""
    rows = [Run(target, plan, Result.OK) for target in (1, 2) for plan in range(10, 20)]
    run_ledger.write(engine, [*rows, Run(3, 5, Result.FAILED)])
    found = run_pages.newest_of_each(engine, [1, 2, 3, 4], 3)
    plans = {target: [run.plan_ms for run in runs] for target, runs in found.items()}
    assert plans == {1: [19, 18, 17], 2: [19, 18, 17], 3: [5], 4: []}
