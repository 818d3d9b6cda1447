"""`poller sinks`: installed sinks, those in use, and broken ones."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pytest

from poller.cli import main
from poller.sinks import registry


@pytest.fixture
def with_a_broken_one(monkeypatch: pytest.MonkeyPatch) -> None:
    survey = registry.survey
    points = [EntryPoint("gone", "no_such_module_anywhere:X", registry.GROUP)]
    monkeypatch.setattr(
        registry, "survey", lambda: survey([*entry_points(group=registry.GROUP), *points])
    )


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return (main.run(["sinks", *arguments]), *capsys.readouterr())


@pytest.mark.usefixtures("home")
def test_sinks_are_listed_with_origin_use_and_state(capsys: pytest.CaptureFixture[str]) -> None:
    """The SQL sink is in use by default."""
    code, out, _ = run(capsys)
    rows: list[Any] = [line.split("\t") for line in out.splitlines()]
    assert code == 0
    assert rows[0] == ["name", "from", "api", "used", "state", "note"]
    assert {row[0]: (row[2], row[3], row[4]) for row in rows[1:]} == {
        "sql": ("1", "yes", "ok"), "stream": ("1", "no", "ok"),
    }  # fmt: skip


@pytest.mark.usefixtures("home", "with_a_broken_one")
def test_a_broken_sink_is_listed_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Other sinks are still listed."""
    assert "gone\tunknown distribution\tfailed to import\tModuleNotFoundError" in run(capsys)[1]
    found = json.loads(run(capsys, "--json")[1])
    assert [item["name"] for item in found["items"]] == ["sql", "stream"]
    assert [each["name"] for each in found["broken"]] == ["gone"]


@pytest.mark.usefixtures("home", "with_a_broken_one")
def test_a_configured_sink_that_cannot_be_used_is_noted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers would not start with such a setting."""
    monkeypatch.setenv("POLLER_SINKS", "sql,gone")
    assert "the setting sinks names gone, which cannot be used" in run(capsys)[2]


def test_singular_is_accepted(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    """`poller sink` is `poller sinks`."""
    assert main.run(["sink"]) == 0
    assert "sql" in capsys.readouterr().out
