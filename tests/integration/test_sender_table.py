"""Senders by address: literal addresses and resolved host names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db import migrate
from poller.db.inventory import credential_rows, devices
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.traps.sender_table import SenderTable, normal_address
from tests.conftest import wait_until

SNMP = [TargetDraft(collector="snmp")]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = sql.create(f"sqlite:///{tmp_path / 'poller.db'}")
    migrate.upgrade(made)
    credential_rows.add(made, "pub", "community", "v1:x:1")
    credential_rows.add(made, "web", "login", "v1:x:1")
    yield made
    made.dispose()


@pytest.fixture
def names() -> dict[str, list[str]]:
    return {"router.test": ["192.0.2.9", "2001:db8::9"]}


@pytest.fixture
def table(engine: Engine, names: dict[str, list[str]]) -> Iterator[SenderTable]:
    made = SenderTable(engine, lambda name: names.get(name, []))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("address", "same"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_an_address_has_one_spelling(address: str, same: str) -> None:
    """Sockets and people spell addresses differently."""
    assert normal_address(address) == same


def test_a_device_is_found_by_address_and_by_host_name(engine: Engine, table: SenderTable) -> None:
    """A name may have several addresses; a slow resolution delays no lookup."""
    devices.add(engine, DeviceDraft("one", address="192.0.2.1", credential="pub"), SNMP)
    devices.add(engine, DeviceDraft("two", address="router.test", credential="pub"), SNMP)
    devices.add(engine, DeviceDraft("lost", address="nowhere.test", credential="pub"), SNMP)
    assert table.refresh()
    assert [sender.device for sender in table.by_address["192.0.2.1"]] == ["one"]
    wait_until(lambda: (table.refresh(), "192.0.2.9" in table.by_address)[1], "the answer")
    assert {address: [s.device for s in found] for address, found in table.by_address.items()} == {
        "192.0.2.1": ["one"],
        "192.0.2.9": ["two"],
        "2001:db8::9": ["two"],
    }
    assert not table.refresh()


def test_several_devices_may_share_an_address(engine: Engine, table: SenderTable) -> None:
    """Devices behind one NAT keep their own credentials and targets."""
    for name in ("one", "two"):
        devices.add(engine, DeviceDraft(name, address="192.0.2.1", credential="pub"), SNMP)
    table.refresh()
    assert [sender.device for sender in table.by_address["192.0.2.1"]] == ["one", "two"]


def test_a_device_without_credential_or_target_is_no_sender(
    engine: Engine, table: SenderTable
) -> None:
    """No SNMP credential, no target, or disabled."""
    devices.add(engine, DeviceDraft("web", address="192.0.2.1", credential="web"), SNMP)
    devices.add(engine, DeviceDraft("none", address="192.0.2.2"), SNMP)
    devices.add(engine, DeviceDraft("idle", address="192.0.2.3", credential="pub"))
    devices.add(
        engine, DeviceDraft("off", address="192.0.2.4", credential="pub", enabled=False), SNMP
    )
    own = TargetDraft(collector="snmp", credential="pub")
    devices.add(engine, DeviceDraft("own", address="192.0.2.5", credential="web"), [own])
    table.refresh()
    assert set(table.by_address) == {"192.0.2.5"}
