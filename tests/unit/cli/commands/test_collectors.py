"""`poller collectors`: installed collectors, their options, and broken ones."""

from __future__ import annotations

import enum
import json
import re
from importlib.metadata import EntryPoint
from typing import Annotated, Literal

import pytest
from pydantic import Field

from poller import bootstrap
from poller.cli import main
from poller.collectors import api, registry
from poller.domain.inventory.api_version import Served


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Odd:
    """A plugin with one option of each kind."""

    name = "odd"
    api_version = api.API_VERSION
    credentials = ()

    class Options(api.Options):
        path: str
        size: Annotated[int, Field(ge=1, lt=10, description="How many")] = 3
        mode: Literal["a", "b"] = "a"
        colour: Colour = Colour.RED
        ratio: float | None = None
        words: tuple[str, ...] = ("x", "y")
        deep: bool = True
        table: dict[str, int] = Field(default_factory=dict)

    async def collect(self, poll: api.Poll):
        yield api.Reading("x", 1)


POINTS = [
    EntryPoint("odd", f"{__name__}:Odd", registry.GROUP),
    EntryPoint("gone", "no_such_module_anywhere:X", registry.GROUP),
]


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """One plugin that loads and one that does not."""
    load = registry.load
    monkeypatch.setattr(EntryPoint, "load", lambda self: Odd if self.name == "odd" else _fail())
    monkeypatch.setattr(registry, "load", lambda: load(POINTS))


def _fail() -> None:
    raise ModuleNotFoundError("No module named 'no_such_module_anywhere'")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    bootstrap.services.cache_clear()  # each test has its own plugins
    return (main.run(["collectors", *arguments]), *capsys.readouterr())


def test_built_in_collectors_are_listed_with_origin_and_options(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Programs get every field, in JSON types."""
    found = json.loads(run(capsys, "--json")[1])
    snmp = next(item for item in found["items"] if item["name"] == "snmp")
    assert (snmp["distribution"], snmp["api_version"], snmp["credentials"]) == (
        "poller",
        1,
        ["community", "snmpv3"],
    )
    port = next(option for option in snmp["options"] if option["name"] == "port")
    assert port == {
        "name": "port", "type": "integer 1 to 65535", "default": 161, "required": False,
        "description": "UDP port of the agent",
    }  # fmt: skip
    assert found["broken"] == []


@pytest.mark.usefixtures("plugins")
def test_options_are_shown_as_they_are_typed(capsys: pytest.CaptureFixture[str]) -> None:
    """A row has name and default, type in words, and bounds."""
    lines = run(capsys)[1].splitlines()
    rows = [line.split("\t")[1:] for line in lines if line.startswith("odd\t")][1:]
    assert rows == [
        ["path=", "text, required", ""],
        ["size=3", "integer 1 below 10", "How many"],
        ["mode=a", "a|b", ""],
        ["colour=red", "red|blue", ""],
        ["ratio=", "number", ""],
        ["words=x,y", "list of text", ""],
        ["deep=true", "true|false", ""],
        ["table=", "integer by name", ""],
    ]


@pytest.mark.usefixtures("plugins")
def test_a_plugin_that_failed_to_load_is_listed_with_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Other plugins are still listed, and the error for its name has the same reason."""
    _, out, _ = run(capsys)
    reason = "ModuleNotFoundError: No module named 'no_such_module_anywhere'"
    assert f"gone\tunknown distribution\tfailed to import\t{reason}" in out
    assert [item["name"] for item in json.loads(run(capsys, "--json")[1])["broken"]] == ["gone"]
    code, _, err = run(capsys, "gone")
    assert code == 2
    assert "ModuleNotFoundError" in err


def test_an_unknown_collector_is_refused_with_the_nearest_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The exit code is 2."""
    code, _, err = run(capsys, "smnp")
    assert code == 2
    assert "did you mean snmp?" in err


def test_singular_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    """`poller collector snmp` is `poller collectors snmp`."""
    assert main.run(["collector", "snmp"]) == 0
    assert "snmp\tpoller" in capsys.readouterr().out


def test_on_a_terminal_each_collector_has_a_table_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts wrap at 80 columns and are not cut."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    out = re.sub(r"\x1b\[[0-9;]*m", "", run(capsys)[1])
    assert "OPTION OF snmp" in out
    assert "OPTION OF routeros" in out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_abilities_and_api_versions_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each collector has one line; programs also get the served versions."""
    head, *lines = run(capsys)[1].splitlines()
    assert head.split("\t") == ["name", "from", "api", "credentials", "abilities", "state"]
    rows = {line.split("\t")[0]: line.split("\t") for line in lines[: lines.index("")]}
    assert rows["snmp"][2] == "1"
    assert "discovery" in rows["snmp"][4].split()
    assert "sessions" in rows["routeros"][4].split()
    found = json.loads(run(capsys, "--json")[1])
    assert (found["api_version"], found["api_served"]) == (1, [1])
    snmp = next(item for item in found["items"] if item["name"] == "snmp")
    assert (snmp["api_versions"], snmp["cost"], snmp["deprecated"]) == ([1, 1], 1.0, "")


@pytest.mark.usefixtures("plugins")
def test_the_json_schema_of_options_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The schema is printed alone, and as a field of the JSON list."""
    schema = json.loads(run(capsys, "odd", "--schema")[1])
    assert schema["properties"]["size"]["exclusiveMaximum"] == 10
    assert schema["required"] == ["path"]
    assert schema["additionalProperties"] is False
    assert json.loads(run(capsys, "odd", "--json")[1])["items"][0]["schema"] == schema
    code, _, err = run(capsys, "--schema")
    assert code == 2
    assert "--schema is of one collector" in err


def test_a_deprecated_api_is_a_state_with_a_reason(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state appears once this release serves a newer version, too."""
    load = registry.load
    soon = {1: Served(ends="2.0"), 2: Served()}
    monkeypatch.setattr(EntryPoint, "load", lambda self: Odd)
    monkeypatch.setattr(registry, "load", lambda: load(POINTS[:1], soon))
    out = run(capsys)[1]
    assert "\tdeprecated API\n" in out
    assert (
        "odd\tunknown distribution\t"
        "it uses collector API 1, which poller 2.0 will not serve any more" in out
    )
