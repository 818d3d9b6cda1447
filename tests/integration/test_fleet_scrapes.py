"""`/metrics/readings` and `/sd` over HTTP, on real stores, read by the parsers of Prometheus."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text_format

from poller import errors
from poller.bootstrap import Services
from poller.db.inventory import devices, targets
from poller.db.record import stored_readings
from poller.db.record.stored_readings import Stored
from poller.domain.access import scopes
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.scopes import Scope
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.presentation.record import reading_families
from poller.presentation.record.reading_families import Families, Format
from poller.service.results import fleet_scrape, latest_polls
from poller.service.results.fleet_scrape import FleetScrapes, Scrape
from tests.integration import api_clients
from tests.integration.api_clients import TestClient

OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}


def readings(octets: float) -> ReadingSet:
    """Counters of two kinds of names, a gauge, and a label that the platform has, too."""
    return ReadingSet.of(
        [
            Reading("ifHCInOctets", octets, {"ifName": 'eth"0'}, Kind.COUNTER, 64),
            Reading("requests_total", 7.0, {}, Kind.COUNTER),
            Reading("temperature", 21.5, {"device": "sensor 1"}),
            Reading("model_info", 1.0, {"model": "a\nb\\c"}, Kind.INFO),
        ]
    )


@pytest.fixture
def fleet(services: Services) -> Services:
    """Four devices: three in ams (fresh, too old, never read) and one fresh one in ber."""
    now_ms = time.time_ns() // 1_000_000
    ages_s = {"sw1": 30, "old": 200, "never": None, "sw2": 10}
    polls = []
    for name, age_s in ages_s.items():
        site = "ber" if name == "sw2" else "ams"
        draft = DeviceDraft(name, address="192.0.2.1", site=site, tags=("core",))
        snmp = TargetDraft(collector="snmp", interval_ms=60_000, options={"port": 1161})
        devices.add(services.engine, draft, [snmp])
        if age_s is not None:
            target_id = targets.show(services.engine, name, "snmp").id
            polls.append(Stored(target_id, now_ms - age_s * 1000, readings(1e15 + age_s)))
    stored_readings.Writer(services.engine).write(polls, now_ms)
    return services


def scraped(api: TestClient, path: str = "/metrics/readings", **params: str) -> dict[str, list]:  # type: ignore[type-arg]
    """The samples of a scrape in OpenMetrics, by the name of their metric."""
    response = api.get(path, params=params, headers=OPENMETRICS)
    assert response.status_code == 200, response.text
    return {family.name: family.samples for family in openmetrics(response.text)}


def test_a_scrape_has_the_last_values_that_are_not_too_old(fleet: Services) -> None:
    """Values have the labels of their target and no time; a target's age is a metric."""
    found = scraped(api_clients.client(fleet))
    octets = {sample.labels["device"]: sample for sample in found["ifHCInOctets"]}
    assert octets["sw1"].labels == {
        "collector": "snmp",
        "device": "sw1",
        "ifName": 'eth"0',
        "site": "ams",
        "tag": "core",
        "target": "snmp",
    }
    assert octets["sw1"].value == 1e15 + 30
    assert octets["sw1"].timestamp is None
    assert set(octets) == {"sw1", "sw2"}
    assert found["temperature"][0].labels["exported_device"] == "sensor 1"
    assert found["model_info"][0].labels["model"] == "a\nb\\c"

    ages = {each.labels["device"]: each.value for each in found["poller_readings_age_seconds"]}
    assert 30 <= ages["sw1"] < 40
    assert 200 <= ages["old"] < 210
    assert "never" not in ages
    numbers = {s.labels["freshness"]: s.value for s in found["poller_readings_targets"]}
    assert numbers == {"fresh": 2, "old": 1, "never": 1}


def test_both_formats_have_the_same_values(fleet: Services) -> None:
    """The older text format has counters by any name, OpenMetrics only those with `_total`."""
    api = api_clients.client(fleet)
    response = api.get("/metrics/readings")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    older = {family.name: family for family in text_format(response.text)}
    newer = {
        family.name: family
        for family in openmetrics(api.get("/metrics/readings", headers=OPENMETRICS).text)
    }
    assert older["ifHCInOctets"].type == "counter"
    assert newer["ifHCInOctets"].type == "unknown"
    assert newer["requests"].type == "counter"
    assert len(older["ifHCInOctets"].samples) == len(newer["ifHCInOctets"].samples) == 2


def test_a_scrape_can_be_of_a_part_of_the_fleet(fleet: Services) -> None:
    """Sites, tags and filters select; a token of one site sees that site only."""
    api = api_clients.client(fleet)
    [sample] = scraped(api, site="ber")["ifHCInOctets"]
    assert sample.labels["device"] == "sw2"
    assert "ifHCInOctets" not in scraped(api, where="name:old")
    assert len(scraped(api, tag="core")["ifHCInOctets"]) == 2
    assert api.get("/metrics/readings", params={"site": "amss"}).status_code == 422
    assert api.get("/metrics/readings", params={"where": "colour:red"}).status_code == 422
    assert api.get("/metrics/readings", params={"tagg": "core"}).status_code == 422
    assert api.get("/sd", params={"sites": "ams"}).status_code == 422

    of_ber = api_clients.client(fleet, (Scope.SCRAPE,), site="ber")
    [sample] = scraped(of_ber)["ifHCInOctets"]
    assert sample.labels["device"] == "sw2"
    assert of_ber.get("/metrics/readings", params={"site": "ams"}).status_code == 403


def test_large_metrics_go_through_a_file(fleet: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrape whose lines do not fit into memory is the same, and lines are kept for the next."""
    api = api_clients.client(fleet)
    before = scraped(api)["ifHCInOctets"]
    monkeypatch.setattr(reading_families, "MEMORY_BYTES", 10)
    monkeypatch.setattr(reading_families, "CHUNK_BYTES", 7)
    assert scraped(api)["ifHCInOctets"] == before


def test_a_reader_that_cannot_wait_is_told_what_to_do(fleet: Services) -> None:
    """A scrape that takes longer than Prometheus waits ends with a hint instead of values."""
    headers = {"X-Prometheus-Scrape-Timeout-Seconds": "0.000001"}
    response = api_clients.client(fleet).get("/metrics/readings", headers=headers)
    assert response.status_code == 503
    assert "took longer" in response.text


def test_scrapes_that_wait_leave_threads_to_others(
    fleet: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One scrape more than may wait is told so at once."""
    monkeypatch.setattr(fleet_scrape, "MOST_SCRAPES", 1)
    scrapes = FleetScrapes(fleet)
    is_begun, may_end = threading.Event(), threading.Event()

    def slow(*_: object) -> Iterator[Any]:
        is_begun.set()
        assert may_end.wait(10)
        yield []

    monkeypatch.setattr(latest_polls, "pages", slow)
    nobody = Actor("ci", ActorKind.TOKEN, "127.0.0.1", scopes.granted([Scope.SCRAPE]))
    scrape = Scrape(nobody, TargetFilter(), Format.TEXT, 10.0)
    first = threading.Thread(target=lambda: scrapes.families(scrape).close())
    first.start()
    assert is_begun.wait(10)
    with pytest.raises(errors.StoreUnavailable, match="are read already"):
        scrapes.families(scrape)
    may_end.set()
    first.join(10)
    being_read = scrapes.families(scrape)
    with pytest.raises(errors.StoreUnavailable, match="are read already"):
        scrapes.families(scrape)
    del being_read
    scrapes.families(scrape).close()


def test_more_metrics_than_files_are_a_scrape(fleet: Services) -> None:
    """Devices choose the names of metrics; none of them needs a file of its own."""
    families = Families(Format.TEXT)
    open_before = len(os.listdir("/proc/self/fd"))
    for number in range(50):
        line = reading_families.gauge(f"m{number:02}", (("text", "x" * 200_000),))
        families.add(line, [1.0])
        families.flush()
    assert len(os.listdir("/proc/self/fd")) <= open_before + 1
    text = b"".join(families.chunks()).decode()
    assert [line for line in text.split("\n") if line.startswith("#")] == [
        f"# TYPE m{number:02} gauge" for number in range(50)
    ]
    families.close()


def test_devices_are_listed_for_discovery(fleet: Services) -> None:
    """`/sd` has a target group for each device with its address, port and facts."""
    api = api_clients.client(fleet)
    groups = api.get("/sd", params={"site": "ber"}).json()
    assert groups == [
        {
            "targets": ["192.0.2.1:1161"],
            "labels": {
                "__meta_poller_device": "sw2",
                "__meta_poller_site": "ber",
                "__meta_poller_address": "192.0.2.1",
                "__meta_poller_tags": ",core,",
                "__meta_poller_collectors": ",snmp,",
                "__meta_poller_snmp_interval_seconds": "60",
            },
        }
    ]
    assert len(api.get("/sd").json()) == 4
    assert api.get("/sd", params={"tag": "edge"}).json() == []
    devices.edit(fleet.engine, "sw2", DeviceDraft("sw2", enabled=False))
    assert api.get("/sd", params={"site": "ber"}).json() == []
