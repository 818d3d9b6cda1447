"""What people do with alerts, from the command line and the API: look, acknowledge, silence."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
import sqlalchemy as sa

from poller.bootstrap import Services
from poller.db import engine as sql
from poller.db.alerts import alert_row
from poller.db.alerts.alert_tables import alert_rules, alerts
from poller.db.inventory import devices
from poller.domain.access.scopes import Scope
from poller.domain.alerts.alert import Alert, AlertState, Subject
from poller.domain.alerts.rule import Severity
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from tests.integration import api_clients
from tests.integration.audited_actions import audited, facts
from tests.integration.commands import Cli, ok

API = "/api/v1"
NOW = time.time_ns() // 1_000_000


@pytest.fixture
def ids(services: Services) -> list[int]:
    """An alert of sw1 in fra, one that it covers, and one of the dark site ber."""
    engine = services.engine
    for name, site in (("sw1", "fra"), ("sw2", "fra"), ("sw3", "ber")):
        devices.add(
            engine,
            DeviceDraft(name, "192.0.2.1", site=site),
            [TargetDraft(name="snmp", collector="snmp")],
        )
    first = devices.show(engine, "sw1").id
    second = devices.show(engine, "sw2").id
    alert = Alert(
        rule="unreachable",
        severity=Severity.CRITICAL,
        subject=Subject(first, None, "sw1", "", "fra"),
        state=AlertState.FIRING,
        since_ms=NOW - 60_000,
        seen_ms=NOW,
        fired_ms=NOW - 60_000,
        text="sw1 does not respond",
    )
    rows = [
        alert,
        replace(alert, subject=Subject(second, None, "sw2", "", "fra"), suppressed_by="alert:1"),
        replace(alert, rule="site-dark", subject=Subject(site="ber"), text="ber is dark"),
    ]
    rule = {"owner": "builtin", "enabled": True, "body": {}, "version": 1, "updated_ms": 1}
    insert = sa.insert(alerts).returning(alerts.c.id)
    with sql.writing(engine) as conn:
        conn.execute(sa.insert(alert_rules).values(name="uplink", **rule))
        return [conn.execute(insert.values(alert_row.to_values(row))).scalar_one() for row in rows]


@pytest.fixture
def api(services: Services) -> api_clients.TestClient:
    return api_clients.client(services)


def test_the_list_shows_what_nothing_covers(cli: Cli, ids: list[int]) -> None:
    """A child of an outage is counted, not listed; a filter selects by device and site."""
    listed = ok(cli("alerts", "--json")).json["items"]
    assert [each["id"] for each in listed] == [ids[2], ids[0]]
    every = ok(cli("alerts", "list", "--suppressed"))
    assert "by alert:1" in every.out
    assert "open: 2 firing (2 critical), 1 suppressed" in every.err
    none = ok(cli("alerts", "--rule", "another"))
    assert "no alert matches; open in all: 2 firing (2 critical), 1 suppressed" in none.err
    for words, found in (
        (("--where", "name:sw1"), [ids[0]]),
        (("--site", "ber"), [ids[2]]),
        (("--collector", "snmp", "--suppressed"), [ids[1], ids[0]]),
        (("--severity", "warning"), []),
        (("--rule", "site-dark"), [ids[2]]),
        (("--alert-state", "resolved"), []),
    ):
        items = ok(cli("alerts", "list", *words, "--json")).json["items"]
        assert [each["id"] for each in items] == found, words
    assert cli("alerts", "list", "--site", "frb", "--json").error["code"] == "P107"


def test_an_alert_is_acknowledged_and_silenced(
    cli: Cli, services: Services, ids: list[int]
) -> None:
    """Each act has an end, and is in the history and the audit log."""
    number = str(ids[0])
    done = ok(cli("alerts", "ack", number, "--note", "on my way", "--for", "2h", "--json")).json
    assert done["items"][0]["acknowledged_note"] == "on my way"
    ok(cli("alerts", "unack", number))
    assert cli("alerts", "unack", number, "--json").error["message"] == (
        f"alert {number} is not acknowledged"
    )
    made = ok(cli("alerts", "silence", number, "--for", "1d", "--reason", "waits for a part"))
    assert f"silenced alert {number} until " in made.out
    shown = ok(cli("alerts", "show", number))
    assert "waits for a part" in shown.out
    kinds = [each["kind"] for each in ok(cli("alerts", "show", number, "--json")).json["changes"]]
    assert kinds == ["acknowledged", "unacknowledged", "silenced"]
    [silence] = ok(cli("maintenance", "--json")).json["items"]
    assert (silence["state"], silence["alert"]) == ("active", f"unreachable|device:{1}||")
    assert "one alert of the rule unreachable" in ok(cli("maintenance")).out
    ok(cli("maintenance", "end", str(silence["id"])))
    assert ok(cli("maintenance", "list", "--json")).json["items"] == []
    assert cli("maintenance", "end", str(silence["id"])).code == 2
    assert [row.action for row in audited(services)] == [
        "alert.acknowledge",
        "alert.unacknowledge",
        "alert.silence",
        "maintenance.end",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ack", "4711"), "no alert has the id 4711"),
        (("ack", "{id}", "--until", "2020-01-01T00:00Z"), "until: it has passed"),
        (("ack", "{id}", "--for", "60d"), "until: it is more than 31 days from now"),
        (("ack", "{id}", "--for", "soon"), '--until: "soon" is not a duration'),
        (("silence", "{id}", "--for", "9999d", "--reason", "x"), "end: it is more than 366 days"),
        (("silence", "{id}", "--for", "1h", "--reason", " "), "reason: it is empty"),
    ],
)
def test_a_wrong_act_changes_nothing(
    cli: Cli, ids: list[int], words: tuple[str, ...], message: str
) -> None:
    """Each refusal names the field."""
    refused = cli("alerts", *(word.format(id=ids[0]) for word in words), "--json")
    assert refused.code in (2, 3)
    assert refused.error["message"].startswith(message)
    shown = ok(cli("alerts", "show", str(ids[0]), "--json")).json
    assert (shown["changes"], shown["acknowledged_by"]) == ([], "")


def test_maintenance_recurs_until_an_end(cli: Cli, ids: list[int]) -> None:
    """A patch day each Sunday, by the wall clock of its place."""
    words = ["--reason", "patch day", "--cron", "0 2 * * sun", "--time-zone", "Europe/Berlin"]
    add = ["maintenance", "add", "--rule", "uplink", "--until", "300d", *words]
    assert "length" in cli(*add, "--json").error["message"]
    typo = cli(*(word.replace("uplink", "uplnk") for word in add), "--length", "2h", "--json")
    assert typo.error["try"] == "did you mean uplink? (or: poller rules)"
    made = ok(cli(*add, "--length", "2h", "--json")).json
    assert (made["state"], made["length_seconds"], made["cron"]) == ("waiting", 7200, "0 2 * * sun")
    listed = ok(cli("maintenance", "list")).out
    assert "rule uplink" in listed
    assert "0 2 * * sun Europe/Berlin" in listed
    empty = cli("maintenance", "add", "--where", "", "--reason", "x", "--for", "1h", "--json")
    assert empty.error["message"] == "--where: the filter is empty"


def test_the_api_does_the_same(
    api: api_clients.TestClient, services: Services, ids: list[int]
) -> None:
    """Lists have pages, and every act has its audit row."""
    first = api.get(f"{API}/alerts", params={"limit": 2}).json()
    assert [each["id"] for each in first["items"]] == [ids[2], ids[1]]
    rest = api.get(f"{API}/alerts", params={"limit": 2, "cursor": first["next"]}).json()
    assert ([each["id"] for each in rest["items"]], rest["next"]) == ([ids[0]], None)
    numbers = api.get(f"{API}/alerts/numbers").json()
    assert (numbers["firing"], numbers["suppressed"]) == (2, 1)

    path = f"{API}/alerts/{ids[0]}"
    done = api.post(f"{path}/acknowledge", json={"note": "mine", "until": "4h"}).json()
    assert (done["acknowledged_by"], done["acknowledged_note"]) == ("ci", "mine")
    assert api.post(f"{path}/unacknowledge").json()["acknowledged_by"] == ""
    silence = api.post(f"{path}/silence", json={"reason": "spare part", "until": "1d"})
    assert (silence.status_code, silence.json()["state"]) == (201, "active")
    ended = api.post(f"{API}/maintenances/{silence.json()['id']}/end").json()
    assert ended["state"] == "over"
    refused = api.post(f"{API}/maintenances", json={"where": "site:fra", "reason": "x", "end": "0"})
    assert refused.status_code == 422
    assert refused.json()["fields"][0]["field"] == "end"
    added = api.post(
        f"{API}/maintenances", json={"where": "site:fra", "reason": "rack", "end": "2h"}
    )
    assert added.json()["where"] == "site:fra"
    assert facts(audited(services)[-1]) == ("ci", "maintenance.add", "site:fra", 1)


def test_a_token_of_one_site_sees_and_covers_that_site(services: Services, ids: list[int]) -> None:
    """Alerts and maintenances of other sites do not exist for it."""
    api = api_clients.client(services, [Scope.OPERATE], "fra")
    listed = api.get(f"{API}/alerts").json()["items"]
    assert [each["id"] for each in listed] == [ids[1], ids[0]]
    assert api.get(f"{API}/alerts/numbers").json()["firing"] == 1
    assert api.get(f"{API}/alerts/{ids[2]}").status_code == 404
    body = {"reason": "x", "until": "1h"}
    assert api.post(f"{API}/alerts/{ids[2]}/silence", json=body).status_code == 404
    other = {"where": "site:ber", "reason": "x", "end": "1h"}
    assert api.post(f"{API}/maintenances", json=other).status_code == 403
    made = api.post(f"{API}/maintenances", json={"rule": "uplink", "reason": "x", "end": "1h"})
    assert made.json()["where"] == "site:fra"
    silence = api.post(f"{API}/alerts/{ids[0]}/silence", json=body).json()
    assert silence["where"] == "site:fra"

    everywhere = api_clients.client(services, [Scope.OPERATE])
    hidden = {"where": "name:'*'", "reason": "x", "end": "1h"}
    made_by_all = everywhere.post(f"{API}/maintenances", json=hidden).json()
    seen = [each["id"] for each in api.get(f"{API}/maintenances").json()["items"]]
    assert seen == [silence["id"], made.json()["id"]]
    assert api.post(f"{API}/maintenances/{made_by_all['id']}/end").status_code == 404


def test_a_reader_may_look_only(services: Services, ids: list[int]) -> None:
    """To acknowledge and to silence is the right of an operator."""
    api = api_clients.client(services, [Scope.READ])
    assert api.get(f"{API}/alerts/{ids[0]}").status_code == 200
    assert api.post(f"{API}/alerts/{ids[0]}/acknowledge", json={}).status_code == 403
    assert api.post(f"{API}/maintenances", json={"reason": "x", "end": "1h"}).status_code == 403


def test_why_and_status_name_the_alerts(
    cli: Cli, api: api_clients.TestClient, services: Services, ids: list[int]
) -> None:
    """Who asks why a device is not polled learns what was told of it."""
    sentence = f"alert {ids[0]} (critical, firing for "
    assert sentence in cli("why", "sw1").out
    assert sentence in cli("why", "sw1/snmp").out
    assert sentence not in cli("why", "sw3").out
    [target] = api.get(f"{API}/targets", params={"where": "name:sw1"}).json()["items"]
    [named] = api.get(f"{API}/targets/{target['id']}/why").json()["alerts"]
    assert (named["id"], named["text"]) == (ids[0], "sw1 does not respond")
    status = cli("status").out
    assert "2 alerts are firing (2 critical)." in status
    assert "alerts     2 firing (2 critical), 1 suppressed: poller alerts" in status
    assert cli("status", "--json").json["alerts"]["firing"] == 2
    assert api.get(f"{API}/overview").json()["alerts"]["suppressed"] == 1
    scraped = api.get("/metrics").text
    line = 'poller_alerts{severity="critical",state="firing",suppressed="alert"} 1.0'
    assert line in scraped
