"""The packages in examples/ are built, installed beside poller in a clean environment, and used as
an operator would.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.environments import Environment, wheels
from tests.acceptance.programs import Up, environment, eventually

pytestmark = pytest.mark.timeout(180)
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PROXMOX, JSONLINES = EXAMPLES / "poller-proxmox", EXAMPLES / "poller-jsonlines"
SITE_REPORT = EXAMPLES / "poller-site-report"
PACKAGES = [PROXMOX, JSONLINES, SITE_REPORT]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    directory = tmp_path_factory.mktemp("clean")
    return Environment(directory / "env", wheels([ROOT, *PACKAGES], directory / "wheels"))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Any]:
    """The fake Proxmox VE of the plugin's own tests."""
    spec = importlib.util.spec_from_file_location("fake_proxmox", PROXMOX / "tests" / "fake.py")
    assert spec is not None
    assert spec.loader is not None
    fake = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["fake_proxmox"] = fake  # dataclasses look for it there
    spec.loader.exec_module(fake)
    with fake.serving(tmp_path, fake.VE, fake.VE_HEADER) as running:
        running.token = fake.TOKEN
        yield running


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_the_tests_of_a_package_pass_where_it_is_installed(
    clean: Environment, package: Path
) -> None:
    """The tests of a package run on its wheel, not on this checkout."""
    where = (
        "import poller, importlib.metadata as m;"
        " print(poller.__file__, m.version('poller'), m.version('{}'))"
    )
    env = environment(Path("unused"))
    told = subprocess.run(
        [clean.python, "-c", where.format(package.name)], env=env, cwd="/", capture_output=True
    )
    assert told.stdout.startswith(os.fsencode(clean.python.parent.parent)), told
    words = [
        clean.python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        package / "tests",
    ]
    done = subprocess.run(words, env=env, cwd=package, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-4000:]


def test_a_collector_a_sink_and_a_job_are_installed_and_used(
    clean: Environment, cluster: Any, up: Callable[..., Up], tmp_path: Path
) -> None:
    """Readings reach the database and the sink's file after `pip install`, the job writes its
    report, and the token is in no output.
    """
    home = tmp_path / "home"

    def poller(*words: str, stdin: str = "") -> Any:
        command = [clean.poller, *words, "--json"]
        env = environment(home)
        done = subprocess.run(
            command, env=env, cwd=tmp_path, input=stdin, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    [found] = poller("collectors", "proxmox")["items"]
    assert (found["distribution"], found["version"], found["credentials"]) == (
        "poller-proxmox",
        "0.1.0",
        ["token"],
    )
    poller("credential", "add", "pve", "--kind", "token", stdin=cluster.token)
    device = ["pve1", "127.0.0.1", "--credential", "pve", "--collector", "", "--site", "ams"]
    poller("device", "add", *device)
    options = [f"port={cluster.port}", f"fingerprint={cluster.fingerprint}"]
    words = ["target", "add", "pve1", "--collector", "proxmox", "--interval", "2s"]
    poller(*words, *(word for option in options for word in ("-o", option)))
    program = [str(clean.python), "-m", "poller"]
    running = up("--workers", "1", home=home, program=program, POLLER_SINKS="sql,jsonlines")
    file = home / "readings.jsonl"
    eventually(
        lambda: file.exists() and len(file.read_text().splitlines()) >= 2,
        60,
        "two polls in the sink's file",
    )
    line = json.loads(file.read_text().splitlines()[0])
    assert (line["device"], line["collector"]) == ("pve1", "proxmox")
    assert ["proxmox_guest_up", {"vmid": "100"}, "gauge", 1.0] in line["readings"]
    [polled] = poller("poll", "pve1")["items"]
    assert polled["samples"] == len(line["readings"])
    names = {item["metric"] for item in poller("readings", "pve1")["items"]}
    assert {
        "proxmox_node_up",
        "proxmox_guest_memory_bytes",
        "proxmox_storage_bytes",
        "proxmox_task_ok",
    } <= names
    assert cluster.connections <= 3  # one is kept between polls
    [job] = poller("jobs", "list", "site-report")["items"]
    assert job["schedule"] == "30 1 * * * Europe/Amsterdam"
    poller("jobs", "run", "site-report", "--scope", "site:ams")
    report = next((home / "reports").rglob("ams.csv")).read_text()
    assert report.splitlines()[1].startswith("pve1,proxmox,proxmox,")
    running.stop()
    secret = cluster.token.partition("=")[2].encode()
    assert [
        path for path in tmp_path.rglob("*") if path.is_file() and secret in path.read_bytes()
    ] == []
