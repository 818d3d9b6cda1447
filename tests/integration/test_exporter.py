"""The same agent and file give the samples of snmp_exporter, except for known differences."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from poller.collectors.snmp.modules import module_catalog, module_parser
from poller.domain.failures.outcome import Result
from tests.integration import exporters
from tests.integration.exporters import WALKS, Exposed, Failed

EVERYTHING, DIFFERENCES = WALKS / "everything.yml", WALKS / "differences.yml"


class Pair(NamedTuple):
    """The port of an agent, and the address of an exporter with a module file."""

    port: int
    exporter: str


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with exporters.snmpd(tmp_path_factory.mktemp("walk"), WALKS / "everything.snmprec") as port:
        yield port


@pytest.fixture(scope="module")
def everything(agent: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with exporters.exporter(EVERYTHING, tmp_path_factory.mktemp("exporter")) as address:
        yield Pair(agent, address)


@pytest.fixture(scope="module")
def differing(agent: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with exporters.exporter(DIFFERENCES, tmp_path_factory.mktemp("exporter")) as address:
        yield Pair(agent, address)


def names(file: Path) -> list[str]:
    return sorted(module_parser.read(file.read_text(), file.name).modules)


@pytest.mark.parametrize("module", names(EVERYTHING))
def test_every_feature_gives_the_exporters_samples(everything: Pair, module: str) -> None:
    """The file has every type of value, metric, index and lookup, with odd cases."""
    expected = exporters.theirs(everything.exporter, everything.port, module)
    assert isinstance(expected, Exposed), expected
    found, drained = exporters.ours(everything.port, EVERYTHING, module)
    assert expected.samples
    assert exporters.differences(expected, found) == {}
    assert drained.outcome.result is Result.OK


def test_a_login_of_the_file_uses_its_version(everything: Pair) -> None:
    """A module of the flat format with version 1 gives the exporter's samples by SNMPv1."""
    expected = exporters.theirs(everything.exporter, everything.port, "old")
    assert isinstance(expected, Exposed), expected
    command = [
        sys.executable,
        "-m",
        "poller",
        "collect",
        "snmp",
        "127.0.0.1",
        "--output",
        "prometheus",
    ]
    options = [f"port={everything.port}", f"config={EVERYTHING}", "modules=old", "auth=old"]
    command += [word for option in options for word in ("-o", option)]
    environment = {
        name: text for name, text in os.environ.items() if name != "POLLER_COLLECT_SECRET"
    }
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    assert exporters.differences(expected, exporters.exposed(done.stdout)) == {}


@pytest.mark.parametrize(
    ("module", "their_text", "our_samples", "result"),
    [
        ("ticks", {"ticks": "%!s(uint32=4200)"}, {"ticks": "4200"}, Result.OK),
        (
            "addressed",
            {"n": "1", "address": "0xC000"},
            {"n": "1", "address": "192.0.2.7"},
            Result.OK,
        ),
        ("bytes", "is not valid UTF-8", {"bytes": "a�b"}, Result.OK),
        ("twins", "was collected before with the same name and label values", {}, Result.PARTIAL),
        ("bits", "BITS type was not a BISTRING on the wire", None, Result.OK),
        ("named", "duplicate label names", None, Result.OK),
        ("dotted", None, {"n": "1"}, Result.OK),
    ],
)
def test_intended_differences(
    differing: Pair,
    module: str,
    their_text: object,
    our_samples: dict[str, str] | None,
    result: Result,
) -> None:
    """The exporter fails the scrape, or only its later versions print the same."""
    expected = exporters.theirs(differing.exporter, differing.port, module)
    found, drained = exporters.ours(differing.port, DIFFERENCES, module)
    assert drained.outcome.result is result
    assert [dict(labels) for _, labels in found.samples] == (
        [] if our_samples is None else [our_samples]
    )
    if isinstance(expected, Failed):
        assert expected.status == 500
        assert str(their_text) in expected.text
    else:
        assert [dict(labels) for _, labels in expected.samples] == (
            [] if their_text is None else [their_text]
        )


def test_the_differences_are_documented() -> None:
    """Each difference has a line in the table of docs/snmp.md."""
    table = (
        (Path(__file__).parents[2] / "docs" / "snmp.md")
        .read_text()
        .partition("### Equal to snmp_exporter")[2]
    )
    for words in (
        "TimeTicks as a label",
        "looked-up `InetAddress`",
        "not UTF-8",
        "same name and labels",
        "`Bits`",
    ):
        assert words in table
    assert "`EnumAsInfo` whose name is an index" in table
    assert "with a leading dot" in table


def flat(module: str, port: int) -> str:
    """Return a built-in module in the flat format, without fields the exporter lacks."""
    file = Path(module_catalog.__file__).parent / "builtin" / f"{module}.yml"
    body = yaml.safe_load(file.read_text())["modules"][module]
    for metric in body["metrics"]:
        metric.pop("scale", None)
        metric.pop("offset", None)
        for lookup in metric.get("lookups", ()):
            lookup.setdefault("labels", [])
            lookup.pop("enum_values", None)
    return yaml.safe_dump({module: body})


def test_a_real_agent_gives_the_exporters_samples(tmp_path: Path) -> None:
    """Interfaces and system of a real snmpd have the same series and families."""
    config = tmp_path / "own.yml"
    with exporters.snmpd(tmp_path / "agent") as port:
        config.write_text(flat("if_mib", port) + flat("system", port))
        with exporters.exporter(config, tmp_path) as address:
            for module in ("if_mib", "system"):
                expected = exporters.theirs(address, port, module)
                assert isinstance(expected, Exposed), expected
                found, _ = exporters.ours(port, config, module)
                assert found.samples.keys() == expected.samples.keys()
                assert found.families == expected.families
                assert len(found.samples) > 5
