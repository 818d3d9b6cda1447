"""The files of deploy/: dashboards and rules name metrics and labels that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit import metric_tables
from tests.unit.metric_tables import PROMETHEUS, ROOT, SCRAPED, Metrics

GRAFANA = ROOT / "deploy" / "grafana"
DASHBOARDS = sorted(GRAFANA.glob("*.json"))
PLATFORM = {**metric_tables.documented(), **metric_tables.recorded()}


def panels(path: Path) -> Iterator[dict[str, Any]]:
    for panel in json.loads(path.read_text())["panels"]:
        if panel["type"] != "row":
            yield panel


def known(path: Path) -> Metrics:
    """Devices are shown by their readings, everything else by metrics of the platform."""
    return metric_tables.readings() if path.stem in ("device", "interfaces") else PLATFORM


def check(expression: str, metrics: Metrics, legend: str = "") -> None:
    names = metric_tables.names_in(expression)
    assert names, expression
    assert names <= metrics.keys(), expression
    labels = set().union(*(metrics[name] for name in names)) | SCRAPED
    assert metric_tables.labels_in(expression) <= labels, expression
    assert set(re.findall(r"{{(\w+)}}", legend)) <= labels, (expression, legend)


def test_every_dashboard_is_known_and_has_an_id_of_its_own() -> None:
    """Grafana replaces a dashboard by another one of the same id."""
    assert [path.stem for path in DASHBOARDS] == ["device", "fleet", "interfaces", "platform"]
    ids = [json.loads(path.read_text())["uid"] for path in DASHBOARDS]
    assert ids == [f"poller-{path.stem}" for path in DASHBOARDS]


def test_the_profile_mounts_what_its_files_name() -> None:
    """Grafana finds its dashboards and Prometheus its configuration and its token."""
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    mounts = {
        name: dict(volume.split(":")[1::-1] for volume in services[name]["volumes"])
        for name in ("prometheus", "grafana", "scrape_token")
    }
    provider = yaml.safe_load((GRAFANA / "provisioning/dashboards/poller.yml").read_text())
    folder = provider["providers"][0]["options"]["path"]
    assert mounts["grafana"][folder] == "./deploy/grafana"
    assert mounts["grafana"]["/etc/grafana/provisioning"] == "./deploy/grafana/provisioning"
    source = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    assert mounts["prometheus"]["/etc/prometheus"] == "./deploy/prometheus"
    config = yaml.safe_load((PROMETHEUS / "compose.yml").read_text())
    for job in config["scrape_configs"]:
        folder = str(Path(job["authorization"]["credentials_file"]).parent)
        assert mounts["prometheus"][folder] == mounts["scrape_token"]["/var/lib/poller"]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_panel_names_metrics_and_labels_that_exist(path: Path) -> None:
    """A panel about another metric would be empty for ever."""
    metrics = known(path)
    shown = list(panels(path))
    assert len(shown) > 10
    for panel in shown:
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
        for target in panel["targets"]:
            expression, legend = target["expr"], target["legendFormat"]
            for label in ("device", "instance"):  # the choices of the variable
                check(expression.replace("$by", label), metrics, legend.replace("$by", label))


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_the_panels_of_a_dashboard_do_not_overlap(path: Path) -> None:
    cells: set[tuple[int, int]] = set()
    ids: list[int] = []
    for panel in json.loads(path.read_text())["panels"]:
        place = panel["gridPos"]
        ids.append(panel["id"])
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert x < 24
                assert (x, y) not in cells, panel["title"]
                cells.add((x, y))
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", ["alerts.yml", "recording.yml"])
def test_a_rule_names_metrics_and_labels_that_exist(name: str) -> None:
    """A rule about another metric would never fire."""
    groups = yaml.safe_load((PROMETHEUS / name).read_text())["groups"]
    expressions = [rule["expr"] for group in groups for rule in group["rules"]]
    assert len(expressions) >= 10
    for expression in expressions:
        check(expression, PLATFORM | {"up": set()})


def test_every_alert_has_a_test_and_says_what_to_do() -> None:
    groups = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
    alerts = [rule for group in groups for rule in group["rules"]]
    tests = yaml.safe_load((PROMETHEUS / "tests" / "alerts.yml").read_text())["tests"]
    tested = [case["alertname"] for test in tests for case in test["alert_rule_test"]]
    assert {rule["alert"] for rule in alerts} == set(tested)
    assert all(rule["annotations"]["fix"] and rule["labels"]["severity"] for rule in alerts)


def test_every_alert_is_documented() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text()
    groups = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"]}
    assert alerts == set(re.findall(r"^\| `(Poller\w+)` \|", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("expression", "names", "labels"),
    [
        ('sum by (a, b) (rate(x_total{c=~"d(e)"}[5m])) > 0', {"x_total"}, {"a", "b", "c"}),
        ('absent(x) and on() (y{z!="1"} == 1)', {"x", "y"}, {"z"}),
        ("sum(x) - sum(x offset 1h) > 10", {"x"}, set()),
        ("histogram_quantile(0.9, sum by (le) (rate(a:b_bucket[5m])))", {"a:b_bucket"}, {"le"}),
    ],
)
def test_the_parts_of_an_expression_are_found(
    expression: str, names: set[str], labels: set[str]
) -> None:
    """The checks of this module can fail."""
    assert metric_tables.names_in(expression) == names
    assert metric_tables.labels_in(expression) == labels
