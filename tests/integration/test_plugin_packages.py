"""Plugins as their authors have them: the output of `poller plugin new` and the files of the page
work.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from poller.sim import fleet
from poller.sim.fleet import Fault, Protocol
from poller.sim.sim_process import simulated
from poller.testing import job_conformance
from poller.testing.conformance import CHECKS
from tests.integration import layered

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"
PYTEST = ("-m", "pytest", "-v", "-p", "no:cacheprovider", "--override-ini=addopts=", "--color=no")


class Desk:
    """Four installed packages, and the results of their tests."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.layer = layered.on_top(place / "layer")
        (place / "readings").mkdir()
        self.env = {"ACME_FILES": str(place / "readings"), "POLLER_SINKS": "sql,files"}
        self.poller("plugin", "new", "demo")
        self.poller("plugin", "new", "nightly", "--job")
        write(place / "acme-olt", shown_files("A complete example"))
        write(place / "acme-files", shown_files("Sinks"))
        packages = [place / name for name in ("demo", "nightly", "acme-olt", "acme-files")]
        self.layer.install(*packages)
        self.tested = self.layer.run(
            str(self.layer.python), *PYTEST, *map(str, packages), cwd=place, env=self.env
        )

    def poller(self, *words: str) -> str:
        return self.layer.run(str(self.layer.poller), *words, cwd=self.place, env=self.env)

    def passed(self, suite: str) -> int:
        return len(re.findall(rf"::{suite}::\w+ PASSED", self.tested))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk"))


def shown_files(section: str) -> dict[str, str]:
    """Return the files that a section of the page shows, by the path in their first line."""
    text = PAGE.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```\w+\n# ([\w./-]+)\n(.*?)```", text, re.DOTALL)
    assert blocks, section
    return dict(blocks)


def write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


def test_a_new_plugin_installs_passes_conformance_and_polls_without_an_edit(desk: Desk) -> None:
    """A new plugin works as its README describes."""
    assert desk.passed("TestDemo") >= 13
    assert "poller-demo 0.1.0" in desk.poller("collectors", "demo")
    router = next(
        d for d in fleet.devices(20) if d.protocol is Protocol.ROUTEROS and d.fault is Fault.NONE
    )
    with simulated([router]) as ports:
        said = json.loads(
            desk.poller("collect", "demo", router.address, "-o", f"port={ports.routeros}", "--json")
        )
    assert {item["metric"] for item in said["items"]} == {"demo_answer_seconds", "demo_info"}


def test_a_new_job_installs_passes_conformance_and_is_loaded_without_an_edit(desk: Desk) -> None:
    """A process finds the job by its entry point, with a queue of its package."""
    assert desk.passed("TestJob") == len(job_conformance.CHECKS) - 1, "the job has no hook"
    assert "test_the_free_space_is_reported PASSED" in desk.tested
    code = (
        "from poller.jobs import registry; found = registry.load();"
        " print(found.jobs['nightly'].terms.schedule.text, found.broken);"
        " print([queue for queue, jobs in found.by_queue().items() if 'nightly' in str(jobs)])"
    )
    said = desk.layer.run(str(desk.layer.python), "-c", code, cwd=desk.place, env=desk.env)
    assert said == "*/5 * * * * UTC ()\n['job.poller-nightly']\n"


def test_the_documented_collector_is_complete(desk: Desk) -> None:
    """The three files of the page can be installed, tested and listed."""
    assert desk.passed("TestOlt") >= 14
    [item] = json.loads(desk.poller("collectors", "olt", "--json"))["items"]
    assert [option["name"] for option in item["options"]] == ["port", "slots"]
    assert item["schema"]["properties"]["slots"]["maximum"] == 16


def test_the_documented_sink_is_complete(desk: Desk) -> None:
    """The three files of the page can be installed, tested and listed."""
    assert desk.passed("TestFiles") == 4
    listed = json.loads(desk.poller("sinks", "--json"))
    assert [item["name"] for item in listed["items"]] == ["sql", "files"]
    used = {item["name"]: item["used"] for item in listed["installed"]}
    assert (used["files"], used["sql"], used["stream"]) == (True, True, False)


def test_the_page_names_every_check() -> None:
    """Every check of the conformance suite is on the page."""
    text = PAGE.read_text()
    assert [check.__name__ for check in CHECKS if f"`{check.__name__}`" not in text] == []
