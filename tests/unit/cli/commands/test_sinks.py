"""`poller sinks` without a cluster: configured sinks, installed kinds, broken ones, and a test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pytest

from poller import bootstrap, errors
from poller.cli import main
from poller.service import action_audit
from poller.sinks import registry
from poller.sinks.bus import stream


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Services of the settings of each test; Redis does not answer."""
    monkeypatch.setenv("POLLER_REDIS_URL", "redis://127.0.0.1:1/0")
    bootstrap.services.cache_clear()
    yield
    bootstrap.services.cache_clear()


@pytest.fixture
def with_a_broken_one(monkeypatch: pytest.MonkeyPatch) -> None:
    survey = registry.survey
    points = [EntryPoint("gone", "no_such_module_anywhere:X", registry.GROUP)]
    installed = tuple(entry_points(group=registry.GROUP))
    monkeypatch.setattr(registry, "survey", lambda chosen=installed: survey([*chosen, *points]))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return (main.run(["sinks", *arguments]), *capsys.readouterr())


@pytest.mark.usefixtures("home")
def test_configured_sinks_come_first_and_installed_kinds_second(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Redis the states of the workers are not known, and a note says so."""
    monkeypatch.setenv("POLLER_SINK", '{"live": {"kind": "stream"}, "old": {"kind": "stream"}}')
    monkeypatch.setenv("POLLER_SINKS", "sql,live")
    code, out, notes = run(capsys)
    sinks, kinds = (part.splitlines() for part in out.split("\n\n"))
    rows: list[Any] = [line.split("\t") for line in sinks]
    assert code == 0
    assert rows[0][:3] == ["sink", "kind", "state"]
    assert [row[:3] for row in rows[1:]] == [
        ["sql", "sql", "unknown"], ["live", "stream", "unknown"], ["old", "stream", "unused"],
    ]  # fmt: skip
    installed = {row[0]: row[3] for row in (line.split("\t") for line in kinds[1:])}
    assert (installed["sql"], installed["stream"]) == ("yes", "yes")
    assert "what the workers report is not known" in notes


@pytest.mark.usefixtures("home")
def test_one_sink_is_shown_with_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that does not exist gets the nearest as a hint."""
    assert "spooled bytes: 0" in run(capsys, "sql")[1]
    code, _, said = run(capsys, "sqll")
    assert code == 3
    assert "did you mean sql?" in said


@pytest.mark.usefixtures("home", "with_a_broken_one")
def test_a_broken_sink_is_listed_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Other sinks are still listed."""
    assert "gone\tunknown distribution\tfailed to import\tModuleNotFoundError" in run(capsys)[1]
    found = json.loads(run(capsys, "--json")[1])
    assert found["schema"] == "poller.sinks/2"
    assert [item["name"] for item in found["items"]] == ["sql"]
    assert {"sql", "stream"} <= {item["name"] for item in found["installed"]}
    assert [each["name"] for each in found["broken"]] == ["gone"]


@pytest.mark.usefixtures("home", "with_a_broken_one")
def test_a_configured_sink_that_cannot_be_used_is_noted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers would not start with such a setting, nor with a wrong option."""
    monkeypatch.setenv("POLLER_SINKS", "sql,gone,prom")
    monkeypatch.setenv("POLLER_SINK", '{"prom": {"kind": "remote_write", "ulr": "http://x"}}')
    notes = run(capsys)[2]
    assert 'note: no worker will start: sink "gone"' in notes
    assert "note: no worker will start: [sink.prom] url: it must be set; ulr:" in notes


def test_singular_is_accepted(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    """`poller sink` is `poller sinks`."""
    assert main.run(["sink"]) == 0
    assert "sql" in capsys.readouterr().out


@pytest.mark.usefixtures("home")
def test_the_options_of_a_kind_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A kind without options says so."""
    rows = [line.split("\t") for line in run(capsys, "options", "remote_write")[1].splitlines()]
    assert rows[0] == ["option", "type", "default", "meaning"]
    assert {row[0]: row[1] for row in rows[1:]}["url"] == "text, required"
    assert "takes no options" in run(capsys, "options", "stream")[2]
    assert run(capsys, "options", "steam")[0] == 3


class Written:
    """A store that takes samples, or refuses them with a hint."""

    def __init__(self, error: errors.StoreError | None = None) -> None:
        self.error = error
        self.samples: list[Any] = []

    def write(self, sink: Any, samples: Any) -> None:
        if self.error:
            raise self.error
        self.samples += samples


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    entries: list[Any] = []
    monkeypatch.setattr(
        action_audit, "record", lambda _services, _actor, entry: entries.append(entry) or ""
    )
    return entries


@pytest.mark.usefixtures("home")
def test_a_test_sends_one_marked_sample_and_says_what_the_store_answered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, audited: list[Any]
) -> None:
    """The sink is made by its table; the label of the sample names it."""
    store = Written()
    monkeypatch.setattr(stream.StreamSink, "write", lambda sink, some: store.write(sink, some))
    monkeypatch.setattr(stream.StreamSink, "check", lambda _: "204 No Content", raising=False)
    monkeypatch.setenv("POLLER_SINK", '{"live": {"kind": "stream"}}')
    code, out, _ = run(capsys, "test", "live")
    assert code == 0
    assert out.startswith("live (stream) took one sample in ")
    assert out.endswith(": 204 No Content\n")
    [sample] = store.samples
    [reading] = sample.readings
    assert (reading.name, dict(reading.labels)) == ("poller_sink_test", {"sink": "live"})
    assert [(entry.action, entry.subject, entry.after["ok"]) for entry in audited] == [
        ("sink.test", "live", True)
    ]


@pytest.mark.usefixtures("home", "audited")
def test_a_test_that_fails_prints_the_error_with_its_hint(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code says that the result is bad."""
    store = Written(errors.StoreUnavailable("HTTP 401", hint="check password_file"))
    monkeypatch.setattr(stream.StreamSink, "write", lambda sink, some: store.write(sink, some))
    code, out, said = run(capsys, "test", "stream")
    assert (code, out) == (1, "")
    assert "sink stream (stream) did not take the sample" in said
    assert "cause: HTTP 401" in said
    assert "try: check password_file" in said
    body = json.loads(run(capsys, "test", "stream", "--json")[1])
    assert (body["ok"], body["error"], body["hint"]) == (False, "HTTP 401", "check password_file")


@pytest.mark.usefixtures("home", "audited")
def test_a_test_of_a_sink_that_leaves_the_sample_out_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink that drops the sample itself did not store it."""

    class Choosy(stream.StreamSink):
        def __init__(self, stores: Any) -> None:
            self.dropped = stores.dropped

        def write(self, samples: Any) -> None:
            self.dropped(1, "out of bounds: poller_sink_test{}")

    monkeypatch.setattr(
        registry, "admit", lambda kind, name, served=None: registry.Admitted(Choosy, 1, "")
    )
    code, _, said = run(capsys, "test", "stream")
    assert code == 1
    assert "the sink left the sample out: out of bounds" in said


@pytest.mark.usefixtures("home")
def test_a_test_of_an_unknown_sink_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is sent."""
    code, _, said = run(capsys, "test", "steam")
    assert code == 3
    assert "did you mean stream?" in said
