"""Inventory files: imported as a whole or not at all, every problem named, exported unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from poller.db import engine as sql
from poller.db.inventory import inventory_feed, targets
from tests.integration.commands import Cli, csv_lines, ok


def test_a_missing_file_is_refused_with_the_command_that_makes_one(cli: Cli) -> None:
    """The hint names the command that shows the form of such a file."""
    assert (
        "poller device export --format csv shows the form" in cli("device", "import", "no.csv").err
    )


def test_one_bad_line_of_a_thousand_changes_nothing_and_is_named(cli: Cli, tmp_path: Path) -> None:
    """Line 37 has a bad interval; nothing of the file is stored."""
    ok(cli("device", "add", "mine", "192.0.2.1"))
    lines = csv_lines(1000)
    lines[36] = lines[36].replace("60s", "5 min")
    (tmp_path / "fleet.csv").write_text("\n".join(lines) + "\n")
    refused = cli("device", "import", "fleet.csv")
    assert refused.code == 2
    assert refused.err.splitlines()[:2] == [
        "error[P202]: fleet.csv: 1 problem; nothing was changed",
        '  fleet.csv:37: interval: "5 min" is not a duration; write 5m or 300s',
    ]
    assert [item["name"] for item in ok(cli("device", "list", "--json")).json["items"]] == ["mine"]


def test_every_bad_line_is_named_whatever_is_wrong_with_it(cli: Cli, tmp_path: Path) -> None:
    """Problems of form, values, options, collectors and database are listed together, in order."""
    ok(cli("device", "add", "sw0005", "192.0.2.1"))
    lines = csv_lines(10)
    lines[1] = lines[1].replace("10.0.0.1", "10.0.0.300")
    lines[2] = lines[2].replace("port=1161", "prt=1161")
    lines[3] = lines[3].replace("snmp", "smnp")
    lines[7] += ",surplus"
    lines[9] = lines[9].replace("sw0009", "a b")
    (tmp_path / "fleet.csv").write_text("\n".join(lines) + "\n")
    refused = cli("device", "import", "fleet.csv", "--json")
    found = [(detail["line"], detail["field"]) for detail in refused.error["details"]]
    assert found == [
        (2, "address"),
        (3, "options"),
        (4, "collector"),
        (6, "name"),
        (8, "line"),
        (10, "name"),
    ]
    assert "did you mean snmp?" in refused.error["details"][2]["hint"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("plain.csv", "name,address\nsw1,192.0.2.1\nsw2,192.0.2.2\n"),
        ("plain.json", '[{"name": "sw1", "address": "::1"}, {"name": "sw2", "address": "::1"}]'),
    ],
)
def test_new_devices_of_a_file_without_targets_get_the_default_collector(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str
) -> None:
    """The setting decides, the option overrules it; existing devices and exports stay as is."""
    ok(cli("device", "add", "sw1", "192.0.2.1", "--collector", ""))
    (tmp_path / file).write_text(text)
    ok(cli("device", "import", file, "--update"))
    listed = ok(cli("target", "list", "--json")).json["items"]
    assert [(target["device"], target["collector"]) for target in listed] == [("sw2", "ping")]

    exported = ok(cli("device", "export")).out
    ok(cli("device", "rm", "sw1", "sw2", "--yes"))
    (tmp_path / "exported.csv").write_text(exported)
    ok(cli("device", "import", "exported.csv"))
    assert ok(cli("device", "export")).out == exported

    ok(cli("device", "rm", "sw1", "sw2", "--yes"))
    monkeypatch.setenv("POLLER_DEFAULT_COLLECTOR", "snmp")
    ok(cli("device", "import", file, "--collector", "http"))
    ok(cli("device", "add", "sw3", "192.0.2.3"))
    listed = ok(cli("target", "list", "--json")).json["items"]
    assert [target["collector"] for target in listed] == ["http", "http", "snmp"]


def test_the_default_target_has_what_the_file_says_about_targets(cli: Cli, tmp_path: Path) -> None:
    """An interval without a collector is not dropped, and a bad one is named with its line."""
    file = tmp_path / "plain.csv"
    file.write_text("name,address,interval\nsw1,192.0.2.1,5m\nsw2,192.0.2.2,\n")
    ok(cli("device", "import", "plain.csv"))
    listed = ok(cli("target", "list", "--json")).json["items"]
    assert [target["interval_ms"] for target in listed] == [300_000, 60_000]
    file.write_text("name,address,interval\nsw3,192.0.2.3,5 min\n")
    assert "plain.csv:2: interval:" in cli("device", "import", "plain.csv").err


def test_the_sample_file_of_the_docs_can_be_imported(cli: Cli) -> None:
    """A newcomer starts from it."""
    sample = Path(__file__).parents[2] / "docs" / "examples" / "devices.csv"
    ok(cli("credential", "add", "core-snmp", "--kind", "community", stdin="public-secret\n"))
    ok(cli("credential", "add", "edge-api", "--kind", "login", stdin="admin:secret-secret\n"))
    done = ok(cli("device", "import", str(sample)))
    assert done.out == "3 devices added; 4 targets added; 2 new sites\n"


def test_a_target_that_is_twice_in_a_file_is_named_at_its_second_line(
    cli: Cli, tmp_path: Path
) -> None:
    """The line to remove or to rename is the second one."""
    lines = csv_lines(4)
    lines.insert(4, lines[2])
    (tmp_path / "fleet.csv").write_text("\n".join(lines) + "\n")
    refused = cli("device", "import", "fleet.csv")
    assert (
        "  fleet.csv:5: target: the device has a target of this name already, earlier in the file;"
        " remove this one, or give it another name\n"
    ) in refused.err


@pytest.mark.parametrize(
    ("requires", "message"),
    [
        ("{zo;ne: a}", 'the key contains ";"'),
        ("{zone: 5}", "the value is 5, not text: put it in quotes"),
        ("{zone: ''}", "the value is empty"),
        ("{zone: a=b}", 'the value contains "="'),
        ('{zone: "a\\u0007"}', "an unprintable character"),
        ("zone", '"zone" is no mapping of tags'),
    ],
)
def test_an_odd_requirement_in_a_file_is_named(
    cli: Cli, tmp_path: Path, requires: str, message: str
) -> None:
    """The problem is named for a device and for a target; nothing of the file is stored."""
    device = f"- name: d\n  address: 127.0.0.1\n  requires: {requires}\n"
    device_head = "- name: d\n  address: 127.0.0.1\n"
    target = f"{device_head}  targets:\n  - collector: snmp\n    requires: {requires}\n"
    for text in (device, target):
        file = tmp_path / "odd.yaml"
        file.write_text(f"devices:\n{text}")
        refused = cli("device", "import", str(file))
        assert refused.code == 2
        assert message in refused.err
    assert ok(cli("device", "list", "--json")).json["items"] == []


def test_a_good_file_is_imported_and_exists_afterwards(
    cli: Cli, tmp_path: Path, home: Path
) -> None:
    """A dry run comes first; a second import needs --update."""
    (tmp_path / "fleet.csv").write_text("\n".join(csv_lines(1000)) + "\n")
    trial = ok(cli("device", "import", "fleet.csv", "--dry-run", "--json")).json
    assert (trial["added"], trial["dry_run"]) == (1000, True)
    assert ok(cli("device", "list", "--json")).json["items"] == []
    assert (
        ok(cli("device", "import", "fleet.csv")).out
        == "1,000 devices added; 1,000 targets added; 9 new sites\n"
    )
    engine = sql.create(f"sqlite:///{home}/poller.db")
    assert targets.show(engine, "sw0999", "snmp").options == {"port": 1161}
    again = cli("device", "import", "fleet.csv")
    assert again.code == 2
    assert (
        "line 2, 3, 4 and 997 more: name: there is a device of this name already; to change it: "
        "poller device import --update" in again.err
    )
    before = inventory_feed.version(engine)
    assert ok(cli("device", "import", "fleet.csv", "--update")).out == (
        "0 devices added, 0 changed, 1,000 unchanged; 0 targets added, 0 changed, 1,000 unchanged\n"
    )
    assert inventory_feed.version(engine) == before


@pytest.mark.parametrize("form", ["csv", "json", "yaml"])
def test_export_and_import_round_trip(cli: Cli, tmp_path: Path, form: str) -> None:
    """A second export of the imported fleet is the same file."""
    ok(cli("credential", "add", "c", "--kind", "community", stdin="secret-c"))
    ok(
        cli(
            "device",
            "add",
            "sw1",
            "192.0.2.1",
            "--site",
            "ams",
            "--tag",
            "a",
            "--require",
            "zone=dmz",
            "--collector",
            "snmp",
        )
    )
    ok(
        cli(
            "target",
            "add",
            "sw1",
            "--collector",
            "snmp",
            "--name",
            "fast",
            "--interval",
            "5s",
            "--credential",
            "c",
            "-o",
            "modules=system",
        )
    )
    ok(
        cli(
            "target",
            "add",
            "sw1",
            "--collector",
            "snmp",
            "--name",
            "slow",
            "--policy",
            "adaptive",
            "--max",
            "1h",
        )
    )
    ok(cli("device", "add", "bare", "sw.example"))
    assert f"wrote 2 devices to one.{form}" in ok(cli("device", "export", "-o", f"one.{form}")).err
    ok(cli("device", "rm", "sw1", "bare", "--yes"))
    ok(cli("device", "import", f"one.{form}"))
    assert (
        ok(cli("device", "export", "--format", form)).out == (tmp_path / f"one.{form}").read_text()
    )


@pytest.mark.parametrize("form", ["csv", "json", "yaml"])
def test_an_export_is_the_same_on_every_database(
    cli: Cli, tmp_path: Path, form: str, fresh_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL returns keys in another order and may sort names by its own collation."""
    words = [
        "-o",
        "timeout=2",
        "-o",
        "port=1161",
        "-o",
        "modules=system",
        "--require",
        "zone=dmz",
        "--require",
        "a=b",
    ]
    for name in ("b", "B", "a_b", "a-b", "ä"):
        ok(
            cli(
                "device",
                "add",
                name,
                "192.0.2.1",
                "--collector",
                "snmp",
                *words,
                "--policy",
                "adaptive",
            )
        )
    ok(cli("device", "export", "-o", f"one.{form}"))
    monkeypatch.setenv("POLLER_DATABASE_URL", fresh_postgres_url)
    ok(cli("db", "upgrade"))
    ok(cli("device", "import", f"one.{form}"))
    assert (
        ok(cli("device", "export", "--format", form)).out == (tmp_path / f"one.{form}").read_text()
    )


def test_an_update_says_what_changed(cli: Cli, tmp_path: Path) -> None:
    """Three devices of a hundred are reported as changed."""
    lines = csv_lines(100)
    (tmp_path / "fleet.csv").write_text("\n".join(lines))
    ok(cli("device", "import", "fleet.csv"))
    changed = [
        line.replace("60s", "30s").replace("a b", "c") if n in (5, 6, 7) else line
        for n, line in enumerate(lines)
    ]
    (tmp_path / "fleet.csv").write_text("\n".join(changed))
    expected = (
        "0 devices added, 3 changed, 97 unchanged; 0 targets added, 3 changed, 97 unchanged\n"
    )
    assert (
        ok(cli("device", "import", "fleet.csv", "--update", "--dry-run")).out
        == f"would be done: {expected}"
    )
    assert ok(cli("device", "import", "fleet.csv", "--update")).out == expected


@pytest.mark.parametrize(
    ("form", "text"),
    [("csv", "name,address\nsw1,::1\n"), ("yaml", "- {name: sw1, address: '::1'}")],
)
def test_a_file_may_come_from_stdin(cli: Cli, form: str, text: str) -> None:
    """The format must be given, and problems name the file stdin."""
    refused = cli("device", "import", "-", "--json", stdin=text)
    assert (refused.code, refused.error["try"]) == (2, "add --format csv, json or yaml")
    ok(cli("device", "import", "-", "--format", form, stdin=text))
    assert ok(cli("device", "show", "sw1", "--json")).json["address"] == "::1"
    again = cli("device", "import", "-", "--format", form, stdin=text)
    assert "error[P202]: stdin: 1 problem; nothing was changed" in again.err


def test_many_problems_are_listed_in_groups(cli: Cli, tmp_path: Path) -> None:
    """At most twenty groups are listed; the total counts all problems."""
    lines = csv_lines(40)
    for number in range(1, 41):
        lines[number] = lines[number].replace("60s", f"{number} mins" if number <= 30 else "never")
    (tmp_path / "fleet.csv").write_text("\n".join(lines))
    refused = cli("device", "import", "fleet.csv")
    told = refused.err.splitlines()[1:]  # the first names the new database
    assert (
        told[0] == "error[P202]: fleet.csv: 40 problems of 31 kinds, 20 of which are listed; "
        "nothing was changed"
    )
    assert len([line for line in told if line.startswith("  fleet.csv:")]) == 20
    for number in range(1, 31):
        lines[number] = lines[number].replace(" mins", "m")
    (tmp_path / "fleet.csv").write_text("\n".join(lines))
    details = cli("device", "import", "fleet.csv", "--json").error["details"]
    assert [(detail["line"], len(detail["lines"])) for detail in details] == [(32, 10)]


@pytest.mark.parametrize(("collector", "kind"), [("snmp", "community"), ("routeros", "login")])
def test_the_hint_for_an_unknown_credential_works(
    cli: Cli, tmp_path: Path, collector: str, kind: str
) -> None:
    """The hint is a command with a kind that the collector takes; after it the file is good."""
    header = "name,address,credential,collector,target_credential"
    text = f"{header}\na,::1,lab,{collector},\nb,::1,,{collector},lab\n"
    (tmp_path / "fleet.csv").write_text(text)
    details = cli("device", "import", "fleet.csv", "--json").error["details"]
    command = f"poller credential add lab --kind {kind}"
    assert [(detail["line"], detail["field"], detail["hint"]) for detail in details] == [
        (2, "credential", command),
        (3, "target_credential", command),
    ]
    ok(cli(*command.split()[1:], stdin="user:secret-word"))
    ok(cli("device", "import", "fleet.csv"))
