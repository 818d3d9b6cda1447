"""Breakers and dead letters by the API: pages, bulk actions, tickets."""

from __future__ import annotations

import pytest

from poller.bootstrap import Services
from poller.db.inventory import devices, targets
from poller.domain.failures.dead_letter import Reason
from poller.domain.record.event_kinds import Kind
from tests.integration import api_clients
from tests.integration.audited_actions import audited, facts, finish
from tests.integration.breaker_worlds import World

API = "/api/v1"


@pytest.fixture
def world(services: Services) -> World:
    return World(services)


@pytest.fixture
def api(world: World) -> api_clients.TestClient:
    return api_clients.client(world.services)


def test_open_breakers_have_pages_the_longest_open_first(
    world: World, api: api_clients.TestClient
) -> None:
    """The pages together have each open breaker once; the numbers are those of all."""
    ids = world.add(3)
    world.fail(ids)
    first = api.get(f"{API}/breakers", params={"limit": 2}).json()
    last = api.get(f"{API}/breakers", params={"limit": 2, "cursor": first["next"]}).json()
    assert [each["target_id"] for each in first["items"] + last["items"]] == ids
    assert (first["total"], first["by_hand"], last["next"]) == (3, 0, None)
    assert (first["items"][0]["breaker"], first["items"][0]["by"]) == ("open", "failures")
    of_one = api.get(f"{API}/breakers", params={"where": "name:d2"}).json()
    assert [each["device"] for each in of_one["items"]] == ["d2"]


def test_a_breaker_is_reset_and_opened(world: World, api: api_clients.TestClient) -> None:
    """The events and the audit rows name the actor, and the reason where one was given."""
    [key] = world.add(1)
    world.fail([key])
    done = api.post(f"{API}/breakers/{key}/reset").json()
    assert (done["reset"], done["matches"], done["note"]) == (1, 1, "")
    assert api.get(f"{API}/breakers/{key}").json()["breaker"] == "closed"
    opened = api.post(f"{API}/breakers/{key}/open", json={"for_s": 60, "reason": "new\nfirmware"})
    opened = opened.json()
    assert (opened["opened"], opened["by"]) == (1, "ci")
    shown = api.get(f"{API}/breakers/{key}").json()
    assert (shown["by"], shown["reason"]) == ("hand (ci)", "new firmware")
    events = world.events(Kind.BREAKER_CLOSED, Kind.BREAKER_OPENED)
    assert [event.data["who"] for event in events] == ["ci", "ci"]
    assert events[1].message.endswith("opened by hand by ci: new firmware")
    device = devices.show(world.services.engine, "d1")
    assert [event.device_id for event in events] == [device.id, device.id]
    assert events[1].data["address"] == device.address
    rows = audited(world.services)
    assert [facts(row) for row in rows] == [
        ("ci", "breaker.reset", "d1/snmp", 1),
        ("ci", "breaker.open", "d1/snmp", 1),
    ]
    assert rows[1].after["names"] == ["d1/snmp"]
    assert rows[1].after["until"] == opened["until"][:19] + "Z"
    assert rows[1].after["reason"] == "new firmware"
    refused = api.post(f"{API}/breakers/{key}/open", json={"reason": "x" * 2_000})
    assert (refused.status_code, "reason: it has more than" in refused.text) == (422, True)


def test_a_reset_of_a_closed_breaker_leaves_no_audit_row(
    world: World, api: api_clients.TestClient
) -> None:
    """Nothing was changed."""
    [key] = world.add(1)
    assert api.post(f"{API}/breakers/{key}/reset").json()["closed_already"] == 1
    assert audited(world.services) == []


@pytest.mark.parametrize("verb", ["reset", "open"])
def test_a_bulk_change_is_counted_then_confirmed(
    world: World, api: api_clients.TestClient, verb: str
) -> None:
    """A dry run changes nothing; a wrong or missing number is refused with the right one."""
    world.fail(world.add(3))
    path, where = f"{API}/breakers/{verb}", {"where": "state:open name:'d*'"}
    plan = api.post(path, json={**where, "dry_run": True}).json()
    assert (plan["dry_run"], plan["matches"]) == (True, 3)
    assert plan["samples"] == ["d1/snmp", "d2/snmp", "d3/snmp"]
    for more in ({}, {"confirm": 2}, {"confirm": 0}):
        refused = api.post(path, json={**where, **more})
        assert (refused.status_code, refused.json()["code"]) == (409, "P501")
        assert refused.json()["hint"] == "send confirm: 3"
    assert audited(world.services) == []
    assert world.seen().breakers_open == 3
    done = api.post(path, json={**where, "confirm": 3}).json()
    assert done["reset" if verb == "reset" else "opened"] == 3
    [row] = audited(world.services)
    assert facts(row) == ("ci", f"breaker.{verb}", "state:open name:'d*'", 3)
    assert row.after["names"] == ["d1/snmp", "d2/snmp", "d3/snmp"]


def test_one_match_needs_no_number(world: World, api: api_clients.TestClient) -> None:
    """A script that selects one target by its name does not count first."""
    world.fail(world.add(2)[:1])
    assert api.post(f"{API}/breakers/reset", json={"where": "name:d1"}).json()["reset"] == 1


def test_dead_letters_have_pages_groups_and_advice(
    world: World, api: api_clients.TestClient
) -> None:
    """The oldest comes first; groups have one cause."""
    ids = world.add(3)
    world.park(ids[:2])
    world.park(ids[2:], Reason.UNSUPPORTED)
    found: list[int] = []
    cursor = ""
    for _ in range(3):
        page = api.get(f"{API}/dead-letters", params={"limit": 1, "cursor": cursor}).json()
        found += [each["target_id"] for each in page["items"]]
        cursor = page["next"] or ""
    assert (found, cursor) == (ids, "")
    groups = api.get(f"{API}/dead-letters/groups").json()
    assert groups["total"] == 3
    assert [(each["reason"], each["letters"]) for each in groups["items"]] == [
        ("auth_failed", 2),
        ("unsupported", 1),
    ]
    unsupported = api.get(f"{API}/dead-letters", params={"reason": "unsupported"}).json()
    assert [each["device"] for each in unsupported["items"]] == ["d3"]
    shown = api.get(f"{API}/dead-letters/{ids[0]}").json()
    assert (shown["error_code"], bool(shown["hint"])) == ("timeout", True)


def test_a_dead_letter_is_requeued_with_a_ticket(world: World, api: api_clients.TestClient) -> None:
    """The ticket has the result of its poll."""
    [key] = world.add(1)
    world.park([key])
    done = api.post(f"{API}/dead-letters/{key}/requeue").json()
    assert (done["requeued"], done["matches"]) == (1, 1)
    waiting = api.get(f"{API}/polls/{done['ticket']}").json()
    assert (waiting["complete"], waiting["items"][0]["state"]) == (False, "waiting")
    finish(world, [key])
    result = api.get(f"{API}/polls/{done['ticket']}", params={"wait_s": 5}).json()
    assert (result["complete"], result["items"][0]["state"]) == (True, "ok")
    [row] = audited(world.services)
    assert facts(row) == ("ci", "dead_letter.requeue", "d1/snmp", 1)


def test_dead_letters_are_dropped_by_their_number(
    world: World, api: api_clients.TestClient
) -> None:
    """Their targets are disabled; the row is stored in the same transaction."""
    world.park(world.add(3)[:2])
    path, body = f"{API}/dead-letters/drop", {"reason": "auth_failed"}
    assert api.post(path, json={**body, "dry_run": True}).json()["matches"] == 2
    assert api.post(path, json=body).status_code == 409
    assert api.post(path, json={**body, "confirm": 2}).json()["dropped"] == 2
    enabled = {each.device: each.enabled for each in targets.listing(world.services.engine)}
    assert enabled == {"d1": False, "d2": False, "d3": True}
    [row] = audited(world.services)
    assert facts(row) == ("ci", "dead_letter.drop", "reason:auth_failed", 2)
    assert api.post(path, json={**body, "confirm": 2}).status_code == 404
