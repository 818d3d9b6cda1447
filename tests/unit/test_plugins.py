"""Plugins as pip installs them: whatever one of them does when it is loaded, it is named, and the others are there."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from poller import errors, plugins
from poller.collectors import registry, staleness
from poller.sinks import registry as sinks

COLLECTOR = """
from poller.collectors import api

class Plugin:
    name, api_version, credentials = "{name}", 1, ()
    class Options(api.Options):
        pass
    async def collect(self, poll):
        yield api.Reading("one", 1.0)
"""
SINK = """
class Plugin:
    name, api_version = "{name}", 1
    def __init__(self, stores): pass
    def write(self, samples): pass
    def close(self): pass
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put a distribution with one module and one entry point where Python finds it, as pip does."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)

    def installed(distribution: str, name: str, code: str, group: str = registry.GROUP, version: str = "1.0") -> None:
        module = distribution.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(code.replace("{name}", name))
        about = tmp_path / f"{module}-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (about / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}:Plugin\n")

    yield installed
    for module in set(sys.modules) - before:
        del sys.modules[module]


def broken(name: str) -> plugins.Broken:
    found = registry.load()
    assert {"snmp", "routeros"} <= set(found.collectors), "the others go on"
    [one] = [each for each in found.broken if each.name == name]
    return one


def test_an_installed_plugin_is_found(install: Install) -> None:
    install("acme-olt", "olt", COLLECTOR)
    found = registry.load()
    assert found.distributions["olt"] == "acme-olt 1.0"
    assert (found.api_versions["olt"], found.stated["olt"], found.deprecated) == (1, (1, 1), {})


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("class Odd(BaseException): pass\nraise Odd", "Odd"),
        ("def Plugin(:", "SyntaxError: "),
        ("", "AttributeError: "),
        ("class Plugin:\n    def __init__(self): raise OSError('no licence')", "OSError: no licence"),
    ],
    ids=["missing", "bug", "exit", "base", "syntax", "empty", "constructor"],
)
def test_one_that_fails_to_import_is_named_with_its_reason(install: Install, code: str, reason: str) -> None:
    """Whatever it raises."""
    install("acme-olt", "olt", code)
    found = broken("olt")
    assert (found.distribution, found.state) == ("acme-olt 1.0", "failed to import")
    assert found.reason.startswith(reason)


def test_a_name_that_two_have_stays_with_one_and_both_are_named(install: Install) -> None:
    """By distribution, not by chance."""
    install("zeta-olt", "olt", COLLECTOR)
    install("acme-olt", "olt", COLLECTOR)
    found = broken("olt")
    assert (found.distribution, found.state) == ("zeta-olt 1.0", "duplicate name")
    assert found.reason == "the name is taken by acme-olt 1.0"
    assert registry.load().distributions["olt"] == "acme-olt 1.0"


def test_a_built_in_name_cannot_be_taken(install: Install) -> None:
    install("acme-olt", "snmp", COLLECTOR)
    assert broken("snmp").reason.startswith("the name is taken by poller ")


def test_a_broken_one_does_not_hold_its_name(install: Install) -> None:
    install("acme-olt", "olt", "1 / 0")
    install("zeta-olt", "olt", COLLECTOR)
    assert registry.load().distributions["olt"] == "zeta-olt 1.0"


def test_another_api_version_says_which(install: Install) -> None:
    install("acme-olt", "olt", COLLECTOR.replace('"{name}", 1,', '"{name}", (8, 9),'))
    found = broken("olt")
    assert (found.state, found.hint) == ("other API version", "pip install --upgrade poller")
    assert found.reason == "it needs collector API 8 to 9, this poller serves 1"


def test_a_broken_contract_says_what_is_missing(install: Install) -> None:
    install("acme-olt", "olt", "class Plugin:\n    name = 'olt'\n    api_version = 1\n")
    found = broken("olt")
    assert found.state == "breaks the contract"
    assert found.reason == "it lacks Options, credentials, collect"


def test_an_import_that_hangs_is_named_while_it_lasts(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can end it, so somebody must be able to find it."""
    monkeypatch.setattr(plugins, "SLOW_S", 0.05)
    code = "import time\nwhile not any('olt' in text for text in SEEN): time.sleep(0.01)\n" + COLLECTOR
    install("acme-olt", "olt", "from poller.plugins import SEEN\n" + code)
    seen: list[str] = []
    monkeypatch.setattr(plugins, "SEEN", seen, raising=False)
    monkeypatch.setattr(logging.getLogger("poller.plugins"), "warning", lambda text, *what: seen.append(text % what))
    assert "olt" in registry.load().collectors
    assert any(text.startswith('collector "olt" (acme-olt 1.0) is still being imported after 0.05 s') for text in seen)


def test_sinks_come_in_by_the_same_door(install: Install) -> None:
    """Listed with state and reason; asked for by name, a broken one stops the worker."""
    install("acme-lines", "lines", SINK, sinks.GROUP)
    install("acme-odd", "odd", "raise SystemExit(1)", sinks.GROUP)
    install("zeta-lines", "lines", SINK, sinks.GROUP)
    install("acme-new", "new", SINK.replace('"{name}", 1', '"{name}", 7'), sinks.GROUP)
    found = sinks.survey()
    assert {"sql", "stream", "lines"} <= set(found.plugins)
    assert {each.name: each.state for each in found.broken} == {
        "lines": "duplicate name", "odd": "failed to import", "new": "other API version",
    }  # fmt: skip
    with pytest.raises(errors.InvalidSetting, match='sink "odd"') as raised:
        sinks.load(["odd"], stores=None)  # type: ignore[arg-type]
    assert raised.value.cause == "SystemExit: 1"
    assert [sink.name for sink in sinks.load(["lines"], stores=None)] == ["lines"]  # type: ignore[arg-type]


def test_staleness_sources_come_in_by_the_same_door(install: Install) -> None:
    install("acme-stale", "mine", "Plugin = len", staleness.GROUP)
    install("acme-worse", "worse", "Plugin = 3", staleness.GROUP)
    found = staleness.load()
    assert "mine" in found.functions
    assert [(each.name, each.reason) for each in found.broken] == [("worse", "it is no function")]


def test_what_a_plugin_prints_when_it_is_loaded_is_not_taken_for_our_answer(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    """`poller collectors --json` has readers."""
    install("acme-olt", "olt", "print('welcome to Acme')\n" + COLLECTOR)
    assert "olt" in registry.load().collectors
    assert capsys.readouterr() == ("", "welcome to Acme\n")


def test_what_is_left_of_a_broken_installation_harms_nobody(install: Install, tmp_path: Path) -> None:
    """A distribution without a name, as an interrupted pip leaves it, beside a whole one."""
    install("acme-olt", "olt", COLLECTOR)
    install("zeta-olt", "olt", COLLECTOR)
    (tmp_path / "zeta_olt-1.0.dist-info" / "METADATA").unlink()
    assert broken("olt").state == "duplicate name"
