"""The options of an SNMP target: accepted values, refused values, and what follows from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from poller import errors
from poller.collectors import registry
from poller.collectors.snmp import SnmpCollector
from poller.collectors.snmp.modules.module_model import Module, WalkParams, WalkSettings
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.options import SnmpOptions

REGISTRY = registry.Registry({"snmp": SnmpCollector()})


@pytest.mark.parametrize(
    ("raw", "field", "value"),
    [
        ({}, "modules", ()),  # chosen by the device table
        ({"modules": []}, "modules", ()),
        ({"modules": "if_mib, system"}, "modules", ("if_mib", "system")),
        ({"modules": ["system", "system"]}, "modules", ("system",)),
        ({"version": 1}, "version", "1"),
        ({"version": "v2c"}, "version", "2c"),
        ({"version": 2}, "version", "2c"),
        ({"timeout": "500ms"}, "timeout", 0.5),
        ({"timeout": 2}, "timeout", 2.0),
        ({"port": "1161"}, "port", 1161),
    ],
)
def test_accepted(raw: dict[str, Any], field: str, value: object) -> None:
    """Lists, comma-separated names and common spellings are accepted."""
    options = REGISTRY.options("snmp", raw)
    assert isinstance(options, SnmpOptions)
    assert getattr(options, field) == value


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"modules": "if_mbi"}, 'option "modules": unknown module "if_mbi"; did you mean if_mib?'),
        ({"port": 0}, 'option "port": Input should be greater than or equal to 1'),
        ({"version": 3}, 'option "version": SNMPv3 follows from the credential'),
        ({"version": "4"}, 'option "version"'),
        ({"timeout": "soon"}, '"soon" is not a duration'),
        ({"timeout": 0}, 'option "timeout"'),
        ({"retries": -1}, 'option "retries"'),
        ({"max_repetitions": 0}, 'option "max_repetitions"'),
        ({"prot": 161}, 'unknown option "prot"; did you mean port?'),
    ],
)
def test_refused(raw: dict[str, Any], text: str) -> None:
    """The error names the option and the reason."""
    with pytest.raises(errors.InvalidInput) as raised:
        REGISTRY.options("snmp", raw)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("raw", "params", "settings"),
    [
        ({}, WalkParams(), WalkSettings(50, 2, 1.5)),
        (
            {},
            WalkParams(4, 0, 5.0, allow_nonincreasing_oids=True),
            WalkSettings(4, 0, 5.0, allow_nonincreasing_oids=True),
        ),
        ({}, WalkParams(max_repetitions=1000), WalkSettings(200, 2, 1.5)),
        ({"timeout": 1.5, "max_repetitions": 20}, WalkParams(4, 7, 5.0), WalkSettings(20, 7, 1.5)),
        ({"retries": 2}, WalkParams(4, 7, 5.0), WalkSettings(4, 2, 5.0)),
    ],
)
def test_options_win_over_walk_parameters_of_modules(
    raw: dict[str, Any], params: WalkParams, settings: WalkSettings
) -> None:
    """An option that was given wins, even if it equals the default."""
    options = REGISTRY.options("snmp", raw)
    assert isinstance(options, SnmpOptions)
    assert options.walk_settings(params) == settings


def test_a_module_of_the_flat_format_can_need_version_1() -> None:
    """A module's version 1 counts unless the target's options name a version."""
    old = ModuleSet((Module("a", version=1),))
    for raw, version in (({}, "1"), ({"version": "2c"}, "2c")):
        options = REGISTRY.options("snmp", raw)
        assert isinstance(options, SnmpOptions)
        assert options.login(None, old).version == version
        assert options.login(None, ModuleSet(())).version == "2c"


@pytest.mark.parametrize(
    ("raw", "field", "value"),
    [
        ({"config": "/etc/poller/snmp.yml"}, "config", ("/etc/poller/snmp.yml",)),
        ({"config": ["/a/../b.yml", "/b.yml"]}, "config", ("/b.yml",)),
        ({"config": "/a.yml, /b.yml"}, "config", ("/a.yml", "/b.yml")),
        ({"config": "/b.yml", "modules": "whatever"}, "modules", ("whatever",)),
        ({"config": "/b.yml", "auth": "public_v2"}, "auth", "public_v2"),
    ],
)
def test_validation_reads_no_file(raw: dict[str, Any], field: str, value: object) -> None:
    """`check` reads files when a target is saved; a worker may get a file later."""
    assert getattr(REGISTRY.options("snmp", raw), field) == value


def test_a_relative_path_becomes_absolute() -> None:
    """A worker has another current directory than the command that adds the target."""
    options = REGISTRY.options("snmp", {"config": "snmp.yml"})
    assert isinstance(options, SnmpOptions)
    assert options.config == (str(Path.cwd() / "snmp.yml"),)


def test_the_older_name_of_the_exact_engine_is_accepted() -> None:
    """Targets that were stored with `engine: pysnmp` keep working."""
    for name in ("exact", "pysnmp"):
        options = REGISTRY.options("snmp", {"engine": name, "context": "inner"})
        assert isinstance(options, SnmpOptions)
        assert options.engine == "exact"
