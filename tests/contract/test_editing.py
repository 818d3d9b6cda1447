"""Operators edit devices, targets, credentials and sites."""

from __future__ import annotations

import pytest
from sqlalchemy.engine import Engine

from poller import errors
from poller.db.inventory import credential_rows, devices, sites, targets
from poller.domain.inventory.draft import DeviceDraft, TargetDraft

SNMP = TargetDraft(
    collector="snmp", interval_ms=60_000, timeout_ms=5_000, options={"module": "if_mib"}
)


def device(name: str, **fields: object) -> DeviceDraft:
    return DeviceDraft(name, address="192.0.2.1", **fields)  # type: ignore[arg-type]


def test_an_edit_changes_only_the_given_fields(engine: Engine) -> None:
    """In an edit None means "not given", and the empty string means "none"."""
    credential_rows.add(engine, "public", "community", "v1:x:1")
    devices.add(
        engine, device("sw1", site="ams", tags=("core",), credential="public", requires={"a": "b"})
    )
    edited = devices.edit(engine, "sw1", DeviceDraft("sw1", address="192.0.2.9"))
    assert (edited.address, edited.site, edited.tags, edited.credential) == (
        "192.0.2.9",
        "ams",
        ("core",),
        "public",
    )
    cleared = devices.edit(
        engine, "sw1", DeviceDraft("sw1", site="", tags=(), credential="", requires={})
    )
    assert (cleared.site, cleared.tags, cleared.credential, cleared.requires) == ("", (), "", {})


def test_a_device_can_be_renamed_but_not_to_a_name_that_is_taken(engine: Engine) -> None:
    """Names of devices stay unique when a device is renamed."""
    devices.add(engine, device("sw1"))
    devices.add(engine, device("sw2"))
    assert devices.edit(engine, "sw1", DeviceDraft("sw3")).name == "sw3"
    with pytest.raises(errors.AlreadyExists, match="sw2"):
        devices.edit(engine, "sw3", DeviceDraft("sw2"))


def test_an_unknown_device_names_the_nearest(engine: Engine) -> None:
    """The error for an unknown device suggests the device with the nearest name."""
    devices.add(engine, device("core-sw-1"))
    with pytest.raises(errors.NotFound, match='no device named "core-sw1"') as caught:
        devices.show(engine, "core-sw1")
    assert "core-sw-1" in caught.value.hint


def test_devices_are_listed_by_name_in_pages_and_by_filter(engine: Engine) -> None:
    """A selection and pages of the list of devices combine."""
    for number in range(6):
        tags = ("even",) if number % 2 == 0 else ()
        devices.add(
            engine, device(f"sw{number}", site="ams" if number < 4 else "ber", tags=tags), [SNMP]
        )
    assert [d.name for d in devices.listing(engine, limit=2)] == ["sw0", "sw1"]
    assert [d.name for d in devices.listing(engine, limit=2, after="sw1")] == ["sw2", "sw3"]
    even = [d.id for d in devices.listing(engine) if "even" in d.tags]
    assert [d.name for d in devices.listing(engine, ids=even, after="sw0")] == ["sw2", "sw4"]
    assert devices.listing(engine, ids=[]) == []
    assert devices.count(engine) == 6
    assert {d.targets for d in devices.listing(engine)} == {1}


def test_target_defaults_fit_the_interval(engine: Engine) -> None:
    """The default name is the collector's; the default time-out is ten seconds or half of a short
    interval.
    """
    devices.add(engine, device("sw1"))
    usual = targets.add(engine, "sw1", TargetDraft(collector="snmp"))
    assert (usual.name, usual.interval_ms, usual.timeout_ms) == ("snmp", 60_000, 10_000)
    quick = targets.add(
        engine, "sw1", TargetDraft(name="quick", collector="snmp", interval_ms=4_000)
    )
    assert quick.timeout_ms == 2_000


def test_a_timeout_must_stay_below_the_interval(engine: Engine) -> None:
    """A time-out that reaches the interval is refused, also when only one of the two is edited."""
    devices.add(engine, device("sw1"), [SNMP])
    with pytest.raises(
        errors.InvalidInput, match="timeout 1m must be shorter than the interval 1m"
    ):
        targets.add(engine, "sw1", TargetDraft(name="x", collector="snmp", timeout_ms=60_000))
    with pytest.raises(
        errors.InvalidInput, match="timeout 5s must be shorter than the interval 5s"
    ):
        targets.edit(engine, "sw1", "snmp", TargetDraft(interval_ms=5_000))
    assert targets.show(engine, "sw1", "snmp").interval_ms == 60_000


def test_two_targets_of_a_device_need_two_names(engine: Engine) -> None:
    """One device may have two targets of one collector, under different names."""
    devices.add(engine, device("sw1"), [SNMP])
    with pytest.raises(errors.AlreadyExists, match='"snmp"'):
        targets.add(engine, "sw1", SNMP)
    targets.add(engine, "sw1", TargetDraft(name="fast", collector="snmp"))
    with pytest.raises(errors.AlreadyExists, match='"snmp"'):
        targets.edit(engine, "sw1", "fast", TargetDraft(name="snmp"))
    assert [t.name for t in targets.of_device(engine, "sw1")] == ["fast", "snmp"]


def test_an_unknown_target_lists_the_targets_of_the_device(engine: Engine) -> None:
    """The error for an unknown target lists the device's targets."""
    devices.add(engine, device("sw1"), [SNMP])
    with pytest.raises(errors.NotFound, match="it has snmp"):
        targets.show(engine, "sw1", "smmp")


def test_targets_are_listed_across_devices_in_pages(engine: Engine) -> None:
    """A page of targets continues after a pair of device name and target name."""
    for name in ("a", "b"):
        devices.add(engine, device(name), [SNMP, TargetDraft(collector="routeros")])
    first = targets.listing(engine, limit=3)
    assert [(t.device, t.name) for t in first] == [
        ("a", "routeros"),
        ("a", "snmp"),
        ("b", "routeros"),
    ]
    rest = targets.listing(engine, after=(first[-1].device, first[-1].name))
    assert [(t.device, t.name) for t in rest] == [("b", "snmp")]
    assert len(targets.listing(engine, ids=[first[0].id, first[1].id])) == 2


def test_a_credential_in_use_is_not_removed_and_its_users_are_named(engine: Engine) -> None:
    """Devices and targets both count as users of a credential."""
    credential_rows.add(engine, "public", "community", "v1:x:1")
    devices.add(engine, device("sw1", credential="public"))
    devices.add(engine, device("sw2"), [TargetDraft(collector="snmp", credential="public")])
    with pytest.raises(errors.InvalidInput) as caught:
        credential_rows.remove(engine, "public")
    assert caught.value.cause == "by sw1, sw2/snmp"
    devices.remove(engine, ["sw1", "sw2"])
    credential_rows.remove(engine, "public")
    assert credential_rows.listing(engine) == []


def test_a_credential_name_is_unique(engine: Engine) -> None:
    """Adding a credential under an existing name is refused with a hint to rotate it."""
    credential_rows.add(engine, "public", "community", "v1:x:1")
    with pytest.raises(errors.AlreadyExists) as caught:
        credential_rows.add(engine, "public", "community", "v1:x:2")
    assert caught.value.hint == "poller credential rotate public"


def test_resealing_is_all_or_nothing(engine: Engine) -> None:
    """When one envelope cannot be opened, resealing replaces none."""
    for name in ("a", "b"):
        credential_rows.add(engine, name, "community", f"old {name}")

    def convert(name: str, _kind: str, _envelope: str) -> str:
        if name == "b":
            raise errors.SecretKeyError("no key")
        return "new " + name

    with pytest.raises(errors.SecretKeyError):
        credential_rows.reseal(engine, convert)
    assert _envelopes(engine) == ["old a", "old b"]
    assert credential_rows.reseal(engine, lambda name, kind, envelope: "new " + name) == 2
    assert _envelopes(engine) == ["new a", "new b"]


def _envelopes(engine: Engine) -> list[str]:
    from poller.db.inventory import inventory_feed

    keys = [credential.id for credential in credential_rows.listing(engine)]
    return [
        sealed.envelope for _, sealed in sorted(inventory_feed.credentials(engine, keys).items())
    ]


def test_sites_are_made_on_demand_and_stay_until_removed(engine: Engine) -> None:
    """A site keeps its requirements when its last device leaves; removing a site in use is
    refused.
    """
    devices.add(engine, device("sw1", site="ams"))
    sites.edit(engine, "ams", {"site": "ams"})
    with pytest.raises(errors.InvalidInput, match="has a device"):
        sites.remove(engine, "ams")
    devices.remove(engine, ["sw1"])
    assert sites.listing(engine) == [sites.Site("ams", {"site": "ams"}, 0)]
    sites.remove(engine, "ams")
    assert sites.listing(engine) == []
    with pytest.raises(errors.NotFound):
        sites.edit(engine, "ams", {})
