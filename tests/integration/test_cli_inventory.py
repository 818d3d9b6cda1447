"""The inventory commands from the command line to the database and back."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import redis

from poller import bootstrap
from poller.db import engine as sql
from poller.db.inventory import inventory_feed, targets
from poller.db.record import stored_readings
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from tests.integration.commands import Cli, ok


def test_a_device_and_its_first_target_in_one_command(cli: Cli) -> None:
    """All typed values are stored, in the types that the collector declares."""
    ok(cli("credential", "add", "public", "--kind", "community", stdin="public-secret\n"))
    added = cli(
        "device",
        "add",
        "sw1",
        "192.0.2.1",
        "--site",
        "ams",
        "--tag",
        "core",
        "--tag",
        "lab",
        "--require",
        "zone=dmz",
        "--credential",
        "public",
        "--collector",
        "snmp",
        "--interval",
        "30s",
        "--timeout",
        "5s",
        "-o",
        "port=1161",
        "-o",
        "modules=system,if_mib",
    )
    assert ok(added).out == "added device sw1 (192.0.2.1), polled with snmp\n"
    shown = ok(cli("device", "show", "sw1", "--json")).json
    assert (shown["site"], shown["tags"], shown["requires"], shown["credential"]) == (
        "ams",
        ["core", "lab"],
        {"zone": "dmz"},
        "public",
    )
    [target] = shown["targets"]
    assert (target["interval_ms"], target["timeout_ms"]) == (30_000, 5_000)
    assert target["options"] == {"port": 1161, "modules": ["system", "if_mib"]}


def test_a_device_has_a_credential_that_only_some_of_its_targets_use(cli: Cli) -> None:
    """A target that needs no credential accepts any; one that needs another kind is refused."""
    ok(cli("credential", "add", "public", "--kind", "community", stdin="public-secret\n"))
    ok(cli("credential", "add", "api", "--kind", "token", stdin="api-secret\n"))
    ok(cli("device", "add", "sw1", "192.0.2.1", "--credential", "public", "--collector", "snmp"))
    ok(cli("target", "add", "sw1", "--collector", "ping"))
    assert (
        "needs"
        not in ok(cli("target", "add", "sw1", "--collector", "http", "-o", "expect=200,401")).err
    )
    wants = ["target", "add", "sw1", "--collector", "http", "--name", "api", "-o", "auth=bearer"]
    refused = cli(*wants, "--json")
    assert (
        refused.error["message"]
        == 'collector http cannot use credential "public" of kind community'
    )
    ok(cli(*wants, "--credential", "api"))
    assert (
        cli("target", "edit", "sw1", "http", "--credential", "public", "--json").error["code"]
        == "P201"
    )
    listed = ok(cli("target", "list", "sw1", "--json")).json["items"]
    assert [(each["name"], each["credential"]) for each in listed] == [
        ("api", "api"),
        ("http", ""),
        ("ping", ""),
        ("snmp", ""),
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["device", "add", "sw1", "192.0.2.1"], "P102", 'there is a device named "sw1" already'),
        (["device", "add", "a b", "192.0.2.1"], "P201", 'the name "a b" contains a blank'),
        (
            ["device", "add", "x", "10.0.0.300"],
            "P201",
            '"10.0.0.300" is not an IP address or host name',
        ),
        (
            ["device", "add", "x", "::1", "--require", "a"],
            "P201",
            '"a" is not of the form key=value',
        ),
        (["device", "add", "x", "::1", "--require", "a=b;c=d"], "P201", 'the value contains ";"'),
        (["device", "edit", "sw1", "--require", "zo ne=a"], "P201", "the key contains a blank"),
        (
            ["device", "add", "x", "::1", "--tag", "a,b"],
            "P201",
            'the tag "a,b" is not one word (contains ",":',
        ),
        (
            ["target", "edit", "sw1", "snmp", "--require", "zone=z\u00fcrich"],
            "P201",
            'the value contains "\u00fc"',
        ),
        (
            ["target", "edit", "sw1", "snmp", "--require", "zone=\x07"],
            "P201",
            "an unprintable character",
        ),
        (["site", "edit", "x", "--require", "zone="], "P201", 'the requirement "zone=" is not of'),
        (["device", "add", "x", "::1", "--collector", "smnp"], "P401", 'unknown collector "smnp"'),
        (
            ["device", "add", "x", "::1", "--collector", "snmp", "-o", "prt=1"],
            "P201",
            'unknown option "prt"',
        ),
        (
            ["device", "add", "x", "::1", "--collector", "snmp", "-o", "port=x"],
            "P201",
            'option "port"',
        ),
        (
            ["device", "add", "x", "::1", "--collector", "snmp", "--interval", "5 min"],
            "P201",
            "is not a duration",
        ),
        (
            ["device", "add", "x", "::1", "--collector", "snmp", "--interval", "10ms"],
            "P201",
            "out of bounds",
        ),
        (
            [
                "device",
                "add",
                "x",
                "::1",
                "--collector",
                "snmp",
                "--interval",
                "5s",
                "--timeout",
                "5s",
            ],
            "P201",
            "short",
        ),
        (
            ["device", "add", "x", "::1", "--collector", "", "--interval", "60s"],
            "P201",
            "--interval belongs to a target",
        ),
        (
            ["device", "add", "x", "::1", "--credential", "nope"],
            "P107",
            'no credential named "nope"',
        ),
        (["device", "edit", "sw1"], "P201", "nothing to change"),
        (["device", "edit", "sw9", "--site", "x"], "P101", 'no device named "sw9"'),
        (["device", "show", "sw9"], "P101", 'no device named "sw9"'),
        (["device", "rm", "sw1"], "P501", "remove device sw1"),
        (["device", "rm", "sw1", "sw9", "--yes"], "P101", 'no device named "sw9"'),
        (["target", "add", "sw1", "--collector", "snmp"], "P102", 'a target named "snmp" already'),
        (["target", "edit", "sw1", "snpm", "--disable"], "P101", 'no target named "snpm"'),
        (["target", "edit", "sw1", "snmp", "-o", "prt=1"], "P201", 'unknown option "prt"'),
        (
            ["target", "edit", "sw1", "snmp", "--interval", "5s"],
            "P201",
            "must be shorter than the interval 5s",
        ),
        (["target", "list", "--after", "x"], "P201", "DEVICE/TARGET"),
        (
            ["device", "add", "x", "::1", "--collector", "snmp", "--min", "5s"],
            "P201",
            "a fixed interval has no min",
        ),
        (
            ["device", "add", "x", "::1", "--collector", "", "--policy", "adaptive", "--max", "1m"],
            "P201",
            "--policy, --max belong",
        ),
        (["device", "add", "x", "::1", "--collector", "snmp", "--policy", "slow"], "P200", "slow"),
        (
            ["target", "edit", "sw1", "snmp", "--staleness", "age"],
            "P201",
            "a fixed interval has no staleness",
        ),
        (
            ["target", "edit", "sw1", "snmp", "--policy", "fixed", "--max", "5m"],
            "P201",
            "a fixed interval has no max",
        ),
        (
            ["target", "edit", "sw1", "snmp", "--policy", "adaptive", "--max", "30s"],
            "P201",
            "longer than the max 30s",
        ),
        (
            ["target", "edit", "sw1", "snmp", "--policy", "adaptive", "--min", "500ms"],
            "P201",
            "the min 500ms is out",
        ),
        (
            ["target", "edit", "sw1", "snmp", "--policy", "adaptive", "--staleness", "aeg"],
            "P201",
            'source "aeg"',
        ),
        (
            ["credential", "add", "x", "--kind", "comunity"],
            "P201",
            'unknown credential kind "comunity"',
        ),
        (["credential", "add", "x", "--kind", "community"], "P201", "the secret is missing"),
        (["credential", "rm", "x", "--yes"], "P101", 'no credential named "x"'),
        (["site", "edit", "x", "--no-requires"], "P101", 'no site named "x"'),
        (["readings", "sw9"], "P101", 'no device named "sw9"'),
        (["device", "list", "--limit", "0"], "P200", "limit"),
        (["device", "import", "no.csv"], "P201", "cannot read no.csv"),
        (["device", "import", "/"], "P201", "cannot tell the format"),
        (["device", "import", "/", "--format", "csv"], "P201", "cannot read /"),
        (["device", "list", "--colour"], "P200", "--colour"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_is_named_and_changes_nothing(
    cli: Cli, home: Path, arguments: list[str], code: str, message: str
) -> None:
    """Each mistake has its code, its exit status and a text that quotes the wrong word."""
    ok(cli("device", "add", "sw1", "192.0.2.1", "--collector", "snmp"))
    engine = sql.create(f"sqlite:///{home}/poller.db")
    before = inventory_feed.version(engine)
    refused = cli(*arguments, "--json")
    assert refused.error["code"] == code
    assert message in refused.error["message"]
    assert refused.code == (3 if code in ("P101", "P107") else 2)
    assert refused.out == ""
    assert inventory_feed.version(engine) == before


def test_editing_and_removing(cli: Cli) -> None:
    """Fields without an option stay; lists are replaced or cleared as a whole."""
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
            "--collector",
            "snmp",
            "-o",
            "port=1161",
        )
    )
    ok(cli("device", "edit", "sw1", "--rename", "sw2", "--no-tags", "--disable"))
    found = ok(cli("device", "show", "sw2", "--json")).json
    assert (found["site"], found["tags"], found["enabled"]) == ("ams", [], False)
    ok(
        cli(
            "target",
            "edit",
            "sw2",
            "snmp",
            "--rename",
            "main",
            "-o",
            "retries=1",
            "-o",
            "port=",
            "--interval",
            "5m",
        )
    )
    [target] = ok(cli("target", "list", "sw2", "--json")).json["items"]
    assert (target["name"], target["options"], target["interval_ms"]) == (
        "main",
        {"retries": 1},
        300_000,
    )
    ok(cli("target", "rm", "sw2", "main", "--yes"))
    assert (
        "removed device sw2 and 0 targets"
        in ok(cli("device", "rm", "-", "--yes", stdin="sw2\n")).out
    )
    assert ok(cli("device", "list", "--json")).json["items"] == []


def test_lists_come_in_pages_with_the_next_command(cli: Cli) -> None:
    """People get a sentence, programs the field `next`."""
    for number in range(3):
        ok(cli("device", "add", f"sw{number}", "192.0.2.1", "--collector", "snmp"))
    first = ok(cli("device", "list", "--limit", "2"))
    assert [line.split("\t")[0] for line in first.out.splitlines()] == ["name", "sw0", "sw1"]
    assert "3 devices in all; more with --after sw1" in first.err
    assert ok(cli("device", "list", "--limit", "2", "--json")).json["next"] == "sw1"
    rest = ok(cli("device", "list", "--after", "sw1", "--json")).json
    assert ([item["name"] for item in rest["items"]], rest["next"]) == (["sw2"], None)
    page = ok(cli("target", "list", "--limit", "1", "--json")).json
    assert page["next"] == "sw0/snmp"
    assert len(ok(cli("target", "list", "--after", "sw0/snmp", "--json")).json["items"]) == 2


def test_an_edit_works_without_redis_with_a_note(cli: Cli) -> None:
    """The change is stored; the scheduler reads it later."""
    added = ok(cli("device", "add", "sw1", "192.0.2.1"))
    assert "it will read the change when it runs" in added.err


def test_an_edit_wakes_the_scheduler(
    cli: Cli, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message arrives on the channel of this cluster."""
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    listener = redis_client.pubsub(ignore_subscribe_messages=True)
    listener.psubscribe("poller:*")
    listener.get_message(timeout=5)
    added = ok(cli("device", "add", "sw1", "192.0.2.1"))
    assert added.err.count("note:") == 0
    message = next(found for _ in range(50) if (found := listener.get_message(timeout=0.1)))
    listener.close()
    assert message["data"] == "inventory"


def test_readings_of_a_device(cli: Cli, home: Path) -> None:
    """The last poll of each target is printed, with labels, kinds and age."""
    ok(cli("device", "add", "sw1", "192.0.2.1", "--collector", "snmp"))
    assert (
        "sw1/snmp: nothing has been read yet; poller runs sw1/snmp"
        in ok(cli("readings", "sw1")).err
    )
    engine = sql.create(f"sqlite:///{home}/poller.db")
    now = time.time_ns() // 1_000_000
    found = [
        Reading("octets", 2.0**40, {"if": "eth0"}, Kind.COUNTER, 64),
        Reading("load", 0.25),
        Reading("odd", float("nan")),
    ]
    stored = stored_readings.Stored(
        targets.show(engine, "sw1", "snmp").id, now - 5_000, ReadingSet.of(found)
    )
    stored_readings.Writer(engine).write([stored], now)
    items = ok(cli("readings", "sw1", "--json")).json["items"]
    assert [(i["metric"], i["value"], i["labels"], i["kind"]) for i in items] == [
        ("octets", 2**40, {"if": "eth0"}, "counter"),
        ("load", 0.25, {}, "gauge"),
        ("odd", None, {}, "gauge"),
    ]
    assert [item["width_bits"] for item in items] == [64, None, None]
    assert all(5 <= item["age_seconds"] < 65 for item in items)
    text = ok(cli("readings", "sw1", "--metric", "oct")).out
    assert text.splitlines()[1].split("\t")[:4] == ["snmp", "octets", "if=eth0", str(2**40)]
    assert "nothing matches" in ok(cli("readings", "sw1", "--metric", "nonsense")).err
    assert "3 values in all" in ok(cli("readings", "sw1", "--limit", "1")).err


def test_a_new_site_is_noted_with_the_name_it_resembles(cli: Cli, tmp_path: Path) -> None:
    """A misspelled site would silently lose the workers of the right one."""
    first = ok(cli("device", "add", "sw1", "192.0.2.1", "--site", "ams"))
    assert "note: made the new site ams\n" in first.err
    assert "new site" not in ok(cli("device", "add", "sw2", "192.0.2.2", "--site", "ams")).err
    typo = "note: made the new site amz; did you mean ams?"
    assert typo in ok(cli("device", "add", "sw3", "192.0.2.3", "--site", "amz")).err
    ok(cli("device", "edit", "sw3", "--site", "pop-11"))
    assert "made the new site pop-12\n" in ok(cli("device", "edit", "sw3", "--site", "pop-12")).err
    ok(cli("site", "rm", "amz", "--yes"))
    assert typo in ok(cli("device", "edit", "sw3", "--site", "amz")).err
    assert "new site" not in ok(cli("device", "edit", "sw3", "--site", "")).err
    ok(cli("site", "rm", "amz", "--yes"))
    file = tmp_path / "more.csv"
    file.write_text(
        "name,address,site\nsw4,192.0.2.4,amz\nsw5,192.0.2.5,ams\nsw6,192.0.2.6,paris\n"
    )
    trial = ok(cli("device", "import", str(file), "--dry-run"))
    assert trial.out == "would be done: 3 devices added; 3 targets added; 2 new sites\n"
    assert "would make the new site amz; did you mean ams?" in trial.err
    done = ok(cli("device", "import", str(file), "--json"))
    assert done.json["sites_added"] == 2
    assert typo in done.err
    assert "new site" not in ok(cli("device", "import", str(file), "--update")).out


def test_sites_can_carry_requirements(cli: Cli) -> None:
    """The requirements decide the queue of every target at the site."""
    ok(cli("device", "add", "sw1", "192.0.2.1", "--site", "ams", "--collector", "snmp"))
    ok(cli("site", "edit", "ams", "--require", "site=ams"))
    assert ok(cli("site", "list", "--json")).json["items"] == [
        {"name": "ams", "requires": {"site": "ams"}, "devices": 1}
    ]
    with inventory_feed.all_specs(bootstrap.services().engine) as fleet:
        assert [spec.queue for spec in fleet.specs] == ["poll.snmp;site=ams"]
    assert cli("site", "rm", "ams", "--yes").code == 2
    ok(cli("device", "rm", "sw1", "--yes"))
    ok(cli("site", "rm", "ams", "--yes"))


def test_a_target_is_shown_with_its_id(cli: Cli) -> None:
    """The list has the same id, which the API takes; the text has durations in words."""
    ok(cli("device", "add", "sw1", "192.0.2.1", "--collector", "ping", "--interval", "90s"))
    [listed] = ok(cli("target", "list", "--json")).json["items"]
    shown = ok(cli("target", "show", "sw1/ping", "--json")).json
    assert (shown["schema"], shown["id"], shown["name"]) == (
        "poller.target/1",
        listed["id"],
        "ping",
    )
    text = ok(cli("target", "show", "sw1", "ping"))
    assert "interval: 1m30s\n" in text.out
    assert "poller why sw1/ping" in text.err
    header, row = ok(cli("target", "list")).out.splitlines()
    assert (header.split("\t")[-1], row.split("\t")[-1]) == ("id", str(listed["id"]))
    assert cli("target", "show", "sw1/snmp").code == 3
    assert "which target" in cli("target", "show", "sw1").err
