"""The device table: the longest pattern decides, and an operator's table wins over ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from poller import errors
from poller.collectors import registry
from poller.collectors.snmp import SnmpCollector
from poller.collectors.snmp.modules import device_table, module_catalog

OURS = """
base: [system, if_mib]
match:
  - {sysObjectID: 1.3.6.1.4.1.9.*, device: Cisco, modules: [entity_sensor]}
  - {sysObjectID: 1.3.6.1.4.1.9.1.*, device: Cisco router, modules: [ip_mib]}
  - {sysObjectID: 1.3.6.1.4.1.9.1.5, device: one model, modules: [ucd]}
  - {sysObjectID: 1.3.6.1.4.1.8072.3.2.10, device: Linux, modules: [host_resources]}
  - {sysObjectID: 1.3.6.1.4.1.8072.3.2.10, sysDescr: EdgeOS, device: Ubiquiti, modules: [ip_mib]}
"""
TABLE = device_table.parse(OURS, "ours.yml", None)


@pytest.mark.parametrize(
    ("sys_object_id", "device", "modules"),
    [
        ("1.3.6.1.4.1.9.6.1", "Cisco", ("system", "if_mib", "entity_sensor")),
        ("1.3.6.1.4.1.9.1.1861", "Cisco router", ("system", "if_mib", "ip_mib")),
        ("1.3.6.1.4.1.9.1", "Cisco router", ("system", "if_mib", "ip_mib")),
        ("1.3.6.1.4.1.9.1.5", "one model", ("system", "if_mib", "ucd")),
        ("1.3.6.1.4.1.9.1.5.1", "Cisco router", ("system", "if_mib", "ip_mib")),
        (".1.3.6.1.4.1.9.1.5", "one model", ("system", "if_mib", "ucd")),
        ("1.3.6.1.4.1.91.1", None, ("system", "if_mib")),
        ("", None, ("system", "if_mib")),
        ("0.0", None, ("system", "if_mib")),
    ],
)
def test_the_longest_pattern_that_matches_decides(
    sys_object_id: str, device: str | None, modules: tuple[str, ...]
) -> None:
    """Patterns compare whole numbers, not digits; an unknown device gets the base."""
    choice = TABLE.choose(sys_object_id)
    assert (choice.entry and choice.entry.device, choice.modules) == (device, modules)


def test_sys_descr_decides_between_equal_sys_object_ids() -> None:
    """Many vendors keep the sysObjectID of net-snmp."""
    linux, edge = (
        TABLE.choose("1.3.6.1.4.1.8072.3.2.10", text) for text in ("Linux box", "an edgeos 2.0")
    )
    assert linux.modules == ("system", "if_mib", "host_resources")
    assert edge.modules == ("system", "if_mib", "ip_mib")


def test_the_operators_table_wins_where_patterns_are_equal_and_adds_elsewhere() -> None:
    """A longer built-in pattern still wins over a shorter pattern of the operator."""
    own = (
        "match: [{sysObjectID: 1.3.6.1.4.1.9.*, modules: [mine]},"
        " {sysObjectID: 1.3.6.1.4.1.5.*, modules: [other]}]"
    )
    table = device_table.parse(own, "own.yml", TABLE)
    assert table.choose("1.3.6.1.4.1.9.6").modules == ("system", "if_mib", "mine")
    assert table.choose("1.3.6.1.4.1.5.6").modules == ("system", "if_mib", "other")
    assert table.choose("1.3.6.1.4.1.9.1.7").modules == ("system", "if_mib", "ip_mib")
    assert table.names() >= {"mine", "other", "ip_mib"}


def test_the_operators_base_replaces_ours() -> None:
    """The built-in entries stay in place."""
    table = device_table.parse("base: [system]", "own.yml", TABLE)
    assert table.choose("1.3.6.1.4.1.9.6").modules == ("system", "entity_sensor")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("match: [", "own.yml is not valid YAML"),
        ("- 1", "own.yml: must be a mapping"),
        ("", "own.yml: must be a mapping"),
        ("matches: []", 'own.yml: unknown key "matches"'),
        ("match: {}", "own.yml: match: must be a list"),
        ("base: []", "own.yml: base: names no module"),
        ("match: [{modules: [a]}]", 'own.yml: match entry 1: sysObjectID: "" is not a numeric OID'),
        (
            "match: [{sysObjectID: 1.3.x, modules: [a]}]",
            'match entry 1: sysObjectID: "1.3.x" is not a numeric OID',
        ),
        (
            "match: [{sysObjectID: 1.*.3, modules: [a]}]",
            'match entry 1: sysObjectID: "1.*.3" is not a numeric OID',
        ),
        ("match: [{sysObjectID: 1.3.*, modules: a}]", "match entry 1: modules: must be a list"),
        (
            "match: [{sysObjectID: 1.3.*, modules: [1]}]",
            "match entry 1: modules: must be a list of module names",
        ),
        ("match: [{sysObjectId: 1.3.*, modules: [a]}]", 'match entry 1: unknown key "sysObjectId"'),
        (
            "match: [{sysObjectID: 1.3.*, modules: [a]}, {sysObjectID: 1.3.*, modules: [b]}]",
            "own.yml: 1.3.* is there twice",
        ),
    ],
)
def test_a_mistake_in_a_table_is_refused(text: str, message: str) -> None:
    """The error names file, entry and field."""
    with pytest.raises(errors.ConfigError) as caught:
        device_table.parse(text, "own.yml", TABLE)
    assert message in caught.value.message


def test_a_table_that_changes_on_disk_is_read_again(tmp_path: Path) -> None:
    """A missing or unreadable file is named in the error."""
    path = tmp_path / "own.yml"
    with pytest.raises(errors.ConfigError, match=r"own\.yml"):
        device_table.load(str(path))
    path.write_text("base: [system]\n")
    assert device_table.load(str(path)).base == ("system",)
    path.write_text("base: [if_mib]\n")
    os.utime(path, ns=(1, 1))
    assert device_table.load(str(path)).base == ("if_mib",)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(errors.ConfigError, match="not UTF-8"):
        device_table.load(str(path))


def test_the_built_in_table_chooses_modules_that_exist() -> None:
    """Every name in the table is a built-in module, and every device gets the base."""
    assert device_table.built_in().names() <= set(module_catalog.built_in())
    assert device_table.choose("1.3.6.1.4.1.99999") == ("system", "if_mib")
    assert device_table.choose("1.3.6.1.4.1.14988.1") == (
        "system",
        "if_mib",
        "host_resources",
        "mikrotik",
    )


def test_the_table_of_a_target_chooses_for_it(tmp_path: Path) -> None:
    """An unknown module or a missing table on a worker raises OptionsUnusable."""
    path = tmp_path / "own.yml"
    path.write_text(
        "match: [{sysObjectID: 1.3.6.1.4.1.5.*, modules: [ucd]},"
        " {sysObjectID: 1.3.7.*, modules: [udc]}]"
    )
    choose = device_table.chooser(str(path))
    assert choose("1.3.6.1.4.1.5.1", "") == ("system", "if_mib", "ucd")
    with pytest.raises(errors.OptionsUnusable, match='unknown module "udc"'):
        choose("1.3.7.1", "")
    path.unlink()
    with pytest.raises(errors.OptionsUnusable, match=r"own\.yml"):
        choose("1.3.6.1.4.1.5.1", "")
    assert device_table.chooser("")("1.3.6.1.4.1.5.1", "") == ("system", "if_mib")


def test_a_target_with_a_wrong_table_is_not_saved(tmp_path: Path) -> None:
    """A missing file, an unknown module, or modules named beside the table are refused."""
    collectors = registry.Registry({"snmp": SnmpCollector()})
    path = tmp_path / "own.yml"
    with pytest.raises(errors.InvalidInput, match=r"own\.yml"):
        collectors.checked_options("snmp", {"match": str(path)})
    path.write_text("match: [{sysObjectID: 1.3.7.*, modules: [udc]}]")
    with pytest.raises(errors.InvalidInput, match='unknown module "udc"') as raised:
        collectors.checked_options("snmp", {"match": str(path)})
    assert raised.value.hint == "did you mean ucd? or name its file with config"
    with pytest.raises(errors.InvalidInput, match="nothing is left to choose"):
        collectors.checked_options("snmp", {"match": str(path), "modules": "system"})
    path.write_text("base: [system]")
    assert collectors.checked_options("snmp", {"match": str(path)}).match == str(path)  # type: ignore[attr-defined]
