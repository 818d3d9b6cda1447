"""Alert rules on real stores: by API, by command, from files, and tried on history."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from poller import bootstrap, errors
from poller.beat.alerts import rule_file
from poller.beat.alerts.rule_file_watch import RuleFileWatch
from poller.beat.leadership import Leader
from poller.bootstrap import Services
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.alerts import rule_rows
from poller.db.inventory import devices, targets
from poller.db.record import event_rows, run_ledger, stored_readings
from poller.db.record.stored_readings import Stored
from poller.domain.access.scopes import Scope
from poller.domain.alerts import rule_form
from poller.domain.failures.outcome import Result
from poller.domain.inventory import target_filter
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.run import Run
from poller.service import command_actor
from poller.service.alerts import rule_actions, rule_replay
from poller.service.alerts.rule_replay import Answer, Question
from poller.settings import Settings
from tests.integration import api_clients
from tests.integration.commands import Cli, ok
from tests.unit.domain.alerts.watched_polls import readings

API = "/api/v1/rules"
HOT: dict[str, Any] = {
    "name": "hot",
    "when": {"is": "threshold", "metric": "temperature", "above": 60, "clear": 50},
    "for": "2m",
    "text": "{device} has {value} degrees",
}
MINUTE_MS = 60_000
BEGIN_MS = 1_800_000_000_000
DEVICE, TARGET = "sw1", "snmp"
#: The parts of history that rules are tried on.
NAMES = ("polls", "runs", "events")


@pytest.fixture
def api(services: Services) -> api_clients.TestClient:
    return api_clients.client(services)


@pytest.fixture
def target_id(services: Services) -> int:
    """A target of a device with a tag, in a site."""
    draft = TargetDraft(TARGET, "snmp", {}, interval_ms=MINUTE_MS, timeout_ms=5_000)
    devices.add(services.engine, DeviceDraft(DEVICE, "192.0.2.1", site="ams", tags=("core",)))
    return targets.add(services.engine, DEVICE, draft).id


# The API.


def test_a_rule_by_api(services: Services, api: api_clients.TestClient) -> None:
    """It is made, read, changed and removed; each change is audited with its actor."""
    made = api.post(API, json=HOT)
    assert (made.status_code, made.headers["location"]) == (201, f"{API}/hot")
    assert made.json()["warnings"] == [
        "no poll is stored yet, so the names of metrics and labels could not be checked"
    ]
    shown = api.get(f"{API}/hot")
    body = shown.json()
    assert {key: body[key] for key in ("when", "for", "keep", "severity", "owner", "enabled")} == {
        "when": HOT["when"],
        "for": "2m",
        "keep": "0s",
        "severity": "warning",
        "owner": "ci",
        "enabled": True,
    }
    tag = {"If-Match": shown.headers["etag"]}
    changed = api.patch(f"{API}/hot", json={"for": None, "severity": "info"}, headers=tag)
    assert (changed.json()["for"], changed.json()["severity"]) == ("0s", "info")
    assert changed.json()["text"] == HOT["text"]
    assert api.patch(f"{API}/hot", json={"keep": "1m"}, headers=tag).status_code == 412
    assert api.delete(f"{API}/hot").status_code == 204
    assert api.get(f"{API}/hot").status_code == 404
    rows = audit_rows.listing(services.engine, AuditQuery())[::-1]
    assert [(row.actor, row.action) for row in rows] == [
        ("ci", "rule.add"),
        ("ci", "rule.edit"),
        ("ci", "rule.remove"),
    ]


def test_a_built_in_rule_is_switched_and_stays_built_in(api: api_clients.TestClient) -> None:
    """Another change makes it the rule of who changed it; removing it takes that back."""
    off = api.patch(f"{API}/no-data", json={"enabled": False}).json()
    assert (off["enabled"], off["owner"]) == (False, "builtin")
    assert api.delete(f"{API}/no-data").status_code == 422
    own = api.patch(f"{API}/no-data", json={"severity": "info"}).json()
    assert (own["severity"], own["owner"]) == ("info", "ci")
    assert api.delete(f"{API}/no-data").status_code == 204
    back = api.get(f"{API}/no-data").json()
    assert (back["owner"], back["severity"], back["enabled"]) == ("builtin", "warning", True)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "field"),
    [
        ("POST", "", {**HOT, "when": {"is": "hot"}}, 422, "when.is"),
        ("POST", "", {**HOT, "for": "soon"}, 422, "for"),
        ("POST", "", {**HOT, "where": "state:ok"}, 422, "where"),
        ("POST", "", {**HOT, "text": "{devise}"}, 422, "text"),
        ("POST", "", {**HOT, "colour": "red"}, 422, "colour"),
        ("POST", "", {**HOT, "name": "site-dark"}, 409, ""),
        ("PATCH", "/site-drak", {"enabled": False}, 404, ""),
        ("PATCH", "/site-dark", {"when": {"is": "no_data", "days": 1}}, 422, "when.days"),
        (
            "POST",
            "/check",
            {"rules": [HOT, {**HOT, "name": "b", "keep": "x"}]},
            422,
            "rules.1.keep",
        ),
        ("POST", "/test", {"rule": {**HOT, "for": "x"}}, 422, "rule.for"),
        ("POST", "/test", {"name": "hot", "rule": HOT}, 422, "name"),
        ("POST", "/test", {"name": "site-dark", "since": "soon"}, 422, ""),
        ("POST", "/test", {"name": "platform-no-leader"}, 422, "when.is"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_field(
    services: Services,
    api: api_clients.TestClient,
    method: str,
    path: str,
    body: Any,
    status: int,
    field: str,
) -> None:
    """The problem document names the field, and nothing is changed."""
    before = rule_rows.load(services.engine)
    refused = api.request(method, API + path, json=body)
    assert refused.status_code == status
    named = [each["field"] for each in refused.json()["fields"]]
    assert not field or any(each.endswith(field) for each in named)
    assert refused.json()["hint"]
    assert rule_rows.load(services.engine) == before


def test_rules_have_pages(api: api_clients.TestClient) -> None:
    """The pages have every rule once, by name."""
    names: list[str] = []
    cursor = ""
    while cursor is not None:
        page = api.get(API, params={"limit": 4, "cursor": cursor}).json()
        names += [each["name"] for each in page["items"]]
        cursor = page["next"]
    assert names == sorted(set(names))
    assert "device-unreachable" in names


def test_rules_concern_every_site(services: Services) -> None:
    """A token of one site may not read or change them; a reader may check and not add."""
    of_site = api_clients.client(services, (Scope.ADMIN,), "ams")
    assert of_site.get(API).status_code == 403
    assert of_site.post(API, json=HOT).status_code == 403
    reader = api_clients.client(services, (Scope.READ,))
    assert reader.post(f"{API}/check", json={"rules": [HOT]}).status_code == 200
    assert reader.post(API, json=HOT).status_code == 403
    operator = api_clients.client(services, (Scope.OPERATE,))
    assert operator.delete(f"{API}/no-data").status_code == 403


def test_warnings_say_what_exists(services: Services, api: api_clients.TestClient) -> None:
    """A name that no stored poll has, and a filter that matches nothing, can be saved."""
    _store(services, 1, [(BEGIN_MS, 40.0)])
    wrong = {"is": "threshold", "metric": "temprature", "above": 1}
    checked = api.post(
        f"{API}/check",
        json={"rules": [HOT, {**HOT, "name": "b", "when": wrong, "where": "site:ams"}]},
    ).json()["warnings"]
    assert checked["hot"] == []
    assert checked["b"][0] == (
        "when.metric: no stored poll has temprature; did you mean temperature?"
    )
    assert checked["b"][1].startswith("where: ")
    assert "ams" in checked["b"][1]


# Commands.


def test_a_rule_by_command(cli: Cli) -> None:
    """The same actions as by API; fields of the condition are words."""
    words = ["threshold", "metric=ifInErrors", "measure=rate", "above=1", "labels.ifName=eth*"]
    ok(cli("rules", "add", "errors", *words, "--for", "5m", "--severity", "info"))
    ok(cli("rules", "edit", "errors", "above=2", "labels.ifName="))
    ok(cli("rules", "edit", "errors", "--keep", "1m", "--where", "site:ams"))
    shown = ok(cli("rules", "show", "errors", "--json")).json
    when = {"is": "threshold", "metric": "ifInErrors", "measure": "rate", "above": 2}
    assert {key: shown[key] for key in ("when", "for", "keep", "where", "severity")} == {
        "when": when,
        "for": "5m",
        "keep": "1m",
        "where": "site:ams",
        "severity": "info",
    }
    ok(cli("rules", "disable", "errors", "no-data"))
    items = ok(cli("rules", "--json")).json["items"]
    assert [each["name"] for each in items if not each["enabled"]] == [
        "errors",
        "interface-down",
        "no-data",
    ]
    assert "removed rule errors" in ok(cli("rules", "rm", "errors", "--yes")).out
    refused = cli("rules", "edit", "no-data", "days=3", "--json")
    assert refused.error["message"] == "when.days: there is no such field"
    assert cli("rules", "add", "x", "above=3", "--json").error["code"] == "P201"


def test_a_file_is_checked_and_applied(cli: Cli, tmp_path: Path) -> None:
    """A wrong file changes nothing; the error has the line of the field."""
    file = tmp_path / "rules.yaml"
    file.write_text("rules:\n  - name: a\n    when: {is: no_data}\n  - name: b\n")
    for verb in ("check", "apply"):
        refused = cli("rules", verb, str(file), "--json")
        assert f"{file}, line 4: rule 2" in refused.error["message"]
        assert "when: it is missing" in refused.error["message"]
    file.write_text("rules:\n  - name: a\n    when: {is: no_data}\n")
    ok(cli("rules", "check", str(file)))
    assert ok(cli("rules", "apply", str(file), "--json")).json["files"][0]["added"] == ["a"]
    file.write_text("rules: []\n")
    assert "1 removed" in ok(cli("rules", "apply", str(file))).out
    assert "a" not in [each["name"] for each in ok(cli("rules", "--json")).json["items"]]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("rules:\n  - {name: a, when: {is: no_data}, name: b}\n", "line 2: the same key twice"),
        ("rules: [\n", "line 2"),
        ("a: &a [*a]\n", "line 1"),
        ("rules:\n- name: a\n  when:\n    is: threshold\n    metric: x\n    above: y\n", "line 6"),
        ("- name: a\n  when: {is: no_data}\n  where: x\n", "line 3"),
        ("\xff", "not UTF-8"),
        ("x" * (rule_file.MOST_BYTES + 1), "more than"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path: Path, text: str, fault: str) -> None:
    """Broken YAML, bombs, other encodings and endless files."""
    file = tmp_path / "rules.yaml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(errors.InvalidInput) as refused:
        rule_file.read(file)
    assert str(file) in refused.value.message
    assert fault in refused.value.message
    assert refused.value.hint


# The files of the leader.


class Recorder:
    """Records events in SQL at once."""

    def __init__(self, services: Services) -> None:
        self._engine = services.engine
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        self.events.append(event)
        event_rows.record(self._engine, [(f"{len(self.events)}-0", event)])


def watch_of(services: Services, patterns: Sequence[str]) -> tuple[RuleFileWatch, Recorder]:
    services.settings = Settings(rule_files=tuple(patterns))
    leader = Leader(services.leadership, 1.0, election=False)
    recorder = Recorder(services)
    return RuleFileWatch(services, leader, threading.Event(), recorder), recorder


def test_the_leader_applies_files_and_tells_a_wrong_one_once(
    services: Services, tmp_path: Path
) -> None:
    """The old rules stay while a file is wrong."""
    file = tmp_path / "a.yaml"
    good = "rules: [{name: own, when: {is: no_data, intervals: 3}}]\n"
    file.write_text(good)
    watch, recorder = watch_of(services, [f"{tmp_path}/*.yaml"])
    watch.check(BEGIN_MS)
    watch.check(BEGIN_MS)
    assert rule_rows.show(services.engine, "own").owner == f"file:{file}"
    assert [each.kind for each in recorder.events] == [Kind.RULE_FILE_APPLIED]
    version = rule_rows.version(services.engine)
    file.write_text("rules: [{name: own, when: {is: nodata}}]\n")
    watch.check(BEGIN_MS + 1)
    watch.check(BEGIN_MS + 2)
    assert [each.kind for each in recorder.events[1:]] == [Kind.RULE_FILE_REFUSED]
    assert "did you mean no_data?" in recorder.events[1].message
    assert rule_rows.version(services.engine) == version
    [refused] = rule_actions.refused_files(services)
    assert (refused.path, refused.at_ms) == (str(file), BEGIN_MS + 1)
    assert "when.is" in refused.fault
    file.write_text(good)
    watch.check(BEGIN_MS + 3)
    assert [each.kind for each in recorder.events[2:]] == [Kind.RULE_FILE_APPLIED]
    assert rule_actions.refused_files(services) == []


def test_a_refused_file_is_in_the_list_of_rules(cli: Cli) -> None:
    """People look there first when a rule does not do what its file says."""
    ok(cli("db", "upgrade"))
    data = {"file": "/etc/rules.yaml", "fault": "when.is: it is missing"}
    event = Event(BEGIN_MS, Kind.RULE_FILE_REFUSED, "", data=data)
    event_rows.record(bootstrap.services().engine, [("1-0", event)])
    assert ok(cli("rules", "--json")).json["refused_files"] == [data]
    assert "the leader refused /etc/rules.yaml: when.is" in ok(cli("rules")).err


def test_a_file_that_is_gone_removes_nothing(services: Services, tmp_path: Path) -> None:
    """A mount that is away must not end alerts; an empty list in the file does."""
    file = tmp_path / "a.yaml"
    file.write_text("rules: [{name: own, when: {is: no_data}}]\n")
    watch, recorder = watch_of(services, [str(file)])
    watch.check(BEGIN_MS)
    file.unlink()
    watch.check(BEGIN_MS + 1)
    assert recorder.events[-1].kind is Kind.RULE_FILE_REFUSED
    assert "no such file" in recorder.events[-1].message
    assert rule_rows.show(services.engine, "own").enabled
    file.write_text("rules: []\n")
    watch.check(BEGIN_MS + 2)
    with pytest.raises(errors.NotFound):
        rule_rows.show(services.engine, "own")


# History.


def _store(services: Services, target_id: int, polls: Sequence[tuple[int, float]]) -> None:
    batch = [Stored(target_id, at_ms, readings({"temperature": value})) for at_ms, value in polls]
    stored_readings.Writer(services.engine).write(batch, BEGIN_MS)


def asked(services: Services, form: dict[str, Any], minutes: int = 600, where: str = "") -> Answer:
    until_ms = BEGIN_MS + minutes * MINUTE_MS
    rule = rule_form.parse(form)
    return rule_replay.ask(services, Question(rule, BEGIN_MS, until_ms, target_filter.parse(where)))


def minutes(answer: Answer) -> list[tuple[int, int]]:
    """When each alert would have fired and ended, in minutes; 0: it would be open."""
    return [
        (
            (each.fired_ms - BEGIN_MS) // MINUTE_MS,
            each.ended_ms and (each.ended_ms - BEGIN_MS) // MINUTE_MS,
        )
        for each in answer.firings
    ]


def test_polls_are_judged_again(services: Services, target_id: int) -> None:
    """More polls than one read has; `for` and `clear` count, and the text is that of the alert."""
    values = [40.0] * 300 + [70.0] * 5 + [55.0] * 5 + [40.0] * 290
    polls = [(BEGIN_MS + n * MINUTE_MS, value) for n, value in enumerate(values)]
    _store(services, target_id, polls)
    answer = asked(services, HOT)
    assert minutes(answer) == [(302, 310)]
    assert (answer.looked_at, answer.of, answer.is_complete) == (1, 1, True)
    rule = rule_form.parse(HOT)
    assert rule_replay.text_of(rule, answer.firings[0]) == "sw1 has 70 degrees"
    assert minutes(asked(services, {**HOT, "for": "11m"})) == []
    assert asked(services, HOT, where="tag:edge").of == 0
    assert asked(services, {**HOT, "where": "tag:core"}, where="site:ams").of == 1


def test_a_rule_is_tried_by_command_and_by_api(
    services: Services, cli: Cli, target_id: int
) -> None:
    """Both say the same of a rule that is not stored."""
    now_ms = services.board.now_ms()
    begin_ms = now_ms - 10 * MINUTE_MS
    _store(services, target_id, [(begin_ms + n * MINUTE_MS, 70.0) for n in range(9)])
    file = services.settings.home / "rules.yaml"
    file.write_text(json.dumps({"rules": [HOT]}))
    found = ok(cli("rules", "test", "hot", "--file", str(file), "--since", "1h", "--json")).json
    api = api_clients.client(services)
    by_api = api.post(f"{API}/test", json={"rule": HOT, "since": "1h"}).json()
    assert [each["text"] for each in found["items"]] == ["sw1 has 70 degrees"]
    assert [each["text"] for each in by_api["firings"]] == ["sw1 has 70 degrees"]
    assert by_api["firings"][0]["ended_at"] is None
    assert (found["looked_at"], by_api["looked_at"]) == (1, 1)
    shown = cli("rules", "test", "hot", "--file", str(file), "--since", "1h")
    assert "hot would have fired 1 time in 1h; looked at 1 target\n" in shown.err


def test_a_rule_that_is_tried_on_young_history_says_how_young_it_is(
    services: Services, target_id: int
) -> None:
    """No alert in a week means little on the first day, and nothing without a poll."""
    no_data = {"name": "x", "when": {"is": "no_data", "intervals": 5}}
    failing = {"name": "x", "when": {"is": "target_failing"}}
    notes = [asked(services, form).notes for form in (HOT, no_data, failing)]
    assert [note.split()[:2] for [note] in notes] == [["no", name] for name in NAMES]
    assert asked(services, HOT, where="tag:edge").notes == []

    begin_ms = BEGIN_MS + 300 * MINUTE_MS
    _store(services, target_id, [(begin_ms + n * MINUTE_MS, 40.0) for n in range(3)])
    run_ledger.write(services.engine, [Run(target_id, plan_ms=begin_ms, outcome=Result.OK)])
    event_rows.record(services.engine, [("1-0", Event(begin_ms, Kind.LEADERSHIP_TAKEN, ""))])
    notes = [asked(services, form).notes for form in (HOT, no_data, failing)]
    since = "since 2027-01-15T13:00:00Z only"
    assert [note for [note] in notes] == [
        f"{name} are stored {since}, so the time before was not looked at" for name in NAMES
    ]


def test_events_say_when_devices_and_targets_failed(services: Services, target_id: int) -> None:
    """The events have what was confirmed at that time."""
    device_id = 1
    at = [BEGIN_MS + minute * MINUTE_MS for minute in range(10)]
    events = [
        Event(at[1], Kind.TARGET_FAILED, "", DEVICE, TARGET, target_id, data={"code": "timeout"}),
        Event(at[2], Kind.DEVICE_WENT_DOWN, "", DEVICE, device_id=device_id),
        Event(at[3], Kind.SITE_OPENED, "", data={"site": "ams"}),
        Event(at[5], Kind.SITE_RECOVERED, "", data={"site": "ams"}),
        Event(at[6], Kind.DEVICE_RECOVERED, "", DEVICE, device_id=device_id),
        Event(at[7], Kind.TARGET_RECOVERED, "", DEVICE, TARGET, target_id),
    ]
    event_rows.record(services.engine, [(f"{n}-0", each) for n, each in enumerate(events, 1)])

    def when(**condition: Any) -> list[tuple[int, int]]:
        return minutes(asked(services, {"name": "x", "when": condition}))

    assert when(**{"is": "target_failing"}) == [(1, 7)]
    assert when(**{"is": "target_failing", "codes": ["auth_failed"]}) == []
    assert when(**{"is": "device_unreachable"}) == [(2, 6)]
    assert when(**{"is": "site_dark"}) == [(3, 5)]


def test_runs_say_when_there_was_no_data(services: Services, target_id: int) -> None:
    """Only good runs count; ten minutes without one are more than five intervals."""
    runs = [
        Run(
            target_id=target_id,
            plan_ms=BEGIN_MS + minute * MINUTE_MS,
            outcome=Result.OK if minute < 10 or minute > 20 else Result.FAILED,
        )
        for minute in range(60)
    ]
    run_ledger.write(services.engine, runs)
    answer = asked(services, {"name": "x", "when": {"is": "no_data", "intervals": 5}}, 60)
    assert minutes(answer) == [(14, 21)]
    assert answer.notes == []


def test_a_long_look_stops_in_time_and_says_so(services: Services, target_id: int) -> None:
    """An answer of the API has a limit; older history than is kept is named too."""
    question = Question(rule_form.parse(HOT), 0, BEGIN_MS, seconds=0.0)
    answer = rule_replay.ask(services, question)
    assert (answer.looked_at, answer.is_complete) == (0, False)
    assert "looked at 0 of 1 targets" in answer.notes[0]
    assert "polls are kept for 35 days" in answer.notes[1]


def test_the_actor_of_a_command_owns_its_rules(services: Services) -> None:
    """`rules list` says whose rule it is."""
    saved = rule_actions.add(services, command_actor.of_command(), HOT)
    assert saved.stored.owner == command_actor.operator_name()
    assert saved.note == ""
