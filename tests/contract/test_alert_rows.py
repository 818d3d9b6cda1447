"""The alerts in SQL: terms, passes, and facts of devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.alerts import alert_facts, alert_rows
from poller.db.alerts.alert_rows import TermOver
from poller.db.alerts.alert_tables import alert_changes, alerts, device_parents
from poller.db.inventory import imports
from poller.db.tables import devices
from poller.domain.alerts.alert import Alert, AlertState, Subject
from poller.domain.alerts.flow import alert_change
from poller.domain.alerts.flow.keeping import Kept
from poller.domain.alerts.rule import Severity
from poller.domain.inventory.draft import DeviceDraft, TargetDraft

NOW_MS = 1_700_000_000_000
PENDING = Alert(
    rule="load",
    severity=Severity.WARNING,
    subject=Subject(device_id=1, target_id=2, device="r1", target="snmp", series="ifName=eth0"),
    state=AlertState.PENDING,
    since_ms=NOW_MS - 5,
    seen_ms=NOW_MS,
    value=12.5,
    labels={"ifAlias": "Uplink «Ä»"},
    text="r1 ifName=eth0: 12.5",
)
IDENTITY = PENDING.subject.identity("load")


def begin(engine: Engine, alert: Alert = PENDING) -> tuple[int, Alert]:
    """Store a pending alert in a new term."""
    term = alert_rows.take_term(engine, "beat", NOW_MS).number
    with alert_rows.writing(engine, term, NOW_MS) as rows:
        [stored] = rows.insert({alert.subject.identity(alert.rule): alert}).values()
    return term, stored


def fired(alert: Alert) -> Alert:
    return replace(alert, state=AlertState.FIRING, fired_ms=NOW_MS, suppressed_by="site:ams")


def write(engine: Engine, term: int, before: Alert, after: Alert) -> None:
    kept = Kept(written=[after], changes=list(alert_change.changes(before, after, NOW_MS)))
    with alert_rows.writing(engine, term, NOW_MS) as rows:
        rows.write(kept)


def count(engine: Engine, table: sa.Table) -> int:
    with sql.single_read(engine) as conn:
        return int(conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def test_an_alert_comes_back_as_it_was_stored(engine: Engine) -> None:
    """Every field of a new and of a changed alert is read as it was."""
    term, stored = begin(engine)
    assert stored == replace(PENDING, id=stored.id)
    assert alert_rows.open_alerts(engine) == [stored]
    write(engine, term, stored, fired(stored))
    assert alert_rows.open_alerts(engine) == [fired(stored)]


def test_an_alert_that_is_over_is_read_as_the_past(engine: Engine) -> None:
    """It is no longer open, and its identity may begin again."""
    term, stored = begin(engine)
    over = replace(fired(stored), state=AlertState.RESOLVED, resolved_ms=NOW_MS + 9, gone_ms=NOW_MS)
    write(engine, term, stored, over)
    assert alert_rows.open_alerts(engine) == []
    assert alert_rows.over_since(engine, NOW_MS) == [over]
    assert alert_rows.over_since(engine, NOW_MS + 10) == []
    _, again = begin(engine)
    assert again.id > stored.id


def test_a_dropped_alert_leaves_nothing(engine: Engine) -> None:
    """Neither the alert nor its history is left."""
    term, stored = begin(engine)
    write(engine, term, stored, replace(stored, suppressed_by="maintenance:1"))
    assert count(engine, alert_changes) == 1
    with alert_rows.writing(engine, term, NOW_MS) as rows:
        rows.write(Kept(dropped=[stored]))
    assert (count(engine, alerts), count(engine, alert_changes)) == (0, 0)


def test_a_leader_that_was_replaced_writes_nothing(engine: Engine) -> None:
    """The older term is refused before it writes, and the newer one goes on."""
    old, stored = begin(engine)
    term = alert_rows.take_term(engine, "other beat", NOW_MS + 7_000)
    assert (term.number, term.before_ms) == (old + 1, NOW_MS)
    with pytest.raises(TermOver):
        write(engine, old, stored, fired(stored))
    with pytest.raises(TermOver):
        alert_rows.confirm(engine, old, NOW_MS)
    assert alert_rows.open_alerts(engine) == [stored]
    alert_rows.confirm(engine, term.number, NOW_MS)
    write(engine, term.number, stored, fired(stored))
    assert alert_rows.open_alerts(engine) == [fired(stored)]


def test_a_pass_that_fails_writes_nothing(engine: Engine) -> None:
    """The new alert of a pass is not stored if the pass fails later."""
    term = alert_rows.take_term(engine, "beat", NOW_MS).number

    def fail() -> None:
        with alert_rows.writing(engine, term, NOW_MS) as rows:
            rows.insert({IDENTITY: PENDING})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert count(engine, alerts) == 0


def test_the_acknowledgement_of_a_person_is_left_alone(engine: Engine) -> None:
    """A pass that started before a person acknowledged does not take it back."""
    term, stored = begin(engine)
    note = {"by": "ana", "note": "on it", "at_ms": NOW_MS, "until_ms": NOW_MS + 1}
    with sql.writing(engine) as conn:
        conn.execute(sa.update(alerts).values(acknowledged=note))
    write(engine, term, stored, fired(stored))
    [read] = alert_rows.open_alerts(engine)
    assert read.acknowledged is not None
    assert read.acknowledged.by == "ana"


def test_thousands_of_alerts_are_stored_and_changed_in_one_pass(engine: Engine) -> None:
    """Every identity gets its own id, whatever the order."""
    new = {}
    for number in range(3000):
        alert = replace(PENDING, subject=Subject(device_id=number, device=f"r{number}"))
        new[alert.subject.identity(alert.rule)] = alert
    term = alert_rows.take_term(engine, "beat", NOW_MS).number
    with alert_rows.writing(engine, term, NOW_MS) as rows:
        stored = rows.insert(new)
        rows.write(Kept(written=[fired(alert) for alert in stored.values()]))
    read = {alert.subject.identity(alert.rule): alert for alert in alert_rows.open_alerts(engine)}
    assert read == {identity: fired(alert) for identity, alert in stored.items()}


@pytest.fixture
def chained(engine: Engine) -> dict[str, int]:
    """Devices `a` behind `b` behind `c`, and `lone`; their ids by name."""
    draft = TargetDraft("snmp", "snmp", {}, interval_ms=60_000, timeout_ms=5_000)
    rows = [
        imports.Row(DeviceDraft(name, "192.0.2.1", "ams" if name != "lone" else ""), [draft])
        for name in ("a", "b", "c", "lone")
    ]
    imports.apply_import(engine, rows)
    with sql.writing(engine) as conn:
        ids = {row.name: row.id for row in conn.execute(sa.select(devices.c.id, devices.c.name))}
        pairs: Sequence[tuple[str, str]] = (("a", "b"), ("b", "c"))
        for child, parent in pairs:
            values = {"device_id": ids[child], "parent_id": ids[parent], "source": "hand"}
            conn.execute(sa.insert(device_parents).values(values))
    return ids


def test_a_device_is_known_with_its_parents(engine: Engine, chained: dict[str, int]) -> None:
    """Facts, targets and the whole chain upwards are read, and nothing else."""
    known = alert_facts.known(engine, [chained["a"]])
    assert {device.name for device in known.values()} == {"a", "b", "c"}
    device = known[chained["a"]]
    assert (device.site, device.address, device.parent_id) == ("ams", "192.0.2.1", chained["b"])
    [target] = device.targets.values()
    assert (target.collector, target.interval_ms, target.enabled) == ("snmp", 60_000, True)
    assert alert_facts.devices_of(engine, [target.id, 9999]) == {target.id: chained["a"]}
    assert alert_facts.devices_of(engine, []) == {}


def test_the_parents_of_a_site_are_known(engine: Engine, chained: dict[str, int]) -> None:
    """Devices of a site, and every parent above them."""
    of_site = alert_facts.of_site(engine, "ams")
    assert sorted(of_site) == sorted(chained[name] for name in "abc")
    parents = alert_facts.parents(engine, [chained["a"]])
    assert parents == {chained["a"]: chained["b"], chained["b"]: chained["c"]}
    assert alert_facts.of_site(engine, "nowhere") == []


def test_new_alerts_that_the_database_refuses_hold_up_no_other(engine: Engine) -> None:
    """Those of a number that no column holds are found by halves; all others are stored."""
    new = {}
    for number in range(20):
        subject = replace(PENDING.subject, series=f"ifName=eth{number}")
        since_ms = 2**70 if number in (3, 11) else NOW_MS
        new[subject.identity("load")] = replace(PENDING, subject=subject, since_ms=since_ms)
    term = alert_rows.take_term(engine, "beat", NOW_MS).number
    with alert_rows.writing(engine, term, NOW_MS) as rows:
        stored = rows.insert(new)
    assert [alert.subject.series for alert, _ in rows.refused] == ["ifName=eth3", "ifName=eth11"]
    assert all(reason for _, reason in rows.refused)
    assert len(stored) == count(engine, alerts) == 18


def test_a_change_that_the_database_refuses_leaves_the_alert_as_it_was(engine: Engine) -> None:
    """Neither its row nor its history has any of it; the other alert of the pass is written."""
    other = replace(PENDING, subject=replace(PENDING.subject, series="ifName=eth1"))
    term, stored = begin(engine)
    with alert_rows.writing(engine, term, NOW_MS) as rows:
        [second] = rows.insert({other.subject.identity("load"): other}).values()
    bad, good = replace(fired(stored), text="half \ud800 a character"), fired(second)
    pairs = ((stored, bad), (second, good))
    changes = [each for pair in pairs for each in alert_change.changes(*pair, NOW_MS)]
    with alert_rows.writing(engine, term, NOW_MS) as rows:
        rows.write(Kept(written=[bad, good], changes=changes))
    assert [alert.id for alert, _ in rows.refused] == [stored.id]
    assert {alert.state for alert in alert_rows.open_alerts(engine) if alert.id == stored.id} == {
        AlertState.PENDING
    }
    with sql.single_read(engine) as conn:
        told = set(conn.execute(sa.select(alert_changes.c.alert_id)).scalars())
    assert told == {second.id}


def test_overdue_jobs_are_known(engine: Engine) -> None:
    """Without jobs there are none."""
    assert alert_facts.job_names(engine) == {}
