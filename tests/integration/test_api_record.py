"""Runs, events, readings and rates over HTTP, on real stores."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from poller.bootstrap import Services
from poller.db.inventory import devices, targets
from poller.db.record import event_rows, run_ledger, stored_readings
from poller.db.record.stored_readings import Stored
from poller.domain.access.scopes import Scope
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.metrics.reading import Kind as SeriesKind
from poller.domain.metrics.reading import ReadingSet, Series, SeriesSet
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.run import Run
from poller.service.record import reading_listing
from poller.state.cluster import event_stream
from tests.integration import api_clients
from tests.integration.api_clients import TestClient

READ = (Scope.READ,)
NOW = time.time_ns() // 1_000_000
MINUTE = 60_000


def ago(minutes: float) -> str:
    """An instant some minutes before `NOW`, as a program writes it."""
    at_s = (NOW - minutes * MINUTE) / 1000
    return datetime.fromtimestamp(at_s, UTC).isoformat()


@pytest.fixture
def ids(services: Services) -> dict[str, int]:
    """Two devices in two sites; the ids of their targets by device."""
    found = {}
    for name, site in (("sw1", "ams"), ("sw2", "ber")):
        draft = DeviceDraft(name, address="192.0.2.1", site=site)
        devices.add(services.engine, draft, [TargetDraft(collector="snmp")])
        found[name] = targets.show(services.engine, name, "snmp").id
    return found


def write_runs(services: Services, target_id: int, count: int, **fields: object) -> None:
    """Runs of one target, one a minute before now."""
    values = {"outcome": Result.OK, "token": "t", **fields}
    rows = []
    for number in range(1, count + 1):
        at_ms = NOW - number * MINUTE
        times = {"started_ms": at_ms + 20, "finished_ms": at_ms + 120}
        rows.append(Run(target_id, at_ms, **times, **values))  # type: ignore[arg-type]
    run_ledger.write(services.engine, rows)


def pages(api: TestClient, path: str, **params: object) -> list[dict[str, object]]:
    """The items of all pages."""
    found: list[dict[str, object]] = []
    cursor = ""
    while True:
        response = api.get(f"/api/v1{path}", params={**params, "cursor": cursor})  # type: ignore[dict-item]
        assert response.status_code == 200, response.text
        page = response.json()
        found += page["items"]
        cursor = page["next"]
        if cursor is None:
            return found
        assert f"cursor={cursor}" in response.headers["link"]


def test_runs_have_the_fields_of_the_command(services: Services, ids: dict[str, int]) -> None:
    """A run has its names, its instants in UTC, and durations in seconds."""
    failed = {"outcome": Result.FAILED, "error_code": "timeout", "message": "no answer"}
    write_runs(services, ids["sw1"], 1, **failed)
    [item] = api_clients.client(services).get("/api/v1/runs").json()["items"]
    assert (item["device"], item["target"], item["outcome"]) == ("sw1", "snmp", "failed")
    assert (item["error_code"], item["category"]) == ("timeout", "transient")
    assert (item["late_seconds"], item["took_seconds"]) == (0.02, 0.1)
    assert item["planned"].endswith("Z")


@pytest.mark.parametrize(
    ("params", "number"),
    [
        ({}, 40),
        ({"device": "sw1"}, 30),
        ({"device": "sw1", "target": "snmp", "outcome": ["failed", "refused"]}, 10),
        ({"code": "timeout"}, 10),
        ({"where": "site:ber"}, 10),
        ({"where": "site:ber", "device": "sw1"}, 0),
        ({"since": ago(5.5)}, 15),
        ({"until": ago(15.5)}, 5),
        ({"outcome": "gone"}, 0),
    ],
)
def test_runs_are_filtered_page_by_page(
    services: Services, ids: dict[str, int], params: dict[str, str], number: int
) -> None:
    """Filters combine, and the pages have every run once."""
    write_runs(services, ids["sw1"], 20)
    write_runs(services, ids["sw2"], 10)
    failed = [
        Run(ids["sw1"], NOW - number * MINUTE - 7, Result.FAILED, error_code="timeout")
        for number in range(1, 11)
    ]
    run_ledger.write(services.engine, failed)
    found = pages(api_clients.client(services), "/runs", limit=3, **params)
    assert len(found) == number
    assert len({(item["planned"], item["target_id"], item["outcome"]) for item in found}) == number


def test_runs_of_a_removed_target_are_found_by_its_id(
    services: Services, ids: dict[str, int]
) -> None:
    """The ledger outlives the target; an id that never was is unknown."""
    write_runs(services, ids["sw1"], 2)
    devices.remove(services.engine, ["sw1"])
    api = api_clients.client(services)
    found = pages(api, f"/targets/{ids['sw1']}/runs")
    assert [item["device"] for item in found] == ["", ""]
    assert pages(api, f"/targets/{ids['sw2']}/runs") == []
    assert api.get("/api/v1/targets/999999/runs").status_code == 404
    assert api.get("/api/v1/runs?target_id=999999").status_code == 404


@pytest.mark.parametrize(
    ("path", "status", "part"),
    [
        ("/runs?device=sw9", 404, "sw1"),
        ("/runs?target=snmp", 422, "device"),
        ("/runs?code=nonsense", 422, "code"),
        ("/runs?outcome=nonsense", 422, "outcome"),
        ("/runs?where=nonsense", 422, "nonsense"),
        ("/runs?where=site:nowhere", 422, "nowhere"),
        ("/runs?since=yesterday", 422, "since"),
        ("/runs?since=" + "9" * 41, 422, "since"),
        ("/runs?limit=501", 422, "limit"),
        ("/runs?cursor=WyJhIiwxXQ", 422, "cursor"),
        ("/runs?target_id=9223372036854775808", 422, "target_id"),
        ("/runs?device=%00", 422, "NUL"),
        ("/events?device=sw9", 404, "sw1"),
        ("/events?kind=nonsense", 422, "kind"),
        ("/events?cursor=WzEsMl0", 422, "cursor"),
    ],
)
def test_a_wrong_question_is_refused(
    services: Services, ids: dict[str, int], path: str, status: int, part: str
) -> None:
    """The problem names the parameter."""
    response = api_clients.client(services).get(f"/api/v1{path}")
    assert response.status_code == status
    problem = response.json()
    assert part in problem["detail"] + problem["hint"]


@pytest.mark.parametrize(
    "since", ["2026-01-01T00:00:00Z", "0001-01-01", "9999-12-31T23:59:59+00:00", "1e3", "9" * 40]
)
def test_any_instant_is_answered(services: Services, ids: dict[str, int], since: str) -> None:
    """Instants at the ends of time are accepted or refused, never an error of the server."""
    for path in ("runs", "events"):
        params = {"since": since, "until": since}
        assert api_clients.client(services).get(f"/api/v1/{path}", params=params).status_code in (
            200,
            422,
        )


def test_a_token_of_one_site_sees_its_runs_only(services: Services, ids: dict[str, int]) -> None:
    """Runs of other sites are neither listed nor found by name or id."""
    write_runs(services, ids["sw1"], 3)
    write_runs(services, ids["sw2"], 2)
    api = api_clients.client(services, READ, "ber")
    assert {item["device"] for item in pages(api, "/runs", limit=1)} == {"sw2"}
    assert len(pages(api, f"/targets/{ids['sw2']}/runs")) == 2
    for path in (
        "/runs?device=sw1",
        f"/runs?target_id={ids['sw1']}",
        f"/targets/{ids['sw1']}/runs",
    ):
        assert api.get(f"/api/v1{path}").status_code == 404
    assert api.get("/api/v1/runs?where=site:ams").status_code == 403


def test_a_token_of_a_site_without_devices_sees_nothing(
    services: Services, ids: dict[str, int]
) -> None:
    """An empty site is not a site without a limit."""
    write_runs(services, ids["sw1"], 1)
    publish(services, Event(NOW, Kind.CLOCK_MOVED, "moved"))
    devices.remove(services.engine, ["sw2"])
    api = api_clients.client(services, READ, "ber")
    assert pages(api, "/runs") == pages(api, "/events") == []


def publish(services: Services, *events: Event) -> None:
    """Put events on the stream, as a worker does."""
    event_stream.publish(services.redis, services.keys, events, 1_000)


def copy_to_sql(services: Services, count: int) -> None:
    """Copy the oldest entries to SQL, as the leader does."""
    client, keys = services.redis, services.keys
    entries = event_stream.after(client, keys, event_stream.recorded(client, keys), count)
    event_rows.record(services.engine, [(each.id, each.event) for each in entries if each.event])
    event_stream.store_recorded(client, keys, entries[-1].id)


def some_events(number: int) -> Iterable[Event]:
    """Events of both devices and of none; several share an instant."""
    for each in range(number):
        device = ("sw1", "sw2", "")[each % 3]
        kind = Kind.DEVICE_WENT_DOWN if device else Kind.LEADERSHIP_TAKEN
        yield Event(NOW + each // 4, kind, f"m{each}", device, device_id=each % 3 or None)


def test_events_of_sql_and_of_the_stream_are_one_list(
    services: Services, ids: dict[str, int]
) -> None:
    """Each event is listed once, wherever it is by now, and the newest comes first."""
    publish(services, *some_events(30))
    copy_to_sql(services, 17)
    api = api_clients.client(services)
    found = pages(api, "/events", limit=4)
    assert sorted(str(item["message"]) for item in found) == sorted(f"m{n}" for n in range(30))
    assert [item["at"] for item in found] == sorted((item["at"] for item in found), reverse=True)


def test_events_that_are_copied_between_pages_are_listed_once(
    services: Services, ids: dict[str, int]
) -> None:
    """A page goes on by the id of the stream, which SQL has, too."""
    publish(services, *some_events(12))
    api = api_clients.client(services)
    first = api.get("/api/v1/events", params={"limit": 5}).json()
    copy_to_sql(services, 12)
    publish(services, Event(NOW + 99, Kind.CLOCK_MOVED, "new"))
    rest = api.get("/api/v1/events", params={"limit": 50, "cursor": first["next"]}).json()
    messages = [item["message"] for item in first["items"] + rest["items"]]
    assert sorted(messages) == sorted(f"m{number}" for number in range(12))


@pytest.mark.parametrize(
    ("params", "number"),
    [
        ({"kind": "leadership_taken"}, 10),
        ({"kind": ["leadership_taken", "device_went_down"]}, 30),
        ({"device": "sw1"}, 10),
        ({"where": "site:ber"}, 10),
        ({"since": "9999-01-01"}, 0),
        ({"bad": "true"}, 20),
    ],
)
def test_events_are_filtered(
    services: Services, ids: dict[str, int], params: dict[str, str], number: int
) -> None:
    """The filters are those of the command."""
    publish(services, *some_events(30))
    copy_to_sql(services, 17)
    assert len(pages(api_clients.client(services), "/events", limit=7, **params)) == number


def test_a_token_of_one_site_sees_its_events_only(services: Services, ids: dict[str, int]) -> None:
    """Neither events of other devices nor those without a device."""
    ber = devices.show(services.engine, "sw2").id
    ams = devices.show(services.engine, "sw1").id
    publish(
        services,
        Event(NOW, Kind.DEVICE_WENT_DOWN, "theirs", "sw1", device_id=ams),
        Event(NOW, Kind.DEVICE_WENT_DOWN, "ours", "sw2", device_id=ber),
        Event(NOW, Kind.BREAKER_OPENED, "by hand", "sw2", "snmp", target_id=ids["sw2"]),
        Event(NOW, Kind.DEVICE_WENT_DOWN, "an older sw2", "sw2", device_id=987654),
        Event(NOW, Kind.LEADERSHIP_TAKEN, "leader"),
    )
    api = api_clients.client(services, READ, "ber")
    assert {item["message"] for item in pages(api, "/events")} == {"ours", "by hand"}
    copy_to_sql(services, 5)
    assert {item["message"] for item in pages(api, "/events")} == {"ours", "by hand"}
    assert api.get("/api/v1/events?device=sw1").status_code == 404


def test_a_broken_entry_of_the_stream_breaks_no_list(
    services: Services, ids: dict[str, int]
) -> None:
    """An instant beyond the calendar is shown as its end."""
    publish(services, Event(2**62, Kind.CLOCK_MOVED, "far"))
    [item] = pages(api_clients.client(services), "/events")
    assert item["at"] == "9999-12-31T23:59:59Z"
    assert json.dumps(item)


def store_readings(services: Services, target_id: int, *at_ms: int) -> None:
    """Polls of three series: two counters and a gauge that is no number."""
    shape = SeriesSet(
        (
            Series("octets_total", (("if", "1"),), SeriesKind.COUNTER),
            Series("octets_total", (("if", "2"),), SeriesKind.COUNTER),
            Series("temperature", (), SeriesKind.GAUGE),
        )
    )
    writer = stored_readings.Writer(services.engine)
    for at in at_ms:
        grown = float(at - NOW + 10_000_000)
        values = ReadingSet(shape, [grown, 2 * grown, float("nan")])
        writer.write([Stored(target_id, at, values)], NOW)


def test_readings_are_the_last_values(services: Services, ids: dict[str, int]) -> None:
    """Page by page; NaN is null, and the metric is filtered by a part of its name."""
    store_readings(services, ids["sw1"], NOW - MINUTE, NOW)
    api = api_clients.client(services)
    for path in ("/devices/sw1/readings", f"/targets/{ids['sw1']}/readings"):
        found = pages(api, path, limit=2)
        assert [item["value"] for item in found] == [10_000_000, 20_000_000, None]
        assert found[1]["labels"] == {"if": "2"}
        assert [item["metric"] for item in pages(api, path, metric="temp")] == ["temperature"]
    assert pages(api, "/devices/sw1/readings", since="9999-01-01") == []
    assert pages(api, "/devices/sw2/readings") == []


def test_a_poll_between_two_pages_of_readings_mixes_nothing(
    services: Services, ids: dict[str, int]
) -> None:
    """The second page goes on with the poll that the first one began."""
    store_readings(services, ids["sw1"], NOW - MINUTE)
    api = api_clients.client(services)
    first = api.get("/api/v1/devices/sw1/readings?limit=1").json()
    store_readings(services, ids["sw1"], NOW)
    params = {"cursor": first["next"]}
    rest = api.get("/api/v1/devices/sw1/readings", params=params).json()
    ats = {item["at"] for item in first["items"] + rest["items"]}
    assert (len(ats), len(rest["items"])) == (1, 2)


def test_readings_since_an_instant_are_the_history_of_a_target(
    services: Services, ids: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest first, in pages that read few polls."""
    monkeypatch.setattr(reading_listing, "MOST_POLLS", 3)
    store_readings(services, ids["sw1"], *(NOW - number * MINUTE for number in range(10, 0, -1)))
    path = f"/targets/{ids['sw1']}/readings"
    api = api_clients.client(services)
    found = pages(api, path, since=ago(8.5), metric="octets", limit=5)
    assert len(found) == 16
    assert [item["at"] for item in found] == sorted(item["at"] for item in found)
    assert pages(api, path, since=ago(8.5), metric="nothing", limit=5) == []


def test_rates_have_pages(services: Services, ids: dict[str, int]) -> None:
    """Each counter has its newest rate; with `since` also the rates of that time."""
    store_readings(services, ids["sw1"], NOW - 2 * MINUTE, NOW - MINUTE, NOW)
    api = api_clients.client(services)
    found = pages(api, "/devices/sw1/rates", limit=1)
    assert [item["per_second"] for item in found] == [1000.0, 2000.0]
    assert "rates" not in found[0]
    [item] = api.get("/api/v1/devices/sw1/rates?since=1h&limit=1").json()["items"]
    assert item["mean_per_second"] == 1000.0
    assert len(item["rates"]) >= 2


def test_a_token_of_one_site_reads_its_devices_only(
    services: Services, ids: dict[str, int]
) -> None:
    """The readings of another site are not found."""
    store_readings(services, ids["sw1"], NOW)
    api = api_clients.client(services, READ, "ber")
    for path in ("devices/sw1/readings", "devices/sw1/rates", f"targets/{ids['sw1']}/readings"):
        assert api.get(f"/api/v1/{path}").status_code == 404
    assert api.get("/api/v1/devices/sw2/readings").status_code == 200
