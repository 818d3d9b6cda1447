"""Plugins as their authors have them: what `poller plugin new` writes and what the page shows really works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from poller.sim import fleet
from poller.sim.fleet import Fault, Protocol
from poller.sim.process import simulated
from poller.testing.conformance import CHECKS
from tests.integration import layered
from tests.integration.layered import Layer

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--override-ini=addopts=", "-rs")


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Layer:
    return layered.on_top(tmp_path_factory.mktemp("layer"))


def shown_files(section: str) -> dict[str, str]:
    """The files that a section of the page shows, by the path in their first line."""
    text = PAGE.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```\w+\n# ([\w./-]+)\n(.*?)```", text, re.DOTALL)
    assert blocks, section
    return dict(blocks)


def write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


def passed(output: str) -> int:
    found = re.search(r"(\d+) passed", output)
    assert found, output
    return int(found[1])


def test_a_new_plugin_installs_passes_conformance_and_polls_without_an_edit(layer: Layer, tmp_path: Path) -> None:
    """As its README says."""
    layer.run(str(layer.poller), "plugin", "new", "demo", cwd=tmp_path)
    layer.install(tmp_path / "demo")
    assert "poller-demo 0.1.0" in layer.run(str(layer.poller), "collectors", "demo", cwd=tmp_path)
    assert passed(layer.run(str(layer.python), *PYTEST, cwd=tmp_path / "demo")) >= 12
    router = next(d for d in fleet.devices(20) if d.protocol is Protocol.ROUTEROS and d.fault is Fault.NONE)
    with simulated([router]) as ports:
        words = ["collect", "demo", router.address, "-o", f"port={ports.routeros}", "--json"]
        said = json.loads(layer.run(str(layer.poller), *words, cwd=tmp_path))
    assert {item["metric"] for item in said["items"]} == {"demo_answer_seconds", "demo_info"}


def test_the_documented_collector_is_complete(layer: Layer, tmp_path: Path) -> None:
    """Its three files, as they stand on the page: installed, tested, listed and run."""
    write(tmp_path / "acme-olt", shown_files("A complete example"))
    layer.install(tmp_path / "acme-olt")
    assert passed(layer.run(str(layer.python), *PYTEST, cwd=tmp_path / "acme-olt")) >= 13
    listed = json.loads(layer.run(str(layer.poller), "collectors", "olt", "--json", cwd=tmp_path))
    [item] = listed["items"]
    assert [option["name"] for option in item["options"]] == ["port", "slots"]
    assert item["schema"]["properties"]["slots"]["maximum"] == 16


def test_the_documented_sink_is_complete(layer: Layer, tmp_path: Path) -> None:
    """Listed, and kept to its contract by the suite for sinks."""
    shown = shown_files("Sinks")
    head = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    head += '[project]\nname = "acme-files"\nversion = "0.1.0"\n'
    test = (
        "import os\nfrom contextlib import nullcontext\nfrom pathlib import Path\n"
        "from acme_files import Files\nfrom poller.testing import sink_conformance\n"
        "PLACE = Path(os.environ['ACME_FILES'])\n"
        "TestFiles = sink_conformance.suite(Files, lambda: nullcontext(None), lambda: list(PLACE.iterdir()))\n"
    )
    write(tmp_path / "acme-files", {**shown, "pyproject.toml": head + shown["pyproject.toml"], "test_files.py": test})
    layer.install(tmp_path / "acme-files")
    (tmp_path / "place").mkdir()
    env = {"ACME_FILES": str(tmp_path / "place"), "POLLER_SINKS": "sql,files"}
    assert passed(layer.run(str(layer.python), *PYTEST, "test_files.py", cwd=tmp_path / "acme-files", env=env)) == 4
    listed = json.loads(layer.run(str(layer.poller), "sinks", "--json", cwd=tmp_path, env=env))
    assert {item["name"]: item["used"] for item in listed["items"]} == {"files": True, "sql": True, "stream": False}


def test_the_page_tells_every_check() -> None:
    """By name."""
    text = PAGE.read_text()
    assert [check.__name__ for check in CHECKS if f"`{check.__name__}`" not in text] == []
