"""Every change of the inventory, by command and by HTTP, leaves an audit row without secrets."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery, AuditRow
from tests.integration import api_clients
from tests.integration.commands import Cli, ok

API = "/api/v1"
SECRET = "hunter22-planted"
CSV = "name,address,site\nim1,192.0.2.1,ams\n"


def rows(services: Services) -> list[AuditRow]:
    """All rows, the oldest first."""
    return audit_rows.listing(services.engine, AuditQuery(limit=200))[::-1]


#: The words of each changing command, the text on its stdin, and the row it leaves.
COMMANDS: list[tuple[str, str, tuple[str, str, int]]] = [
    (
        "credential add c1 --kind community",
        SECRET,
        ("credential.add", "c1", 1),
    ),
    ("credential add c2 --kind token", SECRET, ("credential.add", "c2", 1)),
    (
        "device add sw1 192.0.2.1 --site ams --credential c1 --collector snmp",
        "",
        ("device.add", "sw1", 1),
    ),
    ("device add sw2 192.0.2.2 --site ams --collector ping", "", ("device.add", "sw2", 1)),
    ("device edit sw1 --add-tag core --address 192.0.2.9", "", ("device.edit", "sw1", 1)),
    ("device edit --where site:ams --disable --yes", "", ("device.edit", "site:ams", 2)),
    ("target add sw1 --collector ping", "", ("target.add", "sw1/ping", 1)),
    (
        "target add --where site:ams --collector http --yes",
        "",
        ("target.add", "site:ams", 2),
    ),
    (
        "target edit sw1/http -o path=/x?key=hunter22-planted",
        "",
        ("target.edit", "sw1/http", 1),
    ),
    (
        "target edit --where collector:http -o path=/y?key=hunter22-planted --yes",
        "",
        ("target.edit", "collector:http", 2),
    ),
    (
        "target edit --where collector:snmp --credential c1 --yes",
        "",
        ("target.edit", "collector:snmp", 1),
    ),
    ("target rm sw1/ping --yes", "", ("target.remove", "sw1/ping", 1)),
    ("target rm --collector http --yes", "", ("target.remove", "collector:http", 2)),
    ("credential rotate c1", f"{SECRET}-2", ("credential.rotate", "c1", 1)),
    ("credential rotate-key", "", ("credential.rotate-key", "all credentials", 2)),
    ("credential rm c2 --yes", "", ("credential.remove", "c2", 1)),
    ("site edit ams --require zone=dmz", "", ("site.edit", "ams", 1)),
    ("device import {file}", "", ("device.import", "file", 1)),
    ("device rm im1 --yes", "", ("device.remove", "im1", 1)),
    ("device rm sw1 sw2 --yes", "", ("device.remove", "2 devices", 2)),
    ("site rm ams --yes", "", ("site.remove", "ams", 1)),
]


def test_every_changing_command_leaves_its_row(
    cli: Cli, services: Services, tmp_path: Path
) -> None:
    """The row has who, from where, what and how many; no row repeats a secret."""
    file = tmp_path / "im.csv"
    file.write_text(CSV)
    expected = []
    for command, stdin, row in COMMANDS:
        ok(cli(*command.format(file=file).split(), stdin=stdin))
        expected.append(row)
        found = [(each.action, each.subject, each.count) for each in rows(services)]
        assert found == expected, command
    for each in rows(services):
        assert (each.kind, bool(each.actor), bool(each.address)) == ("cli", True, True)
        assert SECRET not in str(asdict(each))


#: Each changing route: method, path, body, status, and the row it leaves.
ROUTES: list[tuple[str, str, Any, tuple[str, str, int]]] = [
    (
        "POST",
        "credentials",
        {"name": "c1", "kind": "community", "fields": {"community": SECRET}},
        ("credential.add", "c1", 1),
    ),
    (
        "POST",
        "devices",
        {"name": "sw1", "address": "::1", "site": "ams", "targets": []},
        ("device.add", "sw1", 1),
    ),
    ("PATCH", "devices/sw1", {"tags": ["a"]}, ("device.edit", "sw1", 1)),
    (
        "POST",
        "devices/sw1/targets",
        {"collector": "http", "options": {"path": f"/x?k={SECRET}"}},
        ("target.add", "sw1/http", 1),
    ),
    ("PATCH", "devices/sw1/targets/http", {"interval": "5m"}, ("target.edit", "sw1/http", 1)),
    (
        "POST",
        "devices/bulk",
        {"where": "site:ams", "action": "enable"},
        ("device.edit", "site:ams", 1),
    ),
    (
        "POST",
        "devices/bulk",
        {"where": "site:ams", "action": "add_target", "target": {"collector": "ping"}},
        ("target.add", "site:ams", 1),
    ),
    (
        "POST",
        "targets/bulk",
        {"where": "collector:http", "action": "disable"},
        ("target.edit", "collector:http", 1),
    ),
    (
        "POST",
        "targets/bulk",
        {"where": "collector:ping", "action": "remove"},
        ("target.remove", "collector:ping", 1),
    ),
    ("PATCH", "targets/{id}", {"enabled": True}, ("target.edit", "sw1/http", 1)),
    ("DELETE", "targets/{id}", None, ("target.remove", "sw1/http", 1)),
    (
        "POST",
        "credentials/c1/rotate",
        {"fields": {"community": SECRET}},
        ("credential.rotate", "c1", 1),
    ),
    ("DELETE", "credentials/c1", None, ("credential.remove", "c1", 1)),
    ("POST", "imports", CSV, ("device.import", "file", 1)),
    ("DELETE", "devices/im1", None, ("device.remove", "im1", 1)),
    (
        "POST",
        "devices/bulk",
        {"where": "site:ams", "action": "remove"},
        ("device.remove", "site:ams", 1),
    ),
    ("DELETE", "sites/ams", None, ("site.remove", "ams", 1)),
]


def test_every_changing_route_leaves_its_row(services: Services) -> None:
    """The row names the token and the address it came from; no row repeats a secret."""
    api = api_clients.client(services)
    expected = []
    for method, path, body, row in ROUTES:
        if "{id}" in path:
            listed = api.get(f"{API}/targets", params={"where": "collector:http"}).json()
            path = path.format(id=listed["items"][0]["id"])
        if isinstance(body, str):
            headers = {"Content-Type": "text/csv"}
            done = api.request(method, f"{API}/{path}", content=body, headers=headers)
        else:
            done = api.request(method, f"{API}/{path}", json=body)
        assert done.is_success, (method, path, done.text)
        expected.append(row)
        found = [(each.action, each.subject, each.count) for each in rows(services)]
        assert found == expected, (method, path)
    for each in rows(services):
        assert (each.actor, each.kind, each.address) == ("ci", "token", "127.0.0.1")
        assert SECRET not in str(asdict(each))


def test_a_bulk_edit_says_what_was_before(services: Services) -> None:
    """Old values are counted, new ones and some names are there."""
    api = api_clients.client(services)
    for name, site in (("a", "ams"), ("b", "fra"), ("c", "fra")):
        api.post(f"{API}/devices", json={"name": name, "address": "::1", "site": site})
    body = {"where": "name:*", "action": "edit", "changes": {"site": "rtm"}, "confirm": 3}
    assert api.post(f"{API}/devices/bulk", json=body).is_success
    row = rows(services)[-1]
    assert row.before == {"site": {"fra": 2, "ams": 1}}
    assert row.after == {"site": "rtm", "names": ["a", "b", "c"]}


@pytest.mark.parametrize("refused", [{"dry_run": True}, {"confirm": 9}])
def test_what_was_not_done_is_not_in_the_log(services: Services, refused: dict[str, Any]) -> None:
    """Neither a dry run nor a refused change leaves a row."""
    api = api_clients.client(services)
    api.post(f"{API}/devices", json={"name": "a", "address": "::1", "site": "ams"})
    api.post(f"{API}/devices", json={"name": "a", "address": "::1", "site": "ams"})
    api.post(f"{API}/devices/bulk", json={"where": "name:*", "action": "remove", **refused})
    assert [row.action for row in rows(services)] == ["device.add"]
