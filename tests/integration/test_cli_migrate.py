"""`poller migrate snmp-exporter` with the files of a Prometheus and of an exporter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.commands import Cli

PROMETHEUS = """
global: {scrape_interval: 1m}
scrape_configs:
  - job_name: node
    static_configs: [{targets: ["127.0.0.1:9100"]}]
  - job_name: switches
    metrics_path: /snmp
    scrape_timeout: 30s
    params: {module: [if_mib, "mine"], auth: [corp]}
    static_configs:
      - targets: [192.0.2.10, "192.0.2.11:1161"]
        labels: {site: ams, role: core switch}
    file_sd_configs: [{files: ["sd/*.json"]}]
    relabel_configs: &usual
      - {source_labels: [__address__], target_label: __param_target}
      - {source_labels: [__param_target], target_label: instance}
      - {target_label: __address__, replacement: "127.0.0.1:9116"}
  - job_name: slow
    metrics_path: /snmp
    scrape_interval: 5m
    params: {module: [system], auth: [v3]}
    dns_sd_configs: [{names: [switches.example.net]}]
    static_configs: [{targets: [192.0.2.10]}]
    relabel_configs: *usual
  - job_name: unknown
    metrics_path: /snmp
    params: {module: [nosuch]}
    static_configs: [{targets: [192.0.2.99]}]
    relabel_configs: *usual
"""
SNMP = """
auths:
  corp: {community: planted-community, version: 1}
  v3: {version: 3, username: ops, security_level: authPriv, auth_protocol: SHA256,
       password: planted-password, priv_password: planted-privacy, priv_protocol: AES}
modules:
  mine:
    walk: [1.3.6.1.2.1.1.3]
    metrics: [{name: sysUpTime, oid: 1.3.6.1.2.1.1.3, type: gauge, help: up}]
"""
FLAT = """
if_mib:
  walk: [1.3.6.1.2.1.1.3]
  metrics: [{name: sysUpTime, oid: 1.3.6.1.2.1.1.3, type: gauge, help: up}]
  version: 2
  auth: {community: planted-flat}
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Both files, and a file of targets beside them."""
    (tmp_path / "prometheus.yml").write_text(PROMETHEUS)
    (tmp_path / "snmp.yml").write_text(SNMP)
    (tmp_path / "sd").mkdir()
    groups = [{"targets": ["sw-9.example.net"], "labels": {"site": "ber"}}]
    (tmp_path / "sd" / "more.json").write_text(json.dumps(groups))
    return str(tmp_path / "prometheus.yml"), str(tmp_path / "snmp.yml")


def test_the_plan_is_shown_and_nothing_changes(cli: Cli, files: tuple[str, str]) -> None:
    """Jobs, credentials, modules and what is left to a person are listed; no secret is."""
    shown = cli("migrate", "snmp-exporter", *files)
    assert shown.code == 0, shown.err
    assert "switches\t3\tif_mib, mine\tcorp\t1m" in shown.out
    assert "v3\tsnmpv3\t1\tnew" in shown.out
    assert "mine\t3\tsnmp.yml" in shown.out
    assert "would be done: 2 credentials added; 3 devices added" in shown.out
    assert "dns_sd_configs is not read" in shown.err
    assert 'snmp.yml has no module "nosuch"' in shown.err
    assert "planted" not in shown.out + shown.err
    assert json.loads(cli("device", "list", "--json").out)["items"] == []
    assert json.loads(cli("credential", "list", "--json").out)["items"] == []


def test_the_plan_can_be_applied_and_repeated(cli: Cli, files: tuple[str, str]) -> None:
    """Devices get the port, site, tags, modules, login, version and interval of their jobs."""
    done = cli("migrate", "snmp-exporter", *files, "--apply", "--json")
    assert done.code == 0, done.err
    assert "planted" not in done.out + done.err
    assert json.loads(done.out)["added"] == 3

    devices = json.loads(cli("device", "list", "--json").out)["items"]
    by_name = {device["name"]: device for device in devices}
    assert by_name["192.0.2.10"]["tags"] == ["role:core-switch"]
    assert (by_name["192.0.2.10"]["site"], by_name["sw-9.example.net"]["site"]) == ("ams", "ber")
    targets = json.loads(cli("target", "list", "--json").out)["items"]
    by_key = {(target["device"], target["name"]): target for target in targets}
    assert set(by_key) == {
        ("192.0.2.10", "snmp"),
        ("192.0.2.10", "snmp-system"),
        ("192.0.2.11", "snmp"),
        ("sw-9.example.net", "snmp"),
    }
    ported = by_key["192.0.2.11", "snmp"]
    assert ported["options"] == {
        "config": [files[1]],
        "modules": ["if_mib", "mine"],
        "port": 1161,
        "version": "1",
    }
    assert (ported["credential"], ported["interval_ms"], ported["timeout_ms"]) == (
        "corp",
        60_000,
        30_000,
    )
    slow = by_key["192.0.2.10", "snmp-system"]
    assert (slow["credential"], slow["interval_ms"], slow["options"]) == (
        "v3",
        300_000,
        {"modules": ["system"]},
    )

    for words in (["--apply"], [], ["--apply", "--update"]):
        again = cli("migrate", "snmp-exporter", *files, *words)
        assert (again.code, "everything is there already" in again.out) == (0, True), again.err


def test_a_device_that_differs_is_changed_only_when_told(
    cli: Cli, files: tuple[str, str], tmp_path: Path
) -> None:
    """The error names the option of this command; a new device of the files changes nothing."""
    cli("migrate", "snmp-exporter", *files, "--apply")
    text = PROMETHEUS.replace("scrape_interval: 5m", "scrape_interval: 4m")
    more = text.replace("[192.0.2.10, ", "[192.0.2.10, 192.0.2.12, ")
    (tmp_path / "prometheus.yml").write_text(more)
    refused = cli("migrate", "snmp-exporter", *files, "--apply")
    assert (refused.code, "add --update to change them" in refused.err) == (2, True), refused.err
    assert len(json.loads(cli("device", "list", "--json").out)["items"]) == 3
    done = json.loads(cli("migrate", "snmp-exporter", *files, "--apply", "--update", "--json").out)
    assert (done["added"], done["targets_updated"]) == (1, 1)


def test_new_devices_are_added_beside_those_that_are_there(
    cli: Cli, files: tuple[str, str], tmp_path: Path
) -> None:
    """A device that is stored as it would be is left alone, without --update."""
    cli("migrate", "snmp-exporter", *files, "--apply")
    more = PROMETHEUS.replace("[192.0.2.10, ", "[192.0.2.10, 192.0.2.12, ")
    (tmp_path / "prometheus.yml").write_text(more)
    done = json.loads(cli("migrate", "snmp-exporter", *files, "--apply", "--json").out)
    assert (done["added"], done["updated"], done["unchanged"]) == (1, 0, 3)


def test_a_flat_file_has_its_logins_in_its_modules(
    cli: Cli, files: tuple[str, str], tmp_path: Path
) -> None:
    """The older format becomes one credential for each login."""
    (tmp_path / "snmp.yml").write_text(FLAT)
    text = PROMETHEUS.replace(', "mine"], auth: [corp]', "]")
    (tmp_path / "prometheus.yml").write_text(text)
    body = json.loads(cli("migrate", "snmp-exporter", *files, "--apply", "--json").out)
    assert [each["name"] for each in body["credentials"]] == ["snmp-if_mib", "public_v2"]
    assert "planted" not in json.dumps(body)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("prometheus.yml", "a: 1", "no scrape_configs"),
        ("prometheus.yml", "a: [", "prometheus.yml"),
        ("prometheus.yml", PROMETHEUS.replace("[__address__]", "[a], regex: '('"), "expression"),
        ("snmp.yml", "auths: {corp: {version: 9}}\nmodules: {mine: {}}", "corp"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    cli: Cli, files: tuple[str, str], tmp_path: Path, name: str, text: str, message: str
) -> None:
    """The error names the place, and nothing is stored."""
    (tmp_path / name).write_text(text)
    result = cli("migrate", "snmp-exporter", *files, "--apply")
    assert result.code != 0
    assert message in result.err
    assert json.loads(cli("credential", "list", "--json").out)["items"] == []
