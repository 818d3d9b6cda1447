"""`poller collect` in its own process: no database, no Redis, one poll, a readable result."""

from __future__ import annotations

import dataclasses
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from poller.sim import fleet
from poller.sim.fleet import Fault, Protocol, SimDevice
from poller.sim.sim_process import simulated

LOGIN = f"{fleet.USERNAME}:{fleet.PASSWORD}"


class Sim(NamedTuple):
    switch: SimDevice
    router: SimDevice
    down: SimDevice
    snmp_port: int
    routeros_port: int


@pytest.fixture(scope="module")
def sim() -> Iterator[Sim]:
    devices = fleet.devices(20, faulty_share=0)
    switch, other, *_ = [device for device in devices if device.protocol is Protocol.SNMP]
    router = next(device for device in devices if device.protocol is Protocol.ROUTEROS)
    down = dataclasses.replace(other, fault=Fault.DOWN)
    with simulated([switch, router, down]) as ports:
        yield Sim(switch, router, down, ports.snmp, ports.routeros)


def collect(
    *words: str, secret: str | None = None, stdin: str | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command where nothing is configured; `secret` goes into the environment."""
    environment: Mapping[str, str] = {
        **{key: value for key, value in os.environ.items() if not key.startswith("POLLER_")},
        **({} if secret is None else {"POLLER_COLLECT_SECRET": secret}),
    }
    command = [sys.executable, "-m", "poller", "collect", *words]
    return subprocess.run(
        command,
        env=environment,
        input=stdin or "",
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        check=False,
    )


def snmp(
    sim: Sim, *words: str, device: SimDevice | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    address = (device or sim.switch).address
    given = {"secret": fleet.COMMUNITY, **more}
    return collect("snmp", f"{address}:{sim.snmp_port}", *words, **given)


def test_a_piped_table_is_lines_with_tabs(sim: Sim, tmp_path: Path) -> None:
    """The command leaves no file in its directory."""
    done = snmp(sim, "-o", "modules=if_mib", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    header, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert header == ["metric", "labels", "value", "kind"]
    assert {len(row) for row in rows} == {4}
    octets = [row for row in rows if row[0] == "ifHCInOctets"]
    assert octets
    assert all(row[2].isdigit() and row[3] == "counter" for row in octets)
    assert list(tmp_path.iterdir()) == []


def test_json(sim: Sim) -> None:
    done = snmp(sim, "--output", "json")
    document = json.loads(done.stdout)
    assert (document["schema"], document["result"], document["failures"]) == (
        "poller.collect/1",
        "ok",
        [],
    )
    names = {item["metric"] for item in document["items"]}
    assert {"sysUpTime", "ifOperStatus"} <= names
    assert snmp(sim, "--json").stdout[:30] == done.stdout[:30]
    assert document["traffic"]["sent"] >= 3
    assert document["traffic"]["retried"] == 0


def test_prometheus_text_has_the_form_of_an_exporter(sim: Sim) -> None:
    done = snmp(sim, "--output", "prometheus", "-o", "modules=if_mib")
    families = {family.name: family for family in text_string_to_metric_families(done.stdout)}
    octets = families["ifHCInOctets"]
    assert (octets.type, octets.documentation) == (
        "counter",
        "Octets received, framing included (64 bits)",
    )
    assert set(octets.samples[0].labels) == {"ifIndex", "ifName", "ifDescr", "ifAlias"}
    assert families["ifType_info"].documentation.endswith("(EnumAsInfo)")


def test_routeros(sim: Sim) -> None:
    done = collect(
        "routeros",
        f"{sim.router.address}:{sim.routeros_port}",
        "-o",
        "tls=false",
        "-o",
        "families=resource",
        secret=LOGIN,
    )
    assert done.returncode == 0, done.stderr
    assert "warning: tls=false sends the password in clear" in done.stderr
    assert "routeros_system_uptime" in done.stdout


def test_the_secret_may_be_piped(sim: Sim) -> None:
    done = snmp(sim, "-o", "modules=system", secret=None, stdin=f"{fleet.COMMUNITY}\n")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("typed", [fleet.COMMUNITY, json.dumps({"community": fleet.COMMUNITY})])
def test_the_secret_is_prompted_in_a_terminal_and_not_shown(sim: Sim, typed: str) -> None:
    """The environment holds no secret; a JSON object is accepted as in a pipe."""
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover  the child
        for key in [key for key in os.environ if key.startswith("POLLER_")]:
            del os.environ[key]
        words = [
            "collect",
            "snmp",
            sim.switch.address,
            "-o",
            f"port={sim.snmp_port}",
            "-o",
            "modules=system",
        ]
        os.execv(sys.executable, [sys.executable, "-m", "poller", *words])
    shown = _read_until(terminal, b"community, or a JSON object for snmpv3: ")
    os.write(terminal, typed.encode() + b"\n")
    shown += _read_until(terminal, b"")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, shown
    assert b"sysUpTime" in shown
    assert b"7 readings, 1 request\r\n" in shown
    assert b"METRIC" in shown  # a table for people
    assert shown.partition(b"METRIC")[0].count(fleet.COMMUNITY.encode()) == 0


def _read_until(terminal: int, mark: bytes) -> bytes:
    shown = b""
    while not mark or mark not in shown:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    return shown


def test_a_silent_device_is_exit_code_1_and_the_error_form(sim: Sim) -> None:
    done = snmp(
        sim, "--timeout", "500ms", "-o", "timeout=200ms", "-o", "retries=1", device=sim.down
    )
    assert (done.returncode, done.stdout) == (1, "")
    first, *rest = done.stderr.splitlines()
    assert first.startswith(
        f"error[P110]: no answer from {sim.down.address} port {sim.snmp_port} (2 tries in 0."
    )
    assert rest[0].startswith("  cause: wrong credential")
    assert fleet.COMMUNITY not in done.stderr


def test_json_contains_the_failure(sim: Sim) -> None:
    done = snmp(sim, "--json", "--timeout", "300ms", device=sim.down)
    assert done.returncode == 1
    assert json.loads(done.stdout)["failures"][0]["error_code"] == "timeout"
    assert json.loads(done.stderr)["error"]["code"] == "P110"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("snpm", "127.0.0.1"), 'unknown collector "snpm"'),
        (
            ("snmp", "127.0.0.1", "-o", "modules=if_mbi"),
            'option "modules": unknown module "if_mbi"; did you mean',
        ),
        (("snmp", "127.0.0.1", "-o", "port=0"), 'option "port"'),
        (("snmp", "127.0.0.1", "-o", "prot=1"), 'unknown option "prot"; did you mean port?'),
        (("snmp", "127.0.0.1", "-o", "port"), "not of the form key=value"),
        (("snmp", "127.0.0.1", "-o", "port={1"), 'option "port": '),
        (
            ("snmp", "127.0.0.1", "-o", "modules=[system"),
            'option "modules": "[system" is not a YAML value',
        ),
        (
            ("http", "127.0.0.1", "-o", "match=[0-9]+ (ok"),
            'option "match": it is no regular expression',
        ),
        (("snmp", "127.0.0.1", "-o", "config=*.nothing"), "no module file matches /"),
        (("snmp", "127.0.0.1:1161", "-o", "port=161"), "and the option port is 161"),
        (("ping", "127.0.0.1:22"), "collector ping takes no port from it"),
        (("snmp", "127.0.0.1", "--timeout", "soon"), '"soon" is not a duration'),
        (("snmp", "127.0.0.1", "--output", "xml"), "xml"),
        (("snmp",), "ADDRESS"),
    ],
)
def test_mistakes_are_exit_code_2(words: tuple[str, ...], text: str) -> None:
    done = collect(*words, secret="not-for-display")
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr
    assert "not-for-display" not in done.stderr


def test_a_missing_secret_hints_how_to_pass_it() -> None:
    done = collect("snmp", "127.0.0.1", stdin="")
    assert done.returncode == 2
    assert "POLLER_COLLECT_SECRET" in done.stderr


def test_a_wrongly_formed_secret_is_not_repeated() -> None:
    for secret in ('{"community": 5, "sesame": 1}', '{"sesame', "{}"):
        done = collect("snmp", "127.0.0.1", secret=secret)
        assert done.returncode == 2
        assert "sesame" not in done.stderr.replace("sesame: Extra inputs", "")


PLUGIN = """
import ctypes
from poller.collectors import api

class Bad:
    name, api_version, credentials = "bad", api.API_VERSION, ()
    class Options(api.Options): pass
    async def collect(self, poll):
        yield ctypes.string_at(0)
"""


def test_a_plugin_that_crashes_in_c_code_prints_its_stack(tmp_path: Path) -> None:
    """The author gets the line of the crash, not only the shell's `Segmentation fault`."""
    (tmp_path / "bad_plugin.py").write_text(PLUGIN)
    about = tmp_path / "bad_plugin-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bad-plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[poller.collectors]\nbad = bad_plugin:Bad\n")
    done = collect("bad", "127.0.0.1", cwd=tmp_path)
    assert done.returncode < 0, done.stderr
    assert 'bad_plugin.py", line 9 in collect' in done.stderr
