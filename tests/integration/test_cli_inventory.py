"""The inventory commands from the command line to the database and back."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import redis

from poller import bootstrap, errors
from poller.collectors.snmp import SnmpCollector
from poller.db import engine as sql
from poller.db.inventory import devices, inventory_feed, targets
from poller.db.record import stored_readings
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.domain.scheduling.interval import Decision, Policy
from poller.domain.scheduling.schedule import Schedule
from tests.integration.commands import Cli, csv_lines, ok


def test_the_first_device_makes_the_database_and_says_so(cli: Cli, home: Path) -> None:
    """A private database needs no migration command."""
    first = ok(cli("device", "add", "sw1", "192.0.2.1"))
    assert f"created the database {home}/poller.db" in first.err
    assert "created" not in ok(cli("device", "add", "sw2", "192.0.2.2")).err


@pytest.mark.parametrize(
    "command",
    [
        "device list",
        "device show sw1",
        "device export --format csv",
        "target list",
        "credential list",
        "site list",
        "runs",
        "readings sw1",
        "deadletter list",
        "db current",
        "device rm sw1 --yes",
        "device edit sw1 --site x",
        "target add sw1 --collector snmp",
        "demo clear --yes",
    ],
)
def test_a_command_that_adds_no_device_creates_no_database(
    cli: Cli, home: Path, command: str
) -> None:
    """It says that there is none, and what makes one; not even the home is made."""
    refused = cli(*command.split())
    assert refused.code == 5, refused
    assert f"there is no database file {home}/poller.db" in refused.err
    assert "poller db upgrade" in refused.err
    assert not home.exists()


def test_a_database_that_was_deleted_or_replaced_is_not_used(cli: Cli, home: Path) -> None:
    """A process goes on neither with the deleted file nor with another one in its place."""
    ok(cli("device", "add", "sw1", "192.0.2.1"))
    path = home / "poller.db"
    engine = sql.create(f"sqlite:///{path}")
    assert devices.count(engine) == 1
    path.rename(home / "aside.db")
    with pytest.raises(errors.StoreUnavailable, match="was deleted under a running poller"):
        devices.count(engine)
    assert not path.exists()
    path.write_bytes((home / "aside.db").read_bytes())
    with pytest.raises(errors.StoreUnavailable, match="was replaced by another one"):
        devices.count(engine)
    (home / "aside.db").rename(path)
    assert devices.count(engine) == 1


def test_rows_in_a_file_that_vanishes_before_the_commit_are_not_called_stored(
    cli: Cli, home: Path
) -> None:
    """The writer learns of it, so that it keeps the rows."""
    ok(cli("device", "add", "sw1", "192.0.2.1"))
    engine = sql.create(f"sqlite:///{home}/poller.db")

    def write_and_unlink() -> None:
        with sql.writing(engine) as conn:
            conn.exec_driver_sql("UPDATE devices SET address = '192.0.2.2'")
            (home / "poller.db").unlink()

    with pytest.raises(errors.StoreUnavailable, match="was deleted"):
        write_and_unlink()


def test_a_configured_database_is_not_upgraded_unasked(
    cli: Cli, fresh_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shared server is upgraded by an explicit command only."""
    monkeypatch.setenv("POLLER_DATABASE_URL", fresh_postgres_url)
    refused = cli("device", "list", "--json")
    assert (refused.code, refused.error["code"]) == (2, "P303")
    assert refused.error["try"] == "run: poller db upgrade"
    assert cli("db", "current").code == 1
    assert ok(cli("db", "upgrade", "--json")).json["before"] is None
    assert "already at revision" in ok(cli("db", "upgrade")).out
    ok(cli("db", "current"))
    ok(cli("device", "list"))


def test_a_database_at_a_newer_revision_is_refused(cli: Cli, home: Path) -> None:
    """The private database of a home is refused, too: nothing is downgraded."""
    ok(cli("db", "upgrade"))
    engine = sql.create(f"sqlite:///{home}/poller.db")
    with sql.writing(engine) as conn:
        conn.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    refused = cli("device", "list")
    assert refused.code == 2
    assert refused.err.startswith("error[P303]: the database is at revision 9999")


def test_a_database_that_is_away_is_exit_code_5(
    cli: Cli, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error does not show the password of the URL."""
    monkeypatch.setenv("POLLER_DATABASE_URL", f"postgresql://u:hunter22@127.0.0.1:{free_port}/db")
    away = cli("device", "list")
    assert away.code == 5
    assert "error[P301]" in away.err
    assert "hunter22" not in away.err


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


def test_a_target_becomes_adaptive_and_fixed_again(cli: Cli) -> None:
    """An adaptive target gets the settings' bounds; a fixed one has none."""
    ok(cli("device", "add", "sw1", "192.0.2.1", "--collector", ""))
    added = ok(cli("target", "add", "sw1", "--collector", "snmp", "--policy", "adaptive"))
    assert added.out == "added target sw1/snmp: snmp every 10s (5s to 5m)\n"
    ok(cli("target", "edit", "sw1", "snmp", "--max", "1m", "--staleness", "change"))
    [found] = ok(cli("target", "list", "--json")).json["items"]
    expected = {
        "policy": "adaptive",
        "interval_ms": 10_000,
        "min_ms": 5_000,
        "max_ms": 60_000,
        "timeout_ms": 5_000,
    }
    assert expected.items() <= found.items()
    assert (found["staleness"], found["decision"]) == ("change", None)
    row = ok(cli("device", "show", "sw1")).out.splitlines()[-1].split("\t")
    assert row[2:4] == ["adaptive change", "10s (5s to 1m)"]
    ok(cli("target", "edit", "sw1", "snmp", "--policy", "fixed"))
    [found] = ok(cli("target", "list", "--json")).json["items"]
    assert (found["policy"], found["interval_ms"], found["min_ms"], found["staleness"]) == (
        "fixed",
        10_000,
        None,
        None,
    )
    assert "decision" not in found


def test_bounds_of_an_adaptive_target_come_from_its_collector_or_the_settings(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command and a file give the same bounds; given values win, stored values stay."""
    monkeypatch.setenv("POLLER_ADAPTIVE_MAX_S", "90")
    monkeypatch.setattr(
        SnmpCollector, "schedule", Schedule(Policy.ADAPTIVE, 30_000, min_ms=20_000), raising=False
    )
    ok(cli("device", "add", "a", "192.0.2.1", "--collector", "snmp"))
    (tmp_path / "f.csv").write_text(
        "name,address,collector,interval\nb,192.0.2.2,snmp,\nc,192.0.2.3,snmp,40s\n"
    )
    ok(cli("device", "import", "f.csv"))
    ok(cli("device", "add", "d", "192.0.2.1", "--collector", "snmp", "--policy", "fixed"))
    items = ok(cli("target", "list", "--json")).json["items"]
    assert [(i["policy"], i["interval_ms"], i["min_ms"], i["max_ms"]) for i in items] == [
        ("adaptive", 30_000, 20_000, 90_000),
        ("adaptive", 30_000, 20_000, 90_000),
        ("adaptive", 40_000, 20_000, 90_000),
        ("fixed", 30_000, None, None),
    ]
    monkeypatch.delattr(SnmpCollector, "schedule")
    assert ok(cli("device", "import", "f.csv", "--update")).out.endswith("0 changed, 2 unchanged\n")
    assert ok(cli("target", "list", "--json")).json["items"] == items


def test_the_last_decision_is_shown_if_redis_is_reachable(
    cli: Cli, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People get one sentence, programs get numbers; without Redis there is a note."""
    ok(cli("device", "add", "sw1", "192.0.2.1", "--collector", "snmp", "--policy", "adaptive"))
    decision = Decision(0.983051, 2, 0, 5_000, 6_100, 6_100, "steady")
    assert "the last decisions are not shown" in ok(cli("device", "show", "sw1")).err
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    redis_client.hset(
        "poller:status", "1", Status(State.FAILING, code="timeout", decision=decision).pack()
    )
    sentence = "every 6.1 s: base 10 s, 2 errors shorten to 5 s, smoothed"
    assert ok(cli("device", "show", "sw1")).out.splitlines()[-1] == f"snmp: {sentence}"
    [found] = ok(cli("target", "list", "--json")).json["items"]
    assert found["why"] == sentence
    assert (found["decision"]["errors"], found["decision"]["chosen_ms"]) == (2, 6_100)
    [found] = ok(cli("device", "show", "sw1", "--json")).json["targets"]
    assert found["why"] == sentence


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


def test_settings_show_the_origin_of_values_and_hide_secrets(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Origins are environment and default; passwords are masked."""
    monkeypatch.setenv("POLLER_DATABASE_URL", "postgresql://u:hunter22@h/db")
    monkeypatch.setenv("POLLER_BATCH_SIZE", "32")
    result = ok(cli("settings", "--json"))
    items = {item["name"]: item for item in result.json["items"]}
    assert items["batch_size"]["value"] == "32"
    assert "POLLER_BATCH_SIZE" in items["batch_size"]["origin"]
    assert items["tick_s"]["origin"] == "default"
    assert "hunter22" not in result.out
    assert "@h/db" in items["database_url"]["value"]


def test_a_bad_setting_is_refused_by_every_command(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is 2, and the error names the variable."""
    monkeypatch.setenv("POLLER_BATCH_SIZ", "32")
    refused = cli("device", "list")
    assert refused.code == 2
    assert "POLLER_BATCH_SIZ" in refused.err
    assert "POLLER_BATCH_SIZE" in refused.err


def test_an_unexpected_error_is_one_sentence(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --verbose a traceback is printed, too."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no luck with redis://u:hunter22@h")

    ok(cli("db", "upgrade"))
    monkeypatch.setattr(devices, "listing", broken)
    result = cli("device", "list")
    assert result.code == 1
    assert result.err.splitlines()[-2].startswith(
        "error[P000]: unexpected RuntimeError: no luck with"
    )
    assert "Traceback" not in result.err
    assert "hunter22" not in result.err
    assert "Traceback" in cli("--verbose", "device", "list").err


def test_the_same_commands_work_on_postgresql(
    cli: Cli, fresh_postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Add, import, export and remove work on the other backend."""
    monkeypatch.setenv("POLLER_DATABASE_URL", fresh_postgres_url)
    ok(cli("db", "upgrade"))
    ok(cli("credential", "add", "c", "--kind", "community", stdin="secret-c"))
    ok(
        cli(
            "device",
            "add",
            "one",
            "192.0.2.1",
            "--credential",
            "c",
            "--tag",
            "x",
            "--collector",
            "snmp",
        )
    )
    (tmp_path / "fleet.csv").write_text("\n".join(csv_lines(50)) + "\n")
    ok(cli("device", "import", "fleet.csv"))
    ok(cli("device", "export", "-o", "all.json"))
    ok(cli("device", "import", "all.json", "--update"))
    assert (
        len(ok(cli("device", "list", "--tag", "a", "--limit", "100", "--json")).json["items"]) == 50
    )
    assert "removed device one and 1 target" in ok(cli("device", "rm", "one", "--yes")).out
    ok(cli("credential", "rm", "c", "--yes"))
    engine = sql.create(fresh_postgres_url)
    assert devices.count(engine) == 50
    engine.dispose()


def test_sqlite_and_directories_belong_to_their_owner(cli: Cli, home: Path) -> None:
    """Other users cannot read the inventory of a network."""
    ok(cli("db", "upgrade"))
    assert os.stat(home).st_mode & 0o077 == 0


def test_a_refused_login_names_its_setting(
    cli: Cli,
    fresh_postgres_url: str,
    valkey_url: str,
    redis_client: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PostgreSQL and Redis run, so the hint is the setting with the login, never the password."""
    stranger = fresh_postgres_url.replace("postgres@", "stranger:hunter22@")
    monkeypatch.setenv("POLLER_DATABASE_URL", stranger)
    refused = cli("device", "list")
    assert refused.code == 5
    assert "login was refused" in refused.err
    assert "POLLER_DATABASE_URL" in refused.err

    redis_client.execute_command("ACL", "SETUSER", "guest", "on", ">right", "~*", "+@all")
    try:
        wrong = valkey_url.replace("redis://", "redis://guest:hunter22@")
        monkeypatch.setenv("POLLER_REDIS_URL", wrong)
        unread = cli("status")
    finally:
        redis_client.execute_command("ACL", "DELUSER", "guest")
    assert unread.code == 5
    assert "login was refused" in unread.err
    assert "POLLER_REDIS_URL" in unread.err
    assert "hunter22" not in refused.err + unread.err


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
