"""The dashboards and the compose profile `observability`, as far as a real Prometheus can tell.

Prometheus runs with the command and the configuration of docker-compose.yml, and gets polls of
simulated devices by remote write. Every expression of every dashboard is asked.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from poller.collectors.api import Collector
from poller.collectors.credentials import Community, Login
from poller.collectors.routeros import RouterOsCollector
from poller.collectors.snmp import SnmpCollector
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.sim import fleet
from poller.sim.fleet import Protocol
from poller.sim.sim_process import simulated
from poller.sinks.api import Sample, Stores
from poller.sinks.remote_write import RemoteWriteSink
from poller.sinks.remote_write.options import RemoteWriteOptions
from tests.conftest import missing
from tests.integration.store_servers import Prometheus
from tests.unit.collectors.polls import polled

ROOT = Path(__file__).parents[2]
DASHBOARDS = sorted((ROOT / "deploy" / "grafana").glob("*.json"))
READINGS = ("device", "interfaces")
STEP_S = 60
POLLS = 6
#: Panels that need more than two healthy simulated devices, or trouble that they do not have.
EMPTY = {
    "Answers HTTP", "Certificate expires in", "HTTP duration", "UPS charge and load", "Sensors",
    "Most errors per second", "Most discards per second", "Lost pings", "Restarted within a day",
    "Storage used", "CPU of processors", "RouterOS temperature", "RouterOS wireless clients",
}  # fmt: skip


class ComposePrometheus(Prometheus):
    """Prometheus as the profile `observability` starts it, with the files of deploy/prometheus."""

    def command(self) -> list[str]:
        compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
        words = compose["services"]["prometheus"]["command"]
        places = {"/etc/prometheus": ROOT / "deploy" / "prometheus", "/prometheus": self.directory}
        mapped = [_on_this_host(word, places) for word in words]
        return [*mapped, f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=error"]


def _on_this_host(word: str, places: Mapping[str, Path]) -> str:
    option, equals, value = word.partition("=")
    for inside, outside in places.items():
        if value == inside or value.startswith(f"{inside}/"):
            return f"{option}={outside}{value.removeprefix(inside)}"
    return option + equals + value


def expressions(path: Path, **variables: str) -> Iterator[tuple[str, str]]:
    """The title and the expression of each query, with the variables replaced as Grafana does."""
    defaults = {"by": "device", "site": ".*", "device": ".*", "collector": ".*"}
    values = {**defaults, **variables, "__rate_interval": "4m"}
    for panel in json.loads(path.read_text())["panels"]:
        for target in panel.get("targets", ()):
            text = target["expr"]
            for name, value in values.items():
                text = text.replace(f"${name}", value)
            assert "$" not in text, (panel["title"], text)
            yield panel["title"], text


def test_promtool_accepts_every_expression_and_the_configuration(tmp_path: Path) -> None:
    """Each expression is put into a rule, because promtool checks rules."""
    program = shutil.which("promtool")
    if program is None:
        missing("promtool is not installed: apt install prometheus")
    found = [text for path in DASHBOARDS for _, text in expressions(path)]
    rules = [{"record": f"check:{number}", "expr": text} for number, text in enumerate(found)]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": rules}]}))
    config = ROOT / "deploy" / "prometheus" / "compose.yml"
    for words in (("rules", file), ("config", "--syntax-only", config)):
        done = subprocess.run([program, "check", *words], capture_output=True, timeout=60)
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert len(found) > 100


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """The Prometheus of the profile with some minutes of two devices, by both labels."""
    server = ComposePrometheus(tmp_path_factory.mktemp("observability"))
    server.start()
    samples = list(_samples())
    for names in ({}, {"device": "instance"}):
        options = RemoteWriteOptions(url=f"{server.url}/api/v1/write", **_renamed(names))
        RemoteWriteSink(Stores(None, None, None, "prom"), options).write(samples)
    yield server
    server.stop()


def _renamed(names: Mapping[str, str]) -> dict[str, Any]:
    return {"label_names": dict(names)} if names else {}


def _samples() -> Iterator[Sample]:
    every = fleet.devices(40, faulty_share=0)
    chosen = {kind: next(d for d in every if d.protocol is kind) for kind in Protocol}
    collectors: dict[Protocol, tuple[Collector, Any, dict[str, Any]]] = {
        Protocol.SNMP: (
            SnmpCollector(),
            Community(community=fleet.COMMUNITY),
            {"modules": "system,if_mib"},
        ),
        Protocol.ROUTEROS: (
            RouterOsCollector(),
            Login(username=fleet.USERNAME, password=fleet.PASSWORD),
            {"tls": False},
        ),
    }
    first_s = time.time() - POLLS * STEP_S
    with simulated(list(chosen.values())) as ports:
        at = {Protocol.SNMP: ports.snmp, Protocol.ROUTEROS: ports.routeros}
        for number in range(POLLS + 1):
            now_s = first_s + number * STEP_S
            ports.set_clock(now_s, 0.0)
            for kind, (collector, credential, options) in collectors.items():
                report = asyncio.run(
                    polled(collector, chosen[kind].address, credential, port=at[kind], **options)
                )
                assert report.outcome.readings is not None, report.outcome.message
                yield _sample(kind, now_s, report.outcome.readings)
                yield _sample(kind, now_s, ReadingSet.of(_ping()), "ping")


def _ping() -> Sequence[Reading]:
    return [Reading("ping_up", 1.0), Reading("ping_rtt_avg_seconds", 0.01)]


def _sample(kind: Protocol, at_s: float, readings: ReadingSet, collector: str = "") -> Sample:
    name = collector or str(kind)
    number = len(name)
    target = PollTarget(
        number, 1, name, number, f"{kind}-1", "192.0.2.1", "ams", name, STEP_S * 1000, 10_000
    )
    return Sample(target, int(at_s * 1000), readings)


@pytest.mark.parametrize("by", ["device", "instance"])
@pytest.mark.parametrize("name", READINGS)
def test_panels_of_readings_have_values(filled: Prometheus, name: str, by: str) -> None:
    """The same dashboard shows readings by the label of remote write and by that of a scrape."""
    path = ROOT / "deploy" / "grafana" / f"{name}.json"
    shown: dict[str, bool] = {}
    for device in ("snmp-1", "routeros-1"):
        for title, text in expressions(path, by=by, device=device):
            shown[title] = bool(filled.query(text)) or shown.get(title, False)
    assert [title for title, found in shown.items() if not found and title not in EMPTY] == []


def test_the_rules_of_the_profile_are_loaded(filled: Prometheus) -> None:
    """The configuration names the files of the rules, and the receiver of remote write is on."""
    groups = json.loads(filled.ask("/api/v1/rules"))["data"]["groups"]
    files = {Path(group["file"]).name for group in groups}
    assert files == {"recording.yml", "alerts.yml"}
    loaded = yaml.safe_load(json.loads(filled.ask("/api/v1/status/config"))["data"]["yaml"])
    jobs = {job["job_name"]: job["metrics_path"] for job in loaded["scrape_configs"]}
    assert jobs == {"poller": "/metrics", "poller-readings": "/metrics/readings"}
