"""Rules in SQL: their owners, their versions, and what each change leaves in the audit log."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller import errors
from poller.db import engine as sql
from poller.db import migrate
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.alerts import rule_rows
from poller.db.alerts.alert_tables import alert_rules
from poller.db.alerts.rules import owned_rules
from poller.db.alerts.rules.owned_rules import Replaced
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.alerts.rule import (
    DeviceUnreachable,
    Measure,
    NoData,
    Rule,
    Severity,
    Threshold,
)
from poller.domain.alerts.rules import builtin_rules
from poller.domain.inventory.target_filter import TargetFilter

KIM = Actor("kim", ActorKind.CLI, "host-1")
FILE = "file:/etc/poller/rules.yaml"
FULL = Rule(
    "full",
    Threshold("ifHCInOctets", Measure.PERCENT_OF_SPEED, above=80.0, clear=70.5),
    Severity.CRITICAL,
    TargetFilter(tags=("core",)),
    for_ms=300_000,
    text="{device} {series}",
    owner="kim",
)
SILENT = Rule("silent", NoData(3.0), owner="kim")


def actions(engine: Engine) -> list[tuple[str, str]]:
    rows = audit_rows.listing(engine, AuditQuery())[::-1]
    return [(row.action, row.subject) for row in rows]


def own_names(engine: Engine) -> list[str]:
    stored = rule_rows.listing(engine)
    return [each.name for each in stored if each.owner != builtin_rules.OWNER]


def test_a_new_database_has_the_built_in_rules(engine: Engine) -> None:
    """They are there once, however often the database is upgraded."""
    stored = rule_rows.load(engine)
    assert {replace(rule, id=0) for rule in stored.rules} == set(builtin_rules.rules())
    assert [rule.name for rule in stored.rules if rule not in stored.enabled] == ["interface-down"]
    migrate.upgrade(engine)
    assert rule_rows.load(engine) == stored


def test_an_upgrade_brings_unchanged_built_in_rules_up_to_date(engine: Engine) -> None:
    """A rule that people took over stays, and so does a rule that they disabled."""
    rule_rows.enable(engine, ["no-data"], False, KIM)
    rule_rows.edit(engine, "site-dark", replace(SILENT, name="site-dark"), KIM)
    with sql.writing(engine) as conn:
        old = sa.update(alert_rules).where(alert_rules.c.name == "no-data")
        conn.execute(old.values(body={"when": {"is": "no_data"}, "severity": "info"}))
    before = rule_rows.version(engine)
    migrate.upgrade(engine)
    renewed = rule_rows.show(engine, "no-data")
    assert (renewed.body, renewed.enabled) == (
        {"when": {"is": "no_data", "intervals": 10}, "severity": "warning"},
        False,
    )
    assert rule_rows.show(engine, "site-dark").owner == "kim"
    assert rule_rows.version(engine) == before + 1


def test_a_rule_is_added_changed_and_removed(engine: Engine) -> None:
    """Its id stays while it is changed; every change raises the version and is audited."""
    versions = [rule_rows.version(engine)]
    made = rule_rows.add(engine, FULL, KIM)
    assert made.rule is not None
    assert replace(made.rule, id=0) == FULL
    versions.append(rule_rows.version(engine))
    edited = rule_rows.edit(engine, "full", replace(FULL, name="fuller", for_ms=0), KIM)
    assert edited.rule is not None
    assert (edited.rule.id, edited.name, edited.rule.for_ms) == (made.rule.id, "fuller", 0)
    versions.append(rule_rows.version(engine))
    assert rule_rows.remove(engine, "fuller", KIM) is False
    versions.append(rule_rows.version(engine))
    assert versions == list(range(versions[0], versions[0] + 4))
    assert own_names(engine) == []
    assert actions(engine) == [
        ("rule.add", "full"),
        ("rule.edit", "full"),
        ("rule.remove", "fuller"),
    ]
    [_, edit, _] = audit_rows.listing(engine, AuditQuery())
    assert edit.before == {"name": "full", "for": "5m"}
    assert edit.after == {"name": "fuller"}


def test_an_id_is_never_used_again(engine: Engine) -> None:
    """Marks on the board name rules by their ids."""
    first = rule_rows.add(engine, FULL, KIM).rule
    rule_rows.remove(engine, "full", KIM)
    second = rule_rows.add(engine, FULL, KIM).rule
    assert first is not None
    assert second is not None
    assert second.id > first.id


def test_a_name_that_is_taken_is_refused(engine: Engine) -> None:
    """Nothing is changed then, not even the version."""
    rule_rows.add(engine, FULL, KIM)
    rule_rows.add(engine, SILENT, KIM)
    before = rule_rows.load(engine)
    with pytest.raises(errors.AlreadyExists):
        rule_rows.add(engine, FULL, KIM)
    with pytest.raises(errors.AlreadyExists):
        rule_rows.edit(engine, "silent", replace(SILENT, name="full"), KIM)
    assert rule_rows.load(engine) == before


def test_an_edit_for_an_old_version_is_refused(engine: Engine) -> None:
    """The second of two people who read the same rule learns of the first."""
    tag = rule_rows.add(engine, FULL, KIM).tag
    rule_rows.edit(engine, "full", replace(FULL, keep_ms=1_000), KIM, tag)
    with pytest.raises(errors.EditConflict):
        rule_rows.edit(engine, "full", FULL, KIM, tag)
    with pytest.raises(errors.EditConflict):
        rule_rows.remove(engine, "full", KIM, tag)


def test_an_unknown_name_gets_the_nearest_one(engine: Engine) -> None:
    """One misspelled name of several changes none of them."""
    with pytest.raises(errors.NotFound) as refused:
        rule_rows.enable(engine, ["no-data", "site-drak"], False, KIM)
    assert "site-dark" in refused.value.hint
    assert rule_rows.show(engine, "no-data").enabled


def test_a_built_in_rule_is_disabled_not_removed(engine: Engine) -> None:
    """It would come back with the next upgrade."""
    with pytest.raises(errors.InvalidInput) as refused:
        rule_rows.remove(engine, "no-data", KIM)
    assert refused.value.hint == "poller rules disable no-data"
    assert rule_rows.enable(engine, ["no-data", "site-dark"], False, KIM) == [
        "no-data",
        "site-dark",
    ]
    assert rule_rows.enable(engine, ["no-data"], False, KIM) == []
    assert rule_rows.show(engine, "no-data").owner == builtin_rules.OWNER


def test_a_changed_built_in_rule_comes_back_when_it_is_removed(engine: Engine) -> None:
    """The way back from an edit needs no upgrade."""
    rule_rows.edit(engine, "no-data", replace(SILENT, name="no-data"), KIM)
    assert rule_rows.remove(engine, "no-data", KIM) is True
    back = rule_rows.show(engine, "no-data").rule
    assert back is not None
    assert replace(back, id=0) == builtin_rules.by_name("no-data")


def test_a_file_brings_its_rules_and_takes_them_away(engine: Engine) -> None:
    """What the file no longer has is removed; rules of others stay as they are."""
    rule_rows.add(engine, SILENT, KIM)
    done = owned_rules.replace_owned(engine, FILE, [FULL], KIM)
    assert done == Replaced(added=("full",))
    before = rule_rows.load(engine)
    assert owned_rules.replace_owned(engine, FILE, [FULL], KIM) == Replaced(unchanged=1)
    assert rule_rows.load(engine) == before
    other = replace(FULL, name="other")
    done = owned_rules.replace_owned(engine, FILE, [replace(FULL, for_ms=0), other], KIM)
    assert done == Replaced(added=("other",), changed=("full",))
    done = owned_rules.replace_owned(engine, FILE, [other], KIM)
    assert done == Replaced(removed=("full",), unchanged=1)
    assert own_names(engine) == ["other", "silent"]
    assert actions(engine)[1:] == [
        ("rule.add", "full"),
        ("rule.add", "other"),
        ("rule.edit", "full"),
        ("rule.remove", "full"),
    ]


def test_a_file_cannot_take_the_rule_of_another_owner(engine: Engine) -> None:
    """The whole file is refused: its first rule is not stored either."""
    rule_rows.add(engine, SILENT, KIM)
    before = rule_rows.load(engine)
    with pytest.raises(errors.InvalidInput) as refused:
        owned_rules.replace_owned(engine, FILE, [FULL, SILENT], KIM)
    assert "belongs to kim" in refused.value.message
    assert rule_rows.load(engine) == before


def test_a_file_can_replace_a_built_in_rule(engine: Engine) -> None:
    """The built-in rule is back when the file no longer has it."""
    own = Rule("device-unreachable", DeviceUnreachable(), Severity.INFO)
    assert owned_rules.replace_owned(engine, FILE, [own], KIM).changed == ("device-unreachable",)
    assert rule_rows.show(engine, "device-unreachable").owner == FILE
    assert owned_rules.replace_owned(engine, FILE, [], KIM).removed == ("device-unreachable",)
    assert rule_rows.show(engine, "device-unreachable").owner == builtin_rules.OWNER


def test_a_rule_of_a_file_is_changed_in_its_file(engine: Engine) -> None:
    """A change beside the file would be undone by the next one; removing it is possible."""
    owned_rules.replace_owned(engine, FILE, [FULL], KIM)
    for change in (
        lambda: rule_rows.edit(engine, "full", FULL, KIM),
        lambda: rule_rows.enable(engine, ["full"], False, KIM),
    ):
        with pytest.raises(errors.InvalidInput) as refused:
            change()
        assert refused.value.hint.endswith("poller rules apply /etc/poller/rules.yaml")
    assert rule_rows.remove(engine, "full", KIM) is False


def test_a_rule_of_a_later_release_is_shown_and_not_used(engine: Engine) -> None:
    """Other rules are loaded all the same."""
    with sql.writing(engine) as conn:
        row = {"name": "new", "owner": "kim", "enabled": True, "version": 9, "updated_ms": 0}
        body = {"when": {"is": "moon_phase"}, "severity": "warning"}
        conn.execute(sa.insert(alert_rules).values(**row, body=body))
    stored = rule_rows.show(engine, "new")
    assert stored.rule is None
    assert 'no "moon_phase"' in stored.fault
    assert len(rule_rows.load(engine).rules) == len(builtin_rules.rules())


def test_there_are_only_so_many_rules(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers look at every rule; a filter is better than a rule for each device."""
    most = len(builtin_rules.rules()) + 1
    monkeypatch.setattr("poller.db.alerts.rules.rule_statements.MOST_RULES", most)
    rule_rows.add(engine, FULL, KIM)
    with pytest.raises(errors.InvalidInput, match="at most"):
        rule_rows.add(engine, SILENT, KIM)
    with pytest.raises(errors.InvalidInput, match="at most"):
        owned_rules.replace_owned(engine, FILE, [SILENT], KIM)
    assert own_names(engine) == ["full"]
