"""Jobs are found by entry point; a broken one is reported by name, and the others load."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import pytest

from poller import errors
from poller.domain.inventory.api_version import Served
from poller.jobs import api, registry
from poller.plugins import Fault


def handler(context: Any) -> None: ...


def spec(name: str, **values: Any) -> api.JobSpec:
    return api.job(every_s=60, name=name, **values)(handler)


class Point(EntryPoint):
    """An entry point that loads an object of this module."""


OBJECTS: dict[str, Any] = {
    "tidy": spec("tidy"),
    "rollup": spec("rollup"),
    "misnamed": spec("another"),
    "plain": handler,
    "future": spec("future", api_version=99),
    "old": spec("old", api_version=(1, 1)),
    "versionless": spec("versionless", api_version="one"),  # type: ignore[arg-type]
}


def point(name: str, distribution: str = "poller-acme", target: str = "") -> EntryPoint:
    dist = SimpleNamespace(name=distribution, version="1.0")
    made = EntryPoint(name, f"{__name__}:{target or name}", registry.GROUP)
    return made._for(dist)  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points of the tests lead to objects of this module."""

    def load(point: EntryPoint) -> Any:
        if point.attr == "exits":
            raise SystemExit("no")
        if point.attr == "refused":
            return api.job(every_s=-1, name="refused")(handler)
        return OBJECTS[point.attr]

    monkeypatch.setattr(EntryPoint, "load", load)


def test_jobs_are_loaded_with_their_package_and_queue() -> None:
    """A queue has the jobs of one package."""
    found = registry.load([point("tidy"), point("rollup"), point("old", "Poller_Other.Jobs")])
    assert sorted(found.jobs) == ["old", "rollup", "tidy"]
    assert found.distributions["tidy"] == "poller-acme 1.0"
    queues = {queue: [each.name for each in jobs] for queue, jobs in found.by_queue().items()}
    assert queues == {"job.poller-acme": ["rollup", "tidy"], "job.poller-other-jobs": ["old"]}
    assert found.broken == ()


@pytest.mark.parametrize(
    ("name", "state", "reason"),
    [
        ("exits", Fault.IMPORT, "SystemExit: no"),
        ("missing", Fault.IMPORT, "KeyError: 'missing'"),
        ("refused", Fault.IMPORT, 'job "refused": every_s: -1 is not a number'),
        ("plain", Fault.CONTRACT, "it is no poller.jobs.api.JobSpec but a function"),
        ("misnamed", Fault.CONTRACT, 'it calls itself "another"'),
        ("future", Fault.VERSION, "it needs job API 99, this poller serves 1"),
        ("versionless", Fault.CONTRACT, "its api_version is 'one'"),
    ],
)
def test_a_broken_job_is_reported_and_the_others_load(name: str, state: str, reason: str) -> None:
    """With its package, and a hint where there is one."""
    found = registry.load([point("tidy"), point(name)])
    [broken] = found.broken
    assert (broken.name, broken.distribution, broken.state) == (name, "poller-acme 1.0", state)
    assert reason in broken.reason
    assert list(found.jobs) == ["tidy"]
    with pytest.raises(errors.NotFound, match=f'job "{name}" .poller-acme 1.0. cannot be used'):
        found.get(name)


def test_of_two_jobs_with_one_name_the_built_in_stays() -> None:
    """A package cannot replace a job of ours."""
    found = registry.load([point("tidy", "aaa-acme"), point("tidy", "poller")])
    assert found.distributions == {"tidy": "poller 1.0"}
    [broken] = found.broken
    assert (broken.distribution, broken.state) == ("aaa-acme 1.0", Fault.DUPLICATE)
    assert "taken by poller 1.0" in broken.reason


def test_an_older_version_of_the_contract_is_adapted_and_its_end_announced() -> None:
    """As for collectors and sinks."""
    served = {1: Served(ends="3.0", adapt=lambda each: each), 2: Served()}
    found = registry.load([point("tidy")], served)
    assert found.api_versions == {"tidy": 1}
    assert "poller 3.0 will not serve" in found.deprecated["tidy"]


def test_an_unknown_job_names_the_nearest() -> None:
    """A typing mistake is easily seen."""
    found = registry.load([point("tidy")])
    assert found.get("tidy").name == "tidy"
    with pytest.raises(errors.NotFound, match='job "tidi" is not installed here') as caught:
        found.get("tidi")
    assert caught.value.hint == "did you mean tidy?"


def test_the_services_of_a_process_have_the_installed_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded at the first use, once."""
    from poller import plugins
    from poller.bootstrap import Services

    monkeypatch.setattr(plugins, "points", lambda group: ([point("tidy")], []))
    services = Services(None)  # type: ignore[arg-type]
    assert list(services.jobs.jobs) == ["tidy"]
    assert services.jobs is services.jobs
