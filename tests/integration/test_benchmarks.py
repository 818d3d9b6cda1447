"""The benchmarks run at a size that takes seconds, and their figures are plausible."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cpu, equal, exporter, fifty_rules, quantile, report, section
from benchmarks.drains import Drained
from poller import errors
from poller.domain.alerts.judging.rule_set import RuleChoice
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import Kind, ReadingSet, Series, SeriesSet

ROOT = Path(__file__).parents[2]


@pytest.fixture
def server() -> None:
    """Skip without a Redis server; the benchmarks start their own."""
    from poller import errors
    from poller.cli.up import embedded_server
    from tests.conftest import missing

    try:
        embedded_server.find_server()
    except errors.ConfigError as error:
        missing(str(error))


def bench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("POLLER_")}
    command = [sys.executable, "-m", "benchmarks", "--results", str(folder), *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=clean, capture_output=True, text=True, timeout=110, check=False
    )


def measured(folder: Path, name: str) -> dict[str, Any]:
    done = bench(folder, "--size", "tiny", name)
    assert done.returncode in (0, 1), done.stderr  # 1: this machine is too busy for the goals
    assert f"{name}, tiny size" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    document: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    assert document["machine"]["cores"] == len(os.sched_getaffinity(0))
    return document


def values(document: dict[str, Any]) -> dict[str, float]:
    return {name: figure["value"] for name, figure in document["figures"].items()}


@pytest.mark.long
@pytest.mark.usefixtures("server")
def test_the_scheduler_section_keeps_a_small_fleet_polled_and_whole(tmp_path: Path) -> None:
    """Every target is dispatched about once an interval, none is lost or doubled, and RedBeat costs
    more.
    """
    document = measured(tmp_path, "scheduler")
    found = values(document)
    assert (found["lost"], found["doubled"], found["refused"]) == (0, 0, 0)
    assert found["needed_per_s"] * 0.5 <= found["dispatched_per_s"] <= found["needed_per_s"] * 1.5
    assert found["late_p50_ms"] <= found["late_p99_ms"] <= found["late_max_ms"]
    assert (
        min(
            found["beat_cpu_us"],
            found["drain_cpu_us"],
            found["server_cpu_us"],
            found["polled_bytes"],
        )
        > 0
    )
    assert (
        document["comparisons"]["beat_cpu_us"]["theirs"]
        > document["comparisons"]["beat_cpu_us"]["ours"]
    )


@pytest.mark.usefixtures("server")
def test_the_rebuild_section_fills_a_board_and_then_finds_nothing_to_do(tmp_path: Path) -> None:
    """A pass over unchanged targets reads each side once, however many targets there are."""
    found = values(measured(tmp_path, "rebuild"))
    assert found["rebuild_per_s"] > 100
    assert found["unchanged_sql"] <= 2
    assert found["unchanged_commands"] <= 2
    assert found["unchanged_ms"] < found["rebuild_s"] * 1000


@pytest.mark.long
@pytest.mark.usefixtures("server")
def test_the_api_section_reads_health_lists_and_explanations(tmp_path: Path) -> None:
    """Every route of the section answers beside a running fleet."""
    found = values(measured(tmp_path, "api"))
    assert len(found) == 16
    assert min(found.values()) > 0


@pytest.mark.long
@pytest.mark.usefixtures("server")
def test_the_million_section_carries_a_fleet_of_switches(tmp_path: Path) -> None:
    """A poll has 15 objects of 48 ports; stored polls are compacted, and nothing is missed."""
    found = values(measured(tmp_path, "million"))
    assert found["samples"] == 48 * 15 + 1
    assert found["block_bytes"] < found["fresh_bytes"]
    assert min(found["sample_us"], found["million_cores"], found["million_day_gb"]) > 0
    assert (found["carried_lost"], found["carried_doubled"]) == (0, 0)


@pytest.mark.long
@pytest.mark.usefixtures("server")
def test_the_history_section_keeps_every_bit_in_less_than_a_byte(tmp_path: Path) -> None:
    """The section itself compares every poll with what was polled."""
    found = values(measured(tmp_path, "history"))
    assert 0 < found["sqlite_encoded"] < 1
    assert found["sqlite_disk"] > found["sqlite_encoded"]


@pytest.mark.usefixtures("server")
def test_the_scrape_section_reads_every_series(tmp_path: Path) -> None:
    """Two scrapes have all series; the second one costs less."""
    found = values(measured(tmp_path, "scrape"))
    assert 0 < found["next_cpu_us"] < found["first_cpu_us"]


@pytest.mark.long
@pytest.mark.usefixtures("server")
def test_the_sinks_section_measures_every_sink(tmp_path: Path) -> None:
    """Each sink has the cost of a poll, and that of the first poll of a target."""
    found = values(measured(tmp_path, "sinks"))
    assert {"sql_ms", "remote_write_ms", "remote_write_first_ms"} <= set(found)
    assert min(found.values()) > 0


@pytest.mark.long
@pytest.mark.usefixtures("server")
def test_the_dropin_section_scrapes_both(tmp_path: Path) -> None:
    """Both are scraped for the same agents; the page answers from last polls."""
    found = values(measured(tmp_path, "dropin"))
    assert found["samples"] > 100
    assert found["scrape_ms"] < found["exporter_ms"]


def test_the_writing_section_finds_every_row_it_wrote(tmp_path: Path) -> None:
    """The section reports figures only if every row is stored; a poll takes little more on disk
    than its values.
    """
    found = values(measured(tmp_path, "writing"))
    assert min(found.values()) > 0
    assert found["sqlite_down_bytes"] < 160 * 8 + 200


@pytest.mark.long
@pytest.mark.usefixtures("server")
def test_the_cost_section_compares_the_same_polls_and_draws_them(tmp_path: Path) -> None:
    """Candidates must read the same values from one device; a program that is not installed is not
    measured.
    """
    document = measured(tmp_path, "cost")
    found = values(document)
    assert (found["variables"], found["samples"]) == (166, 154)
    roles = found["beat_ms"] + found["worker_ms"] + found["server_ms"]
    assert found["poll_ms"] == pytest.approx(roles)
    assert found["obvious_ms"] > 2 * found["poll_ms"]
    assert (found["exporter_ms"] is None) is (exporter.installed() is None)
    assert ("snmp_exporter" in document["grid"]["columns"]) is (exporter.installed() is not None)
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
@pytest.mark.usefixtures("server")
def test_the_jobs_section_finds_a_run_for_every_plan(tmp_path: Path) -> None:
    """Jobs run beside polls, spread and together; without jobs none does."""
    document = measured(tmp_path, "jobs")
    found = values(document)
    for phase in ("spread", "together"):
        assert found[f"{phase}_missing"] == 0
        assert found[f"{phase}_runs"] >= 10
        assert found[f"{phase}_dispatch_p50_ms"] <= found[f"{phase}_dispatch_p99_ms"]
        assert found[f"{phase}_dispatch_p50_ms"] <= found[f"{phase}_start_p50_ms"]
    rows = {name: cells for name, _, cells in document["grid"]["rows"]}
    assert rows["job runs"][0] == 0
    assert min(rows["polls"]) > 0


def readings(octets: float, status: float) -> ReadingSet:
    labels = (("ifIndex", "1"),)
    shape = SeriesSet(
        (Series("octets", labels, Kind.COUNTER), Series("status", labels, Kind.GAUGE))
    )
    return ReadingSet(shape, [octets, status])


@pytest.mark.parametrize(
    ("theirs", "wrong"),
    [
        ({"octets": 150, "status": 1}, ""),
        ({"octets": 201, "status": 1}, "octets"),
        ({"octets": 99, "status": 1}, "octets"),
        ({"octets": 150, "status": 2}, "status"),
        ({"octets": 150}, "lacks"),
        ({"octets": 150, "status": 1, "more": 1}, "has in addition"),
    ],
)
def test_values_of_another_program_must_lie_between_two_polls(
    theirs: dict[str, float], wrong: str
) -> None:
    """Counters may grow between two polls; other values are equal, and no sample is missing or
    extra.
    """
    other = {
        equal.Sample(name, frozenset({("ifIndex", "1")})): value for name, value in theirs.items()
    }
    if not wrong:
        equal.same_values("the other", other, readings(100, 1), readings(200, 1))
        return
    with pytest.raises(errors.StoreConflict, match=wrong):
        equal.same_values("the other", other, readings(100, 1), readings(200, 1))


def test_a_counter_that_wraps_between_two_polls_is_no_difference() -> None:
    """On a busy port a counter of 32 bits wraps every half minute."""
    other = {
        equal.Sample(name, frozenset({("ifIndex", "1")})): value
        for name, value in (("octets", 5), ("status", 1))
    }
    equal.same_values("the other", other, readings(2**32 - 10, 1), readings(20, 1))
    with pytest.raises(errors.StoreConflict, match="octets"):
        equal.same_values("the other", other, readings(2**32 - 10, 1), readings(4, 1))


def test_the_cpu_of_a_process_includes_its_children() -> None:
    """CPU of running and ended children counts, as for a prefork worker."""
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    code = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}]);"
        " print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as one:
        assert one.stdin is not None
        assert one.stdout is not None
        one.stdout.readline()
        living = cpu.tree_s(one.pid)
        assert living - cpu.seconds(one.pid) >= 0.3
        one.stdin.write("\n")
        one.stdin.flush()
        one.stdout.readline()
        assert cpu.descendants(one.pid) == []
        assert cpu.seconds(one.pid) >= 0.3
        one.communicate("\n")
    with pytest.raises(OSError, match="No such"):
        cpu.seconds(one.pid)


def test_a_figure_that_was_not_measured_misses_no_goal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The summary shows the goal, and "not measured" instead of a value."""
    unknown = section.Figure("x", "ratio to the exporter", None, "x", at_least=3)
    missed = section.Figure("y", "ratio to the obvious design", 24.9, "x", at_least=25)
    report.summary(
        {
            "cost": section.Findings(
                [unknown, missed, section.Figure("z", "without a goal", 1, "ms")]
            )
        }
    )
    lines = capsys.readouterr().out.splitlines()
    assert next(line.split() for line in lines if "exporter" in line)[-5:] == [
        "not",
        "measured",
        "x",
        ">=",
        "3",
    ]
    assert next(line.split() for line in lines if "obvious" in line)[-5:] == [
        "24.9",
        "x",
        ">=",
        "25",
        "MISSED",
    ]
    assert not any("without a goal" in line for line in lines)
    assert unknown.met is None


def test_every_section_has_every_size() -> None:
    """`make bench SIZE=small` runs all sections."""
    assert {frozenset(one.sizes) for one in section.known().values()} == {
        frozenset(("full", "small", "tiny"))
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("nothing",), 'no section named "nothing"'),
        (("--size", "huge"), 'has no size "huge"'),
    ],
)
def test_a_wrong_argument_is_refused_with_the_right_ones(
    tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    """A wrong argument is refused before anything is started."""
    refused = bench(tmp_path, *arguments)
    assert refused.returncode == 2
    assert expected in refused.stderr
    assert "choose from" in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_quantiles_of_counted_milliseconds_are_exact() -> None:
    """Quantiles are exact, and include only the seconds of the window."""
    late_by_second = {10: Counter({5: 98}), 11: Counter({7: 1, 900: 1}), 12: Counter({5000: 101})}
    drained = Drained(late_by_second, batches=Counter({10: 2, 11: 1, 12: 3}), refused=0)
    assert drained.batches_between(10, 12) == 3
    late = drained.between(10, 12)
    assert late == Counter({5: 98, 7: 1, 900: 1})
    assert [quantile.of(late, share) for share in (0.5, 0.98, 0.99, 1.0)] == [5, 5, 7, 900]
    assert quantile.of({}, 0.5) == 0
    assert drained.peak == 101


def test_a_goal_is_met_or_missed_at_its_edge() -> None:
    """ "At least" and "at most" include the number; "below" does not."""

    def met(value: float, **goal: float) -> bool | None:
        return section.Figure("x", "x", value, "", **goal).met

    assert [met(99, at_least=99), met(98.9, at_least=99)] == [True, False]
    assert [met(0, below=1), met(1, below=1), met(1)] == [True, False, None]
    assert [met(1.1, at_most=1.1), met(1.11, at_most=1.1)] == [True, False]


@pytest.mark.long
@pytest.mark.usefixtures("server")
def test_the_snmp_section_compares_before_it_measures(tmp_path: Path) -> None:
    """A repeat poll by the default engine is the cheapest, with no more requests than a full
    read.
    """
    from tests.conftest import missing

    if shutil.which("snmpd") is None:
        missing("snmpd is not installed")
    document = measured(tmp_path, "snmp")
    rows = {
        text: dict(zip(document["grid"]["columns"], found, strict=True))
        for text, _, found in document["grid"]["rows"]
    }
    assert values(document)["exact_ratio"] > 1
    assert rows["requests of a repeat poll"]["gufo"] <= rows["requests of a first poll"]["gufo"]
    assert len(set(rows["samples of a poll"].values())) == 1


@pytest.mark.long
def test_the_routeros_section_compares_before_it_measures(tmp_path: Path) -> None:
    """The readings of mktxp take fewer commands and less CPU, and the usual families five
    commands.
    """
    from benchmarks import mktxp
    from tests.conftest import missing

    if not mktxp.installed():
        missing("mktxp is not installed")
    document = measured(tmp_path, "routeros")
    rows = {
        text: dict(zip(document["grid"]["columns"], found, strict=True))
        for text, _, found in document["grid"]["rows"]
    }
    assert rows["commands"]["default families"] == 5
    assert rows["commands"]["poller"] < rows["commands"]["mktxp"]
    assert rows["CPU of a poll"]["poller"] < rows["CPU of a poll"]["mktxp"]


def test_the_rules_of_the_alerts_section_are_rules_of_workers() -> None:
    """Fifty of them; those of other sites do not apply to the fleet that is measured."""
    rules = fifty_rules.rules()
    assert len({rule.name for rule in rules}) == fifty_rules.COUNT
    assert all(rule.is_judged_by_workers for rule in rules)
    numbered = [replace(rule, id=number) for number, rule in enumerate(rules, 1)]
    target = PollTarget(1, 1, "snmp", 1, "sw1", "192.0.2.1", "fra", "snmp", 60_000, 5_000)
    assert len(RuleChoice(numbered).choose(target).rules) == 38
