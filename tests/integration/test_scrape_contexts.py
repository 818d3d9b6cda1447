"""SNMPv3 contexts in scrapes: `snmp_context` of `/snmp` reaches the agent, and no other poll."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from poller.bootstrap import Services
from poller.collectors.credentials import SnmpV3
from tests.integration.scrape_worlds import ScrapeWorld
from tests.integration.test_collector_snmp import AUTH, PRIV, free_udp_port, running_snmpd

USER = "reader"
LOGIN = {
    "username": USER,
    "auth_protocol": "SHA",
    "auth_password": AUTH,
    "priv_protocol": "AES",
    "priv_password": PRIV,
}
#: The names of the two systems, as series of the module `system`.
OUTER, INNER = 'sysName{sysName="testbox"} 1', 'sysName{sysName="insidebox"} 1'
MODULES = {"modules": ["system"]}


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """An snmpd with another one behind it as the context `inner`."""
    inside = tmp_path_factory.mktemp("inner")
    with running_snmpd(inside, free_udp_port(), name="insidebox") as inner:
        lines = [
            f'createUser {USER} SHA "{AUTH}" AES "{PRIV}"',
            "view all included .1",
            f"rouser {USER} priv -V all *",
            f"proxy -Cn inner -v 2c -c public 127.0.0.1:{inner.port} .1.3.6.1.2.1.1",
        ]
        more = "\n".join(lines) + "\n"
        with running_snmpd(tmp_path_factory.mktemp("outer"), free_udp_port(), more=more) as outer:
            yield outer.port


@pytest.fixture
def world(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScrapeWorld]:
    made = ScrapeWorld(services, monkeypatch)
    made.announce_worker()
    made.add_login("v3", SnmpV3.from_fields(LOGIN))
    yield made
    made.close()


def test_a_scrape_reads_the_context_that_it_names(world: ScrapeWorld, agent: int) -> None:
    """Two scrapers that ask at once for two contexts of one agent get two polls."""
    plain = f"/snmp?target=127.0.0.1:{agent}&module=system&auth=v3"
    outer, inner = world.get_all([plain, f"{plain}&snmp_context=inner"])
    assert (OUTER in outer.text, INNER in outer.text) == (True, False), outer.text
    assert (OUTER in inner.text, INNER in inner.text) == (False, True), inner.text
    contexts = [wanted.options.get("context", "") for wanted in world.sent]
    assert sorted(contexts) == ["", "inner"]


def test_a_last_poll_answers_for_its_own_context_only(world: ScrapeWorld, agent: int) -> None:
    """A scrape of another context is polled with the login of the device."""
    world.poll(world.add_device("sw1", agent, "v3", options={**MODULES, "context": "inner"}))
    stored = world.get("/snmp?target=sw1&module=system&snmp_context=inner")
    assert INNER in stored.text, stored.text
    assert world.sent == []
    polled = world.get("/snmp?target=sw1&module=system")
    assert OUTER in polled.text, polled.text
    assert "context" not in world.sent[0].options


def test_a_login_of_a_targets_own_file_has_contexts(
    world: ScrapeWorld, agent: int, tmp_path: Path
) -> None:
    """A context needs an SNMPv3 login, wherever the login stands."""
    auths = {
        "secure": {
            "version": 3,
            "security_level": "authPriv",
            "username": USER,
            "password": AUTH,
            "auth_protocol": "SHA",
            "priv_protocol": "AES",
            "priv_password": PRIV,
        },
        "open": {"version": 2, "community": "public"},
    }
    config = tmp_path / "snmp.yml"
    config.write_text(yaml.safe_dump({"auths": auths, "modules": {}}))
    for name in auths:
        options = {**MODULES, "config": [str(config)], "auth": name}
        world.add_device(name, agent, "", options=options)
    secure, refused = world.get_all(
        [f"/snmp?target={name}&module=system&snmp_context=inner" for name in auths]
    )
    assert INNER in secure.text, secure.text
    assert refused.status_code == 400
    assert "'snmp_context' needs an SNMPv3 login, not auth 'open'" in refused.text
