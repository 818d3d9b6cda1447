"""PromQL over remote write against the verdict engine: a router reboots, and counters wrap.

A simulated router is polled by SNMP every 15 seconds of its own clock. Two sinks take turns, as two
workers do, and share only Redis. Debian's snmp_exporter, scraped at the same instants, stands
beside it: `make rates` shows both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest
import redis
import yaml

from benchmarks import if_mib
from poller.domain.metrics.counters import Verdict
from poller.settings import Settings
from poller.sim import fleet
from poller.sim.fleet import Fault
from poller.sinks.api import Stores
from poller.sinks.remote_write import RemoteWriteSink
from poller.sinks.remote_write.options import RemoteWriteOptions
from tests.conftest import wait_until
from tests.integration import counter_windows, exporters, watched_routers
from tests.integration.counter_windows import off, windows
from tests.integration.page_server import PageServer
from tests.integration.store_servers import Prometheus
from tests.integration.watched_routers import POLLS, Watched
from tests.remote_write_receiver import receiving

Routers = Mapping[Fault, Watched]


@pytest.fixture(scope="module")
def routers() -> Routers:
    return watched_routers.routers()


@pytest.fixture(scope="module")
def scraped(
    prometheus: Prometheus, routers: Routers, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The label `case` of the samples that Prometheus scraped from snmp_exporter."""
    directory = tmp_path_factory.mktemp("exporter")
    how = {"version": 2, "auth": {"community": fleet.COMMUNITY}}
    config = directory / "snmp.yml"
    config.write_text(yaml.safe_dump({if_mib.NAME: {**if_mib.module(), **how}}))
    with exporters.exporter(config, directory) as address:
        pages = {
            watched.target.device: watched_routers.scraped_pages(watched, address, if_mib.NAME)
            for watched in routers.values()
        }
    instants = [at_ms for at_ms, _ in routers[Fault.NONE].polls]
    case = "scraped"
    _scrape_in_turn(prometheus, pages, instants, case)
    return case


def _scrape_in_turn(
    prometheus: Prometheus, pages: Mapping[str, list[str]], instants: Sequence[int], case: str
) -> None:
    """Show Prometheus one page of each device after another. The pages say their instants."""
    stored = f'count by (device) (count_over_time(ifMtu{{case="{case}"}}[1s]))'

    def all_have(at_ms: int) -> bool:
        return len(prometheus.query(stored, at_ms)) == len(pages)

    with PageServer() as server:
        jobs = [_job(server.address, device, case) for device in pages]
        with prometheus.scraping(jobs):
            for number, at_ms in enumerate(instants):
                server.pages = {f"/{device}": every[number] for device, every in pages.items()}
                wait_until(partial(all_have, at_ms), f"the scrape of page {number}")


def _job(address: str, device: str, case: str) -> dict[str, Any]:
    labels = {"case": case, "device": device}
    return {
        "job_name": device,
        "metrics_path": f"/{device}",
        "scrape_interval": "100ms",
        "scrape_timeout": "100ms",
        "static_configs": [{"targets": [address], "labels": labels}],
    }


def sinks(url: str, client: redis.Redis, case: str, **options: Any) -> list[RemoteWriteSink]:
    stores = Stores(None, client, Settings(), case)
    checked = RemoteWriteOptions(url=url, labels={"case": case}, **options)
    return [RemoteWriteSink(stores, checked) for _ in range(2)]


def write_in_turns(made: list[RemoteWriteSink], watched: Watched) -> None:
    for number, sample in enumerate(watched.samples()):
        made[number % len(made)].write([sample])


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [(Fault.NONE, Verdict.WRAP), (Fault.REBOOT, Verdict.RESET)],
    ids=["wraps", "reboots"],
)
def test_rates_are_right_and_those_of_a_scraped_exporter_stand_beside(
    prometheus: Prometheus,
    redis_client: redis.Redis,
    routers: Routers,
    scraped: str,
    fault: Fault,
    verdict: Verdict,
) -> None:
    """Every window of every counter has the increase of the verdicts. PromQL takes a wrap of a
    scraped counter for a restart at 0.
    """
    watched = routers[fault]
    write_in_turns(sinks(f"{prometheus.url}/api/v1/write", redis_client, fault.name), watched)
    ours = windows(prometheus, watched, fault.name)
    theirs = windows(prometheus, watched, scraped)
    print("\n" + counter_windows.table(verdict, ours, theirs))

    assert any(verdict in window.verdicts for window in ours)
    assert off(ours) == []
    lost = off(theirs)
    assert bool(lost) or verdict is not Verdict.WRAP
    assert all(window.actual < window.expected for window in lost)


def test_version_2_tells_when_counters_started(redis_client: redis.Redis, routers: Routers) -> None:
    """A start changes with a reboot only, whichever sink sends it, and lies after the reboot."""
    watched = routers[Fault.REBOOT]
    with receiving() as receiver:
        write_in_turns(sinks(receiver.url, redis_client, "starts", protocol="2.0"), watched)
    uptimes = {each.at_ms: each.value for each in receiver.samples if each.name == "sysUpTime"}
    every = [each for each in receiver.samples if each.name == "ifHCInOctets"]
    busiest = max(every, key=lambda each: each.value).labels
    octets = [each for each in every if each.labels == busiest]
    claimed = [each for each in octets if each.start_ms]
    assert len(claimed) == POLLS - 1  # all but the first, which has none to compare with
    booted_ms = {each.at_ms - round(uptimes[each.at_ms] * 10) for each in claimed}
    assert {each.start_ms for each in claimed} == booted_ms
    assert len(booted_ms) == 3
