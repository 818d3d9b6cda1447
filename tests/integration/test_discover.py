"""`poller discover`: the targets that installed collectors suggest for an address."""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from poller import testing
from poller.collectors.http import HttpCollector
from poller.domain.failures.outcome import Result
from poller.sim import fleet
from poller.sim.fleet import Fault, Protocol
from poller.sim.sim_process import simulated
from tests.integration import web_servers
from tests.integration.commands import Cli, ok


class Sim(NamedTuple):
    address: str
    port: int


@pytest.fixture(scope="module")
def lab() -> Iterator[dict[Protocol, Sim]]:
    """A simulated agent and a simulated router."""
    healthy = [device for device in fleet.devices(20) if device.fault is Fault.NONE]
    chosen = {kind: next(d for d in healthy if d.protocol is kind) for kind in Protocol}
    with simulated(list(chosen.values())) as ports:
        at = {Protocol.SNMP: ports.snmp, Protocol.ROUTEROS: ports.routeros}
        yield {kind: Sim(device.address, at[kind]) for kind, device in chosen.items()}


@pytest.fixture
def agent(lab: dict[Protocol, Sim]) -> Sim:
    return lab[Protocol.SNMP]


@pytest.fixture
def cli(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.delenv("POLLER_COLLECT_SECRET", raising=False)
    return cli


def snmp(agent: Sim, *more: str) -> list[str]:
    return ["discover", f"{agent.address}:{agent.port}", "--collector", "snmp", *more]


def test_an_agent_is_found_with_the_modules_that_suit_it(cli: Cli, agent: Sim) -> None:
    """A stored credential is used, and the suggested target can be added unchanged."""
    ok(cli("credential", "add", "lab", "--kind", "community", stdin=f"{fleet.COMMUNITY}\n"))
    found = ok(cli(*snmp(agent, "--credential", "lab", "--json"))).json
    [item] = found["items"]
    assert (item["collector"], item["credential"], item["options"]["port"]) == (
        "snmp",
        "lab",
        agent.port,
    )
    assert {"system", "if_mib"} <= set(item["options"]["modules"])
    assert "sysObjectID" in item["reason"]
    assert item["name"]
    assert item["facts"]["sysName"] == item["name"]
    assert item["facts"]["sysDescr"][:60] in item["reason"]
    said = ok(cli(*snmp(agent, "--credential", "lab")))
    next_words = said.err.partition("next: poller ")[2].strip().replace("NAME", "sw1").split()
    ok(cli(*next_words))
    assert ok(cli("device", "show", "sw1", "--json")).json["credential"] == "lab"


def test_a_router_is_found_with_its_version(cli: Cli, lab: dict[Protocol, Sim]) -> None:
    router = lab[Protocol.ROUTEROS]
    words = [
        "discover",
        f"{router.address}:{router.port}",
        "--collector",
        "routeros",
        "-o",
        "tls=false",
        "--json",
    ]
    [item] = ok(cli(*words, stdin=f"{fleet.USERNAME}:{fleet.PASSWORD}\n")).json["items"]
    assert item["options"] == {"port": router.port, "tls": False}
    assert item["reason"].startswith("RouterOS ")
    assert item["facts"]["identity"] == item["name"] != ""


def test_the_secret_may_be_piped_as_for_collect(cli: Cli, agent: Sim) -> None:
    assert ok(cli(*snmp(agent), stdin=f"{fleet.COMMUNITY}\n")).out.count("snmp\t") == 1


def test_a_wrong_credential_is_reported_without_its_secret(cli: Cli, agent: Sim) -> None:
    """The exit code is 1: there is no suggestion."""
    answer = cli(*snmp(agent, "-o", "timeout=0.2", "-o", "retries=0"), stdin="not-the-community\n")
    assert answer.code == 1
    assert answer.err.startswith("snmp: no answer from")
    assert "not-the-community" not in answer.err + answer.out


def test_without_a_named_credential_none_is_sent(cli: Cli, agent: Sim) -> None:
    """Each collector reports what it lacks."""
    answer = cli("discover", agent.address, "--json", "--timeout", "1s")
    reasons = {each["collector"]: each["reason"] for each in json.loads(answer.out)["nothing"]}
    assert reasons["snmp"] == "no credential of a kind it takes was named"


def prefix(agent: Sim, length: int = 29) -> str:
    return str(ipaddress.ip_network(f"{agent.address}/{length}", strict=False))


def scan(agent: Sim, *more: str) -> list[str]:
    where = ["--collector", "snmp", "-o", f"port={agent.port}", "--timeout", "700ms"]
    quick = ["-o", "timeout=0.3", "-o", "retries=0"]
    return ["discover", prefix(agent), *where, *quick, *more]


@pytest.fixture
def logins(cli: Cli) -> list[str]:
    """Two stored credentials, of which only the second one works."""
    ok(cli("credential", "add", "old", "--kind", "community", stdin="not-the-community\n"))
    ok(cli("credential", "add", "lab", "--kind", "community", stdin=f"{fleet.COMMUNITY}\n"))
    return ["--credential", "old", "--credential", "lab"]


def test_a_prefix_is_scanned_with_several_credentials(
    cli: Cli, agent: Sim, logins: list[str]
) -> None:
    """The only agent among the addresses is found with the second credential."""
    found = ok(cli(*scan(agent, *logins, "--json"))).json
    [item] = found["items"]
    assert (item["address"], item["collector"], item["credential"]) == (
        agent.address,
        "snmp",
        "lab",
    )
    assert (found["address"], found["scanned"], found["nothing"]) == (prefix(agent), 6, [])
    said = ok(cli(*scan(agent, *logins)))
    assert said.out.splitlines()[0] == "address\tcollector\tcredential\toptions\twhy"
    assert said.out.splitlines()[1].startswith(f"{agent.address}\tsnmp\tlab\t")
    assert "1 of 6 addresses have a target; --output hosts.csv" in said.err


@pytest.mark.parametrize("form", ["csv", "json", "yaml"])
def test_what_a_scan_finds_can_be_imported(
    cli: Cli, agent: Sim, logins: list[str], tmp_path: Path, form: str
) -> None:
    file = tmp_path / f"hosts.{form}"
    printed = ok(cli(*scan(agent, *logins, "--output", str(file), "--format", form)))
    assert f"wrote 1 device to {file}; next: poller device import {file}" in printed.err
    assert printed.out == file.read_text()
    ok(cli("device", "import", str(file)))
    shown = ok(cli("device", "show", agent.address, "--json")).json
    [target] = shown["targets"]
    assert (shown["address"], target["collector"], target["name"]) == (
        agent.address,
        "snmp",
        "snmp",
    )
    assert target["options"]["port"] == agent.port
    assert target["credential"] == "lab"


def test_addresses_that_refuse_are_named_and_silent_ones_are_not(
    cli: Cli, lab: dict[Protocol, Sim]
) -> None:
    """A router that refuses the login answers; nothing listens at the other addresses."""
    router = lab[Protocol.ROUTEROS]
    where = ["--collector", "routeros", "-o", f"port={router.port}", "-o", "tls=false"]
    answer = cli("discover", prefix(router), *where, stdin="poller:not-the-password\n")
    assert answer.code == 1
    lines = answer.err.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [router.address]
    assert "refused the login" in lines[0]
    assert lines[-1] == "0 of 6 addresses have a target"
    assert "not-the-password" not in answer.err


def test_the_form_of_the_file_is_checked_before_anything_is_sent(cli: Cli, agent: Sim) -> None:
    answer = cli(*scan(agent, "--output", "hosts.txt"), stdin="x\n")
    assert answer.code == 2
    assert 'cannot tell the format of "hosts.txt"' in answer.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--collector", "snpm"], 'unknown collector "snpm"'),
        (["-o", "port=1"], "--option is for one collector"),
        (["--collector", "snmp", "-o", "prot=1"], 'unknown option "prot"'),
        (["--collector", "snmp", "--credential", "nobody"], 'no credential named "nobody"'),
        (["--collector", "snmp", "--timeout", "soon"], "not a duration"),
    ],
)
def test_mistakes_are_refused_by_name(cli: Cli, words: list[str], text: str) -> None:
    ok(cli("db", "upgrade"))
    answer = cli("discover", "127.0.0.1", *words, stdin="x\n")
    assert answer.code in (2, 3)
    assert text in answer.err


@pytest.mark.parametrize("address", ["10.0.0.0/8", "10.0.0.5/24", "fd00::/64", "http://sw1/"])
def test_a_range_that_cannot_be_scanned_is_refused(cli: Cli, address: str) -> None:
    answer = cli("discover", address)
    assert answer.code == 2
    assert "ValueError" not in answer.err


def test_collectors_without_a_login_discover_without_one(cli: Cli, agent: Sim) -> None:
    """An address that responds to a ping is worth a target; given options are part of it."""
    found = ok(
        cli("discover", agent.address, "--collector", "ping", "-o", "count=2", "--json")
    ).json
    [item] = found["items"]
    assert (item["collector"], item["options"]) == ("ping", {"count": 2})
    assert item["reason"].startswith("it answers ")


@pytest.mark.parametrize("status", [200, 403])
def test_a_web_server_is_found_and_its_certificate_pinned(
    cli: Cli, tmp_path: Path, status: int
) -> None:
    """The suggested target polls successfully: it expects the status that was seen."""
    made = web_servers.identity(tmp_path)
    with web_servers.serving(web_servers.saying(f"HTTP/1.1 {status} X"), made.context) as server:
        where = ["-o", f"port={server.port}", "-o", "scheme=https"]
        [item] = ok(cli("discover", "127.0.0.1", "--collector", "http", *where, "--json")).json[
            "items"
        ]
        assert f"answers with status {status}; pinned, because self" in item["reason"]
        polled = asyncio.run(testing.collect(HttpCollector(), "127.0.0.1", **item["options"]))
    assert polled.result is Result.OK, polled
    assert set(item["options"]) == {"port", "scheme", "fingerprint"} | (
        {"expect"} if status == 403 else set()
    )


def test_an_address_without_a_web_server_is_reported(cli: Cli, free_port: int) -> None:
    """The reason names the connection that failed."""
    answer = cli("discover", "127.0.0.1", "--collector", "http", "-o", f"port={free_port}")
    assert answer.code == 1
    assert "Connection refused" in answer.err
