"""Plugins as pip installs them: a broken one is reported by name, and the others load."""

from __future__ import annotations

import logging
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from poller import errors, plugins
from poller.collectors import registry, staleness_registry
from poller.sinks import registry as sinks
from poller.sinks.api import Stores

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

    def installed(
        distribution: str, name: str, code: str, group: str = registry.GROUP, version: str = "1.0"
    ) -> None:
        module = distribution.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(code.replace("{name}", name))
        about = tmp_path / f"{module}-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        )
        (about / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}:Plugin\n")

    yield installed
    for module in set(sys.modules) - before:
        del sys.modules[module]


def broken(name: str) -> plugins.Broken:
    """The broken plugin of this name; the others are loaded."""
    loaded = registry.load()
    assert {"snmp", "routeros"} <= set(loaded.collectors)
    [one] = [each for each in loaded.broken if each.name == name]
    return one


def test_an_installed_plugin_is_found(install: Install) -> None:
    """Its distribution and API version are listed."""
    install("acme-olt", "olt", COLLECTOR)
    found = registry.load()
    assert found.distributions["olt"] == "acme-olt 1.0"
    assert (found.api_versions["olt"], found.stated["olt"], found.deprecated) == (1, (1, 1), {})


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            "import no_such_module_anywhere",
            "ModuleNotFoundError: No module named 'no_such_module_anywhere'",
        ),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("class Odd(BaseException): pass\nraise Odd", "Odd"),
        ("def Plugin(:", "SyntaxError: "),
        ("", "AttributeError: "),
        (
            "class Plugin:\n    def __init__(self): raise OSError('no licence')",
            "OSError: no licence",
        ),
    ],
    ids=["missing", "bug", "exit", "interrupt", "base", "syntax", "empty", "constructor"],
)
def test_a_plugin_that_fails_to_import_is_reported_with_the_reason(
    install: Install, code: str, reason: str
) -> None:
    """Any exception is a reason, SystemExit and KeyboardInterrupt too."""
    install("acme-olt", "olt", code)
    found = broken("olt")
    assert (found.distribution, found.state) == ("acme-olt 1.0", "failed to import")
    assert found.reason.startswith(reason)


def test_of_two_plugins_with_one_name_the_first_distribution_wins(install: Install) -> None:
    """The broken one names the distribution that has the name."""
    install("zeta-olt", "olt", COLLECTOR)
    install("acme-olt", "olt", COLLECTOR)
    found = broken("olt")
    assert (found.distribution, found.state) == ("zeta-olt 1.0", "duplicate name")
    assert found.reason == "the name is taken by acme-olt 1.0"
    assert registry.load().distributions["olt"] == "acme-olt 1.0"


def test_a_built_in_name_cannot_be_taken(install: Install) -> None:
    """The built-in plugin stays, whatever the name of the other distribution."""
    install("acme-olt", "snmp", COLLECTOR)
    assert broken("snmp").reason.startswith("the name is taken by poller ")


def test_a_broken_plugin_does_not_take_a_name(install: Install) -> None:
    """A working plugin of the same name is loaded."""
    install("acme-olt", "olt", "1 / 0")
    install("zeta-olt", "olt", COLLECTOR)
    assert registry.load().distributions["olt"] == "zeta-olt 1.0"


def test_an_unsupported_api_version_is_reported(install: Install) -> None:
    """The reason names the needed and the served versions."""
    install("acme-olt", "olt", COLLECTOR.replace('"{name}", 1,', '"{name}", (8, 9),'))
    found = broken("olt")
    assert (found.state, found.hint) == ("other API version", "pip install --upgrade poller")
    assert found.reason == "it needs collector API 8 to 9, this poller serves 1"


def test_a_broken_contract_is_reported(install: Install) -> None:
    """The reason lists the missing attributes."""
    install("acme-olt", "olt", "class Plugin:\n    name = 'olt'\n    api_version = 1\n")
    found = broken("olt")
    assert found.state == "breaks the contract"
    assert found.reason == "it lacks Options, credentials, collect"


def test_a_hanging_import_is_logged_while_it_lasts(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log line names plugin and distribution."""
    monkeypatch.setattr(plugins, "SLOW_S", 0.05)
    code = (
        "import time\nwhile not any('olt' in text for text in SEEN): time.sleep(0.01)\n" + COLLECTOR
    )
    install("acme-olt", "olt", "from poller.plugins import SEEN\n" + code)
    seen: list[str] = []
    monkeypatch.setattr(plugins, "SEEN", seen, raising=False)
    monkeypatch.setattr(
        logging.getLogger("poller.plugins"), "warning", lambda text, *what: seen.append(text % what)
    )
    assert "olt" in registry.load().collectors
    assert any(
        text.startswith('collector "olt" (acme-olt 1.0) is still being imported after 0.05 s')
        for text in seen
    )


def test_sinks_are_loaded_in_the_same_way(install: Install) -> None:
    """Broken sinks are listed; a broken sink in the settings is an error."""
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
    stores = Stores(engine=None, redis=None, settings=None)
    assert [made.name for made in sinks.load(["lines"], stores)] == ["lines"]


def test_staleness_sources_are_loaded_in_the_same_way(install: Install) -> None:
    """An object that cannot be called breaks the contract."""
    install("acme-stale", "good", "Plugin = len", staleness_registry.GROUP)
    install("acme-worse", "worse", "Plugin = 3", staleness_registry.GROUP)
    found = staleness_registry.load()
    assert "good" in found.functions
    assert [(each.name, each.reason) for each in found.broken] == [("worse", "it is no function")]


def test_prints_of_a_plugin_during_its_import_go_to_stderr(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output of `poller collectors --json` stays valid JSON."""
    install("acme-olt", "olt", "print('welcome to Acme')\n" + COLLECTOR)
    assert "olt" in registry.load().collectors
    assert capsys.readouterr() == ("", "welcome to Acme\n")


def test_the_rest_of_an_interrupted_installation_is_ignored(
    install: Install, tmp_path: Path
) -> None:
    """An interrupted pip leaves a distribution without a name."""
    install("acme-olt", "olt", COLLECTOR)
    install("zeta-olt", "olt", COLLECTOR)
    (tmp_path / "zeta_olt-1.0.dist-info" / "METADATA").unlink()
    assert broken("olt").state == "duplicate name"


def test_ctrl_c_during_an_import_interrupts_the_command(install: Install) -> None:
    """It is not a fault of the plugin, and the signal handler is restored."""
    before = signal.getsignal(signal.SIGINT)
    install("acme-olt", "olt", "import signal\nsignal.raise_signal(signal.SIGINT)")
    with pytest.raises(KeyboardInterrupt):
        staleness_registry.load(plugins.points(registry.GROUP)[0])
    assert signal.getsignal(signal.SIGINT) is before


def test_plugins_can_be_loaded_in_a_thread(install: Install) -> None:
    """Signals reach the main thread only, so a KeyboardInterrupt is the plugin's."""
    install("acme-olt", "olt", "raise KeyboardInterrupt", staleness_registry.GROUP)
    found: list[staleness_registry.Sources] = []
    thread = threading.Thread(target=lambda: found.append(staleness_registry.load()))
    thread.start()
    thread.join()
    assert [each.reason for each in found[0].broken] == ["KeyboardInterrupt"]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (b"fine = x:Plugin\nno equals sign\n", 'the line "no equals sign" has no ='),
        (b"fine = x:Plugin\n\xff\xfe = x:y\n", "UnicodeDecodeError: "),
    ],
    ids=["line", "bytes"],
)
def test_an_unreadable_list_of_entry_points_breaks_its_distribution_only(
    install: Install, tmp_path: Path, lines: bytes, why: str
) -> None:
    """The reader of Python fails for all distributions."""
    for group in (registry.GROUP, sinks.GROUP, staleness_registry.GROUP):
        install("zeta-olt", "olt", SINK, group)
        install("acme-bad", "bad", "", group)
        (tmp_path / "acme_bad-1.0.dist-info" / "entry_points.txt").write_bytes(
            f"[{group}]\n".encode() + lines
        )
        found, [bad] = plugins.points(group)
        assert "olt" in {point.name for point in found}
        assert {"poller", "zeta-olt"} <= {point.dist.name for point in found if point.dist}
        assert (bad.name, bad.distribution, bad.state) == (
            "acme-bad",
            "acme-bad 1.0",
            "unreadable entry points",
        )
        assert bad.reason.startswith("its entry_points.txt cannot be read: " + why)
        for module in ("zeta_olt", "acme_bad"):
            shutil.rmtree(tmp_path / f"{module}-1.0.dist-info")


def test_an_unreadable_distribution_without_our_group_is_not_reported(install: Install) -> None:
    """Its entry points are of other programs."""
    install("acme-bad", "bad", "", "console_scripts]\nno equals sign\n[other")
    found, unreadable = plugins.points(registry.GROUP)
    assert {"snmp", "routeros"} <= {point.name for point in found}
    assert unreadable == []


def test_unreadable_sinks_and_staleness_sources_are_reported(install: Install) -> None:
    """The distribution is listed as broken, and the error of an unknown sink names it."""
    install("acme-bad", "bad", "", f"{sinks.GROUP}]\nno equals sign\n[{staleness_registry.GROUP}")
    assert [each.name for each in sinks.survey().broken] == ["acme-bad"]
    assert [each.name for each in staleness_registry.load().broken] == ["acme-bad"]
    with pytest.raises(errors.InvalidSetting, match='unknown sink "bad"') as raised:
        sinks.load(["bad"], stores=None)  # type: ignore[arg-type]
    assert raised.value.cause.startswith("acme-bad 1.0: its entry_points.txt cannot be read")


def test_of_two_distributions_of_one_name_the_first_counts(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same holds while another distribution is unreadable."""
    install("acme-bad", "bad", "", f"{staleness_registry.GROUP}]\nno equals sign\n[other")
    install("acme_olt", "old", "Plugin = len", staleness_registry.GROUP)
    monkeypatch.syspath_prepend(tmp_path / "first")
    about = tmp_path / "first" / "acme_olt-2.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: Acme.Olt\nVersion: 2.0\n")
    (about / "entry_points.txt").write_text(
        f"[{staleness_registry.GROUP}]\nnew = acme_olt:Plugin\n"
    )
    assert {"old", "new"} & {
        point.name for point in plugins.points(staleness_registry.GROUP)[0]
    } == {"new"}
