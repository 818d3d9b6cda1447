"""The services of a process refuse settings that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from poller import errors
from poller.bootstrap import Services
from poller.settings import Settings
from poller.web import web_process


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    made: list[Services] = []

    def start(**settings: Any) -> Services:
        services = Services(Settings(home=tmp_path, **settings))
        made.append(services)
        services.publish_metrics("web")
        return services

    yield start
    for services in made:
        if services.metrics is not None:
            services.metrics.stop()


def test_metrics_are_not_opened_to_a_network_by_mistake(started: Any) -> None:
    """A role with such settings does not start."""
    with pytest.raises(errors.InvalidSetting, match="metrics_bind"):
        started(metrics_port=9108, metrics_bind="0.0.0.0")


def test_the_page_shows_the_processes_of_its_host(started: Any) -> None:
    text = web_process._process_metrics(started())
    assert b'poller_process_info{process="web",role="web"' in text


def test_the_page_leaves_processes_to_their_own_place(started: Any, tmp_path: Path) -> None:
    """No series is exposed twice."""
    services = started(metrics_file=tmp_path / "poller.prom")
    assert web_process._process_metrics(services) == b""


def test_a_second_call_publishes_nothing_new(started: Any) -> None:
    services = started()
    first = services.metrics
    services.publish_metrics("web")
    assert services.metrics is first


@pytest.mark.parametrize(
    ("name", "value"),
    [("metrics_file", "/var/lib/node_exporter/poller.txt"), ("metrics_token", "two words")],
)
def test_a_place_that_cannot_work_is_refused(name: str, value: str) -> None:
    """node_exporter reads *.prom only, and a header carries no spaces."""
    with pytest.raises(ValueError, match=name):
        Settings(**{name: value})  # type: ignore[arg-type]
