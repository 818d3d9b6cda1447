"""After an upgrade of the contract, plugins of the older version work until a stated release."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from poller import testing
from poller.collectors import api, descriptions, registry
from poller.domain.failures.outcome import Result
from poller.domain.inventory.api_version import Served


class Older:
    """Written for version 1, as it is today."""

    name = "older"
    api_version = 1
    credentials = ()
    Options = api.Options

    async def collect(self, poll: api.Poll) -> AsyncIterator[Any]:
        yield api.Reading("one", 1.0)


class Newer(Older):
    """A collector of an imagined version 2, which lists its metrics and yields pairs."""

    name = "newer"
    api_version: Any = 2
    metrics = ("two",)


class Both(Newer):
    name = "both"
    api_version = (1, 2)


class AsIfNewer:
    """The adapter that such a release would put around a collector of version 1."""

    metrics: tuple[str, ...] = ()

    def __init__(self, plugin: Any) -> None:
        self._plugin = plugin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plugin, name)


NEXT_RELEASE = {1: Served(ends="2.0", adapt=AsIfNewer), 2: Served()}


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> registry.Registry:
    kinds = {"older": Older, "newer": Newer, "both": Both}
    monkeypatch.setattr(EntryPoint, "load", lambda point: kinds[point.name])
    points = [EntryPoint(name, "somewhere:Plugin", registry.GROUP) for name in kinds]
    return registry.load(points, NEXT_RELEASE)


def test_a_plugin_of_the_version_before_works_as_it_did(found: registry.Registry) -> None:
    """The adapter of the release translates; the plugin stays unchanged."""
    assert hasattr(found.get("older"), "metrics")
    done = asyncio.run(testing.collect(found.get("older"), "127.0.0.1"))
    assert (done.result, done.samples) == (Result.OK, 1)


def test_the_end_of_the_older_version_is_announced(found: registry.Registry) -> None:
    """A collector that supports the new version has no notice."""
    assert found.deprecated == {
        "older": "it uses collector API 1, which poller 2.0 will not serve any more"
    }
    assert found.api_versions == {"older": 1, "newer": 2, "both": 2}
    item = descriptions.describe(found.get("older"), found)
    assert (item["api_version"], item["api_versions"]) == (1, [1, 1])
    assert descriptions.describe(found.get("both"), found)["api_versions"] == [1, 2]


def test_today_the_newer_one_is_reported_and_the_older_one_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same plugins on this release."""
    kinds = {"older": Older, "newer": Newer, "both": Both}
    monkeypatch.setattr(EntryPoint, "load", lambda point: kinds[point.name])
    today = registry.load([EntryPoint(name, "somewhere:Plugin", registry.GROUP) for name in kinds])
    assert (set(today.collectors), today.deprecated) == ({"older", "both"}, {})
    assert [each.state for each in today.broken] == ["other API version"]
