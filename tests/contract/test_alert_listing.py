"""Alerts, silences and parents are stored and listed alike on every database."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller import errors
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.alerts import (
    acknowledgements,
    alert_listing,
    alert_row,
    maintenance_rows,
    parent_rows,
)
from poller.db.alerts.alert_listing import AlertsWanted
from poller.db.alerts.alert_tables import alert_tellings, alerts, deliveries
from poller.db.alerts.maintenance_rows import MaintenanceQuery
from poller.db.inventory import devices, exports, imports
from poller.db.inventory.imports import Imported, Refused, Row
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.alerts.alert import Acknowledgement, Alert, AlertState, Subject
from poller.domain.alerts.maintenance import Maintenance
from poller.domain.alerts.rule import Severity
from poller.domain.inventory.draft import DeviceDraft

KIM = Actor("kim", ActorKind.CLI, "host-1")
SWITCH = Alert(
    rule="unreachable",
    severity=Severity.CRITICAL,
    subject=Subject(1, None, "sw1", "", "fra"),
    state=AlertState.FIRING,
    since_ms=1_000,
    seen_ms=1_500,
    fired_ms=2_000,
    labels={"ifAlias": "to core"},
)


def stored(engine: Engine, *made: Alert) -> list[int]:
    insert = sa.insert(alerts).returning(alerts.c.id)
    with sql.writing(engine) as conn:
        rows = [alert_row.to_values(alert) for alert in made]
        return [conn.execute(insert.values(row)).scalar_one() for row in rows]


@pytest.fixture
def ids(engine: Engine) -> list[int]:
    """An alert of sw1, one of its port, one of the dark site ber, and one that is over."""
    port = replace(SWITCH, rule="port", severity=Severity.WARNING, suppressed_by="alert:1")
    return stored(
        engine,
        SWITCH,
        replace(port, subject=Subject(1, 5, "sw1", "snmp", "fra", "ifName=eth0")),
        replace(SWITCH, rule="dark", subject=Subject(site="ber"), state=AlertState.PENDING),
        replace(SWITCH, state=AlertState.RESOLVED, resolved_ms=9_000),
    )


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (AlertsWanted(), [3, 2, 1, 0]),
        (AlertsWanted(states=["pending", "firing"]), [2, 1, 0]),
        (AlertsWanted(severities=["warning"]), [1]),
        (AlertsWanted(rules=["dark", "port"]), [2, 1]),
        (AlertsWanted(suppressed=True), [1]),
        (AlertsWanted(suppressed=False, states=["firing"]), [0]),
        (AlertsWanted(site="ber"), [2]),
        (AlertsWanted(sites=["fra"]), [3, 1, 0]),
        (AlertsWanted(device_ids=[1]), [3, 1, 0]),
        (AlertsWanted(device_ids=[1], target_ids=[6]), [3, 0]),
        (AlertsWanted(since_ms=9_001), [2, 1, 0]),
        (AlertsWanted(since_ms=9_000), [3, 2, 1, 0]),
        (AlertsWanted(limit=2), [3, 2]),
    ],
)
def test_a_query_selects_alerts(
    engine: Engine, ids: list[int], wanted: AlertsWanted, numbers: list[int]
) -> None:
    """All fields of a query must fit; the newest comes first."""
    assert [each.id for each in alert_listing.page(engine, wanted)] == [ids[n] for n in numbers]


def test_a_page_goes_on_where_the_one_before_ended(engine: Engine, ids: list[int]) -> None:
    """The key of a page is the id of its last alert."""
    rest = alert_listing.page(engine, AlertsWanted(before_id=ids[2]))
    assert [each.id for each in rest] == [ids[1], ids[0]]


def test_open_alerts_are_counted(engine: Engine, ids: list[int]) -> None:
    """By state, severity and what covers them; those that are over do not count."""
    assert sorted(alert_listing.counts(engine)) == [
        ("firing", "critical", "no", 1),
        ("firing", "warning", "alert", 1),
        ("pending", "critical", "no", 1),
    ]
    assert alert_listing.counts(engine, "ber") == [("pending", "critical", "no", 1)]
    assert [each.id for each in alert_listing.open_of_device(engine, 1)] == [ids[0], ids[1]]


def test_an_acknowledgement_comes_and_goes(engine: Engine, ids: list[int]) -> None:
    """It leaves rows in the history and the audit log; an alert that is over takes none."""
    given = Acknowledgement("kim", "on my way", 5_000, 50_000)
    entry = AuditEntry("alert.acknowledge", "unreachable sw1")
    assert acknowledgements.acknowledge(engine, ids[0], given, KIM, entry)
    found = alert_listing.by_id(engine, ids[0])
    assert found is not None
    assert (found.acknowledged, found.labels) == (given, {"ifAlias": "to core"})
    assert acknowledgements.unacknowledge(engine, ids[0], 6_000, KIM, entry)
    found = alert_listing.by_id(engine, ids[0])
    assert found is not None
    assert found.acknowledged is None
    changes = alert_listing.changes(engine, ids[0])
    assert [(each.kind, each.text, each.actor) for each in changes] == [
        ("acknowledged", "on my way", "kim"),
        ("unacknowledged", "", "kim"),
    ]
    assert len(audit_rows.listing(engine, AuditQuery(action="alert.acknowledge"))) == 2
    assert not acknowledgements.acknowledge(engine, ids[3], given, KIM, entry)
    assert alert_listing.changes(engine, ids[3]) == []


def test_tellings_have_their_delivery(engine: Engine, ids: list[int]) -> None:
    """Whom the platform told, and what the receiver answered; also if the delivery is pruned."""
    delivery = {
        **dict.fromkeys(("group_key", "lease_token"), ""),
        **dict.fromkeys(("due_ms", "lease_until_ms", "created_ms", "ended_ms"), 0),
        "key": "k",
        "route": "all",
        "receiver": "mail",
        "kind": "firing",
        "notice": {},
        "state": "sent",
        "attempts": 2,
        "answer": "250 ok",
    }
    telling = {"alert_id": ids[0], "route": "all", "kind": "firing", "told_ms": 7_000}
    with sql.writing(engine) as conn:
        made = conn.execute(sa.insert(deliveries).values(delivery).returning(deliveries.c.id))
        delivery_id = made.scalar_one()
        for number, each in enumerate((delivery_id, delivery_id + 1)):
            row = {**telling, "round": number, "delivery_id": each}
            conn.execute(sa.insert(alert_tellings).values(row))
    found = alert_listing.tellings(engine, ids[0])
    assert {(each.receiver, each.state, each.attempts, each.answer) for each in found} == {
        ("mail", "sent", 2, "250 ok"),
        ("", "", 0, ""),
    }


def test_a_maintenance_is_stored_and_ended(engine: Engine, ids: list[int]) -> None:
    """The current ones are those that are not over; a silence is in the history of its alert."""
    made = Maintenance(filter="site:fra", reason="rack", starts_ms=1_000, ends_ms=9_000)
    entry = AuditEntry("maintenance.add", "site:fra")
    first = maintenance_rows.add(engine, made, KIM, entry)
    silence = replace(made, filter="", alert_identity="x", created_ms=2_000)
    second = maintenance_rows.add(engine, silence, KIM, entry, ids[0])
    assert maintenance_rows.by_id(engine, first) == replace(made, id=first)
    assert [each.id for each in maintenance_rows.current(engine, 8_999)] == [first, second]
    assert maintenance_rows.current(engine, 9_000) == []
    [change] = alert_listing.changes(engine, ids[0])
    assert (change.kind, change.text, change.actor) == ("silenced", "rack", "kim")

    assert maintenance_rows.end(engine, second, 5_000, KIM, AuditEntry("maintenance.end", "x"))
    assert not maintenance_rows.end(engine, second, 5_000, KIM, AuditEntry("maintenance.end", "x"))
    assert [each.id for each in maintenance_rows.current(engine, 6_000)] == [first]
    every = maintenance_rows.page(engine, MaintenanceQuery(over=True), 6_000)
    assert [each.id for each in every] == [second, first]
    rest = maintenance_rows.page(engine, MaintenanceQuery(before_id=second), 6_000)
    assert [each.id for each in rest] == [first]
    assert maintenance_rows.by_id(engine, second + 1) is None


def added(engine: Engine, *names: str) -> None:
    for name in names:
        devices.add(engine, DeviceDraft(name, "192.0.2.1", site="fra"))


def parents(engine: Engine) -> dict[str, str]:
    return {each.device: each.parent for each in parent_rows.listing(engine)}


def test_a_device_gets_a_parent_and_loses_it(engine: Engine) -> None:
    """The parent is a field like any other, and goes with the parent's removal."""
    added(engine, "core", "sw1")
    assert devices.edit(engine, "sw1", DeviceDraft("sw1", parent="core")).parent == "core"
    assert devices.edit(engine, "sw1", DeviceDraft("sw1", address="192.0.2.2")).parent == "core"
    assert devices.edit(engine, "sw1", DeviceDraft("sw1", parent="")).parent == ""
    devices.add(engine, DeviceDraft("sw2", "192.0.2.3", parent="core"))
    assert parents(engine) == {"sw2": "core"}
    devices.remove(engine, ["core"])
    assert parents(engine) == {}


def test_a_chain_that_goes_round_is_refused(engine: Engine) -> None:
    """Nobody is reached through itself, over any number of devices."""
    added(engine, "a", "b", "c")
    devices.edit(engine, "a", DeviceDraft("a", parent="b"))
    devices.edit(engine, "b", DeviceDraft("b", parent="c"))
    with pytest.raises(errors.InvalidInput, match="c -> a -> b -> c") as refused:
        devices.edit(engine, "c", DeviceDraft("c", parent="a"))
    assert refused.value.field == "parent"
    with pytest.raises(errors.InvalidInput, match="c would be its own parent"):
        devices.edit(engine, "c", DeviceDraft("c", parent="c"))
    with pytest.raises(errors.UnknownName, match='"nobody"'):
        devices.edit(engine, "c", DeviceDraft("c", parent="nobody"))
    assert parents(engine) == {"a": "b", "b": "c"}


def test_a_file_gives_parents_in_any_order(engine: Engine) -> None:
    """A parent may stand below its children in the file, or be stored; a second import is quiet."""
    added(engine, "core")

    def row(name: str, parent: str | None) -> Row:
        return Row(DeviceDraft(name, "192.0.2.1", parent=parent))

    rows = [row("sw2", "sw1"), row("sw1", "core"), row("sw3", None)]
    imports.apply_import(engine, rows)
    assert parents(engine) == {"sw1": "core", "sw2": "sw1"}
    assert {each.source for each in parent_rows.listing(engine)} == {"import"}
    exported = {device.name: device.parent for device, _ in exports.every_device(engine)}
    assert exported == {"core": "", "sw1": "core", "sw2": "sw1", "sw3": ""}
    assert imports.apply_import(engine, rows, update=True).nothing
    changed = imports.apply_import(engine, [row("sw2", ""), row("sw3", "sw1")], update=True)
    assert changed == Imported(0, 2, 0, 0)
    assert parents(engine) == {"sw1": "core", "sw3": "sw1"}


def test_a_file_with_a_wrong_parent_changes_nothing(engine: Engine) -> None:
    """Unknown names and circles are told with their rows."""
    added(engine, "core")
    rows = [
        Row(DeviceDraft("sw1", "192.0.2.1", parent="nobody")),
        Row(DeviceDraft("sw2", "192.0.2.1", parent="sw3")),
        Row(DeviceDraft("sw3", "192.0.2.1", parent="sw2")),
    ]
    with pytest.raises(Refused) as refused:
        imports.apply_import(engine, rows)
    found = [(each.row, each.problem.field) for each in refused.value.misfits]
    assert found == [(0, "parent"), (1, "parent"), (2, "parent")]
    assert parents(engine) == {}
