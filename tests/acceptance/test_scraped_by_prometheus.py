"""One real Prometheus scrapes Debian's snmp_exporter and poller, and gets the same series."""

from __future__ import annotations

import json
import socket
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from poller.bootstrap import Services
from poller.collectors.credentials import Community
from poller.collectors.snmp.modules import module_parser
from poller.db.inventory import credential_rows, devices
from poller.db.inventory.inventory_feed import Author
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from tests.acceptance.cluster import Cluster, soon
from tests.conftest import wait_until
from tests.integration import exporters
from tests.integration.exporters import WALKS

EVERYTHING = WALKS / "everything.yml"
PROMETHEUS = "prometheus"
JOBS = ("exporter", "poller")
#: Series that are meant to differ: those about the scrape, and text that is not the same twice.
SCRAPE = ("snmp_scrape_", "poller_", "scrape_", "up")
#: A module with a login of its own, which poller has in its vault.
LOGINS = {"old"}


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with exporters.snmpd(tmp_path_factory.mktemp("walk"), WALKS / "everything.snmprec") as port:
        yield port


def test_both_jobs_have_the_same_series(agent: int, tmp_path: Path) -> None:
    """Only the address of the exporter differs between the two jobs.

    The real web process, worker and scheduler answer, first for a stranger, then from last polls.
    """
    modules = sorted(set(module_parser.read(EVERYTHING.read_text(), "f").modules) - LOGINS)
    settings = {
        "POLLER_SNMP_CONFIG": str(EVERYTHING),
        "POLLER_SCRAPE_NETWORKS": "127.0.0.0/8",
        "POLLER_WEB_PORT": str(exporters.free_port(socket.SOCK_STREAM)),
        "POLLER_FLOWER_PORT": str(exporters.free_port(socket.SOCK_STREAM)),
    }
    page = f"127.0.0.1:{settings['POLLER_WEB_PORT']}"
    with (
        Cluster(tmp_path, **settings) as cluster,
        exporters.exporter(EVERYTHING, tmp_path) as exporter,
    ):
        cluster.valkey.start()
        cluster.start_up()
        soon(lambda: _get(f"http://{page}/-/healthy"), 60, "the page answers")
        config = _config(tmp_path, agent, modules, {"exporter": exporter, "poller": page})
        with _prometheus(config, tmp_path) as address:
            wanted = len(modules)
            for job in JOBS:
                soon(lambda job=job: len(_up(address, job)) == wanted, 90, f"{job} is scraped")
            strangers = {job: _series(address, job) for job in JOBS}
            _add_device(cluster.services, agent, modules)
            from_last_polls = 'poller_scrape_age_seconds{job="poller"} > 0'
            soon(lambda: len(_query(address, from_last_polls)) > 5, 60, "last polls answer")
            known = {job: _series(address, job) for job in JOBS}
    assert len(strangers["exporter"]) > 50
    assert strangers["exporter"] == strangers["poller"]
    assert known["exporter"] == known["poller"]


def _add_device(services: Services, port: int, modules: list[str]) -> None:
    """Add the agent as a device whose one target reads all modules."""
    envelope = services.keyring.seal(Community.from_text("public").to_json(), "lab", "community")
    credential_rows.add(services.engine, "lab", "community", envelope)
    options = {"port": port, "modules": modules, "config": [str(EVERYTHING)]}
    target = TargetDraft("snmp", "snmp", options, interval_ms=20_000, timeout_ms=15_000)
    author = Author(notify=services.notify)
    draft = DeviceDraft("sw1", "127.0.0.1", credential="lab")
    devices.add(services.engine, draft, [target], author)


def _get(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bytes(answer.read())
    except OSError:
        return b""


def _config(tmp_path: Path, port: int, modules: list[str], places: dict[str, str]) -> Path:
    jobs = [
        {
            "job_name": job,
            "metrics_path": "/snmp",
            "params": {"target": [f"127.0.0.1:{port}"]},
            "static_configs": [{"targets": modules}],
            "relabel_configs": [
                {"source_labels": ["__address__"], "target_label": "__param_module"},
                {"source_labels": ["__address__"], "target_label": "instance"},
                {"target_label": "__address__", "replacement": place},
            ],
        }
        for job, place in places.items()
    ]
    document = {
        "global": {"scrape_interval": "5s", "scrape_timeout": "5s"},
        "scrape_configs": jobs,
    }
    path = tmp_path / "prometheus.yml"
    path.write_text(yaml.safe_dump(document))
    return path


@contextmanager
def _prometheus(config: Path, directory: Path) -> Iterator[str]:
    address = f"127.0.0.1:{exporters.free_port(socket.SOCK_STREAM)}"
    command = [
        PROMETHEUS,
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'tsdb'}",
        f"--web.listen-address={address}",
    ]
    with exporters.running(command, directory / "prometheus.log") as process:
        wait_until(lambda: _get(f"http://{address}/-/ready"), PROMETHEUS, process)
        yield address


def _query(address: str, query: str) -> list[dict[str, Any]]:
    text = urllib.parse.urlencode({"query": query})
    found = json.loads(_get(f"http://{address}/api/v1/query?{text}") or b"{}")
    result: list[dict[str, Any]] = found.get("data", {}).get("result", [])
    return result


def _up(address: str, job: str) -> list[dict[str, Any]]:
    return _query(address, f'up{{job="{job}"}} == 1')


def _series(address: str, job: str) -> set[frozenset[tuple[str, str]]]:
    """Name and labels of each series of a job, without the job."""
    found = set()
    for row in _query(address, f'{{job="{job}"}}'):
        labels = {key: text for key, text in row["metric"].items() if key != "job"}
        if not labels["__name__"].startswith(SCRAPE):
            found.add(frozenset(labels.items()))
    return found
