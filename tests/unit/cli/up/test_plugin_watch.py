"""`poller up` detects plugins that are installed, upgraded or removed, once pip has finished."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from poller.cli.up import plugin_watch
from poller.cli.up.plugin_watch import QUIET_S, PluginWatch


def put(
    directory: Path, version: str = "1.0", name: str = "olt", group: str = "poller.collectors"
) -> Path:
    about = directory / f"acme_{name}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: acme-{name}\nVersion: {version}\n"
    )
    (about / "entry_points.txt").write_text(f"[{group}]\n{name} = acme_{name}:Olt\n")
    touch(directory)
    return about


def touch(directory: Path) -> None:
    """Set a new modification time: two changes within the clock's resolution stay two."""
    touch.times += 1_000_000_000  # type: ignore[attr-defined]
    os.utime(directory, ns=(touch.times, touch.times))  # type: ignore[attr-defined]


touch.times = 1_800_000_000_000_000_000  # type: ignore[attr-defined]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_new_plugin_is_reported_once_after_a_quiet_second(place: Path) -> None:
    """A change within the last second may be pip at work."""
    watch = PluginWatch()
    assert watch.changes(0) == ""
    put(place)
    assert watch.changes(10) == "", "pip may still be at work"
    assert watch.changes(10 + QUIET_S) == "installed: collector olt (acme-olt 1.0)"
    assert watch.changes(20) == watch.changes(30) == ""


def test_a_new_job_is_reported(place: Path) -> None:
    """Workers load jobs when they start, as they load collectors."""
    watch = PluginWatch()
    put(place, name="nightly", group="poller.jobs")
    watch.changes(0)
    assert watch.changes(5) == "installed: job nightly (acme-nightly 1.0)"


def test_an_upgrade_and_a_removal_are_reported(place: Path) -> None:
    """The text has the old and the new version."""
    old = put(place)
    watch = PluginWatch()
    shutil.rmtree(old)
    put(place, "1.1")
    watch.changes(0)
    assert watch.changes(5) == (
        "installed: collector olt (acme-olt 1.1); removed: collector olt (acme-olt 1.0)"
    )
    shutil.rmtree(place / "acme_olt-1.1.dist-info")
    touch(place)
    watch.changes(10)
    assert watch.changes(15) == "removed: collector olt (acme-olt 1.1)"


def test_the_same_version_installed_again_is_reported(place: Path) -> None:
    """A developer of a plugin edits and installs the same version many times."""
    record = put(place) / "RECORD"
    record.write_text("acme_olt-1.0.dist-info/RECORD,,\n")
    watch = PluginWatch()
    os.utime(record, ns=(touch.times, touch.times))  # type: ignore[attr-defined]
    touch(place)
    watch.changes(0)
    assert watch.changes(5) == "installed again: collector olt (acme-olt 1.0)"
    touch(place)
    watch.changes(10)
    assert watch.changes(15) == "", "something else was installed"


def test_a_file_that_is_no_plugin_is_ignored(place: Path) -> None:
    """The directory changed, but no entry point did."""
    watch = PluginWatch()
    (place / "something.py").write_text("")
    touch(place)
    watch.changes(0)
    assert watch.changes(5) == ""


def test_a_new_version_of_poller_is_ignored(place: Path) -> None:
    """Its scheduler would stay the old one."""
    watch = PluginWatch()
    about = put(place)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: poller\nVersion: 99.0\n")
    watch.changes(0)
    assert watch.changes(5) == ""


def test_nothing_is_read_while_nothing_changes(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch runs ten times a second for months."""
    watch = PluginWatch()
    monkeypatch.setattr(plugin_watch, "_plugins", lambda: pytest.fail("it looked inside"))
    assert [watch.changes(now / 10) for now in range(100)] == [""] * 100
