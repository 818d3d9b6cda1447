"""The demo fleet is installed and removed without touching the operator's own devices."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from poller import bootstrap, errors
from poller.bootstrap import Services
from poller.cli import main
from poller.cli.actions import demo_fleet
from poller.db import migrate
from poller.db.inventory import credential_rows, devices, inventory_feed, sites
from poller.domain.inventory.draft import DeviceDraft
from poller.sim import fleet

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def services(home: Path, free_port: int, monkeypatch: pytest.MonkeyPatch) -> Services:
    """A home with a database and no Redis."""
    monkeypatch.setenv("POLLER_REDIS_URL", f"redis://127.0.0.1:{free_port}/0")
    made = bootstrap.services()
    migrate.upgrade(made.engine)
    return made


@pytest.fixture
def run(
    services: Services, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Run one command line without a terminal."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO())
        return (main.run(arguments), *capsys.readouterr())

    return run


def names(services: Services) -> list[str]:
    return [device.name for device in devices.listing(services.engine, limit=None)]


_PORTS = demo_fleet.Ports(snmp=16161, routeros=18728, routeros_tls=18729)


def install(services: Services, size: int = 10) -> bool:
    return demo_fleet.install(services, size, _PORTS)


def test_clearing_removes_all_that_was_installed(services: Services, run: Run) -> None:
    """Devices, credentials and sites are removed."""
    assert install(services)
    code, out, _ = run("demo", "clear", "--json")
    assert (code, json.loads(out)["removed"]) == (0, 10)
    assert (
        names(services),
        credential_rows.listing(services.engine),
        sites.listing(services.engine),
    ) == ([], [], [])


def test_a_device_that_only_has_the_tag_stays(services: Services, run: Run) -> None:
    """A question names it, and it stays whatever the answer is."""
    install(services)
    devices.add(services.engine, DeviceDraft("core-1", "192.0.2.1", tags=("demo",)))
    code, _, err = run("demo", "clear")
    assert code == 2
    assert (
        "this would remove 10 simulated devices; "
        "core-1 is tagged demo, too, and not simulated: kept" in err
    )
    assert len(names(services)) == 11
    code, out, _ = run("demo", "clear", "--yes")
    assert code == 0
    assert (
        out == "removed 10 simulated devices; core-1 is tagged demo, too, and not simulated: kept\n"
    )
    assert names(services) == ["core-1"]


def test_a_device_without_the_tag_at_a_simulated_address_stays(
    services: Services, run: Run
) -> None:
    """The address alone does not make a device part of the fleet."""
    install(services)
    devices.add(services.engine, DeviceDraft("mine", fleet.address(3)))
    assert run("demo", "clear")[0] == 0
    assert names(services) == ["mine"]


def test_credentials_and_sites_in_use_stay(services: Services, run: Run) -> None:
    """A used credential, a site with a device and a site with requirements stay."""
    install(services)
    own = DeviceDraft("mine", "192.0.2.1", site="ams", credential=fleet.SNMP_CREDENTIAL)
    devices.add(services.engine, own)
    sites.edit(services.engine, "fra", {"zone": "dmz"})
    run("demo", "clear")
    assert [c.name for c in credential_rows.listing(services.engine)] == [fleet.SNMP_CREDENTIAL]
    assert [site.name for site in sites.listing(services.engine)] == ["ams", "fra"]
    assert install(services, 5), "a fleet of another size can be installed all the same"
    assert len(names(services)) == 6


def test_the_same_fleet_is_installed_once(services: Services) -> None:
    """The next `poller up --demo` changes nothing; a larger fleet replaces the smaller one."""
    assert install(services)
    assert not install(services)
    assert install(services, 12)
    assert len(names(services)) == 12


def test_clearing_nothing_is_no_error(run: Run) -> None:
    """The output reports zero devices."""
    code, out, _ = run("demo", "clear")
    assert (code, out) == (0, "removed 0 simulated devices\n")


def test_a_demo_device_that_lost_its_tag_is_named(services: Services) -> None:
    """The error says which device, and both ways out; the rest of the demo stays as it is."""
    install(services, 4)
    name = demo_fleet.tagged(services).simulated[0].name
    change = DeviceDraft(name, tags=())
    devices.edit(services.engine, name, change)
    before = inventory_feed.version(services.engine)
    with pytest.raises(errors.AlreadyExists, match=f'name: there is a device "{name}"') as refused:
        install(services, 4)
    assert f"poller device edit {name} --add-tag demo" in refused.value.hint
    assert f"poller device rm {name}" in refused.value.hint
    assert inventory_feed.version(services.engine) == before
