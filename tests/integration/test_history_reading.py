"""History on the command line and over HTTP: series, pictures, traffic of a month, exports."""

from __future__ import annotations

import csv
import io
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sqlalchemy.engine import Engine

from poller import bootstrap
from poller.cli import main
from poller.db import migrate
from poller.db.history import compaction, polls_of_span, rollup_pass
from poller.db.history.rollups import Kept
from poller.db.inventory import devices, targets
from poller.db.record.stored_readings import Stored, Writer
from poller.domain.access.scopes import Scope
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.service.history import sample_export, traffic_report
from tests.integration import api_clients

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NOW = time.time_ns() // 1_000_000
#: 00:00 UTC, two days ago.
START = NOW // DAY * DAY - 2 * DAY
#: Octets a minute: 8 kbit/s.
PER_MINUTE = 60_000
#: Minutes of the first day without polls.
GAP = range(600, 620)


@pytest.fixture
def engine(home: Path) -> Engine:
    """A day of polls of sw1, compacted and rolled up: 1 Mbit/s links, a gap of 20 polls."""
    made = bootstrap.services().engine
    migrate.upgrade(made)
    draft = DeviceDraft("sw1", "192.0.2.1", site="ams")
    devices.add(made, draft, [TargetDraft(collector="snmp")])
    devices.add(made, DeviceDraft("sw2", "192.0.2.2", site="ber"), [TargetDraft(collector="snmp")])
    key = targets.show(made, "sw1", "snmp").id
    polls = [_poll(key, minute) for minute in range(1440) if minute not in GAP]
    Writer(made).write(polls, NOW)
    until_mono = time.monotonic() + 60
    compaction.compact(made, NOW, lambda _: None, until_mono)
    rollup_pass.roll_up(made, NOW, Kept(), lambda _: None, until_mono)
    return made


def _poll(key: int, minute: int) -> Stored:
    found = [Reading("sysUpTime", 1e7 + minute * 6000)]
    for index, name in enumerate(("eth0", "=eth1"), 1):
        labels = {"ifIndex": str(index), "ifName": name}
        # eth1 is busy for the last tenth of the day.
        busy = max(0, minute - 1296) * 9 * PER_MINUTE if index == 2 else 0
        octets = minute * PER_MINUTE + busy
        found += [
            Reading("ifHighSpeed", 1, labels),
            Reading("ifHCInOctets", octets, labels, Kind.COUNTER, 64),
            Reading("ifHCOutOctets", minute * PER_MINUTE / 2, labels, Kind.COUNTER, 64),
        ]
    return Stored(key, START + minute * MINUTE, ReadingSet.of(found))


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    assert main.run(list(words)) == 0
    found = capsys.readouterr()
    return found.out, found.err


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_long_range_is_read_from_roll_ups_and_says_so(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mean of 30 days is that of the known time; the share that is known is told."""
    words = ["readings", "sw1", "--since", "30d", "--metric", "ifHCInOctets", "--rate"]
    out, err = run(capsys, *words, "--json")
    found = json.loads(out)
    assert (found["schema"], found["resolution"]) == ("poller.series/1", "1h")
    assert "hourly roll-ups" in found["why"]
    assert "hourly roll-ups" in err
    item = found["items"][0]
    assert item["labels"]["ifName"] == "eth0"
    assert item["mean"] == pytest.approx(1000)
    assert item["known_share"] == pytest.approx(1418 / (30 * 1440), rel=0.01)
    assert len(item["points"]["at"]) == len(item["points"]["verdict"]) == 721

    out, _ = run(capsys, *words, "--top", "1")
    [_, line] = out.splitlines()
    assert "eth1" in line
    assert "%" in line


def test_points_of_a_range_as_csv(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    """A row a point; missing polls are an average, and no row is left out."""
    since = datetime.fromtimestamp((START + 9 * HOUR) / 1000, UTC).isoformat()
    until = datetime.fromtimestamp((START + 11 * HOUR) / 1000, UTC).isoformat()
    words = ["--since", since, "--until", until, "--step", "5m", "--label", "ifName=eth0"]
    out, err = run(capsys, "readings", "sw1", "--metric", "ifHCInOctets", *words, "--csv")
    rows = rows_of(out)
    assert len(rows) == 24
    assert {row["labels"] for row in rows} == {'{"ifIndex":"1","ifName":"eth0"}'}
    assert [float(row["value"]) for row in rows] == pytest.approx([1000] * 24)
    assert [row["verdict"] for row in rows].count("gap") == 5
    assert "5-minute roll-ups" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--since", "30d", "--step", "1s"], "at least"),
        (["--since", "1h", "--until", "2h"], "until must be after since"),
        (["--since", "1h", "--label", "eth0"], "--label ifName=eth0"),
        (["--since", "1h", "--picture", "a.png"], "FILE.svg"),
        (["--since", "1h", "--json", "--csv"], "choose one of them"),
        (["--step", "x"], "write 60s"),
        (["--step", "1000d"], "at most 366d"),
        (["--since", "9" * 400 + "d"], "too long"),
    ],
)
def test_wrong_ranges_are_refused(
    engine: Engine, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    """The error says what to write."""
    assert main.run(["readings", "sw1", *words]) == 2
    assert said in capsys.readouterr().err


def test_the_traffic_of_a_month(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    """Percentile, mean, maximum, total, utilisation, and the time of which nothing is known."""
    month = datetime.fromtimestamp(START / 1000, UTC).strftime("%Y-%m")
    out, err = run(capsys, "report", "traffic", "--month", month, "--site", "ams", "--csv")
    rows = {(row["interface"], row["direction"]): row for row in rows_of(out)}
    assert len(rows) == 4
    quiet, busy = rows["eth0", "in"], rows["'=eth1", "in"]  # text to a spreadsheet
    assert float(quiet["p95_bits_per_second"]) == pytest.approx(8000)
    assert float(quiet["total_octets"]) == pytest.approx(1439 * PER_MINUTE)
    assert float(busy["p95_bits_per_second"]) == pytest.approx(80_000)
    assert float(busy["p95_utilisation"]) == pytest.approx(0.08)
    assert float(busy["max_bits_per_second"]) == pytest.approx(80_000, rel=0.01)
    assert float(rows["eth0", "out"]["mean_bits_per_second"]) == pytest.approx(4000)
    assert float(quiet["averaged_minutes"]) == 21
    whole = traffic_report.month(month, time.time_ns() // 1_000_000)
    unknown = (whole.end_ms - whole.start_ms) / MINUTE - 1439
    assert float(quiet["unknown_minutes"]) == pytest.approx(unknown, abs=1)

    out, err = run(capsys, "report", "traffic", "--month", month, "--device", "sw1")
    assert "8 kbit/s" in out
    assert "5-minute roll-ups" in err
    assert main.run(["report", "traffic", "--month", "2026-13"]) == 2
    assert "write 2026-10" in capsys.readouterr().err


def test_history_over_http(engine: Engine) -> None:
    """Series and the report have pages and a form as CSV; a token of another site sees nothing."""
    services = bootstrap.services()
    month = datetime.fromtimestamp(START / 1000, UTC).strftime("%Y-%m")
    client = api_clients.client(services, (Scope.READ,))
    base = "/api/v1/devices/sw1/series"
    page = client.get(base, params={"since": "7d", "metric": "Octets", "limit": 3}).json()
    assert (page["resolution"], len(page["items"])) == ("1h", 3)
    rest = client.get(
        base, params={"since": "7d", "metric": "Octets", "limit": 3, "cursor": page["next"]}
    ).json()
    assert (len(rest["items"]), rest["next"]) == (1, None)
    key = targets.show(engine, "sw1", "snmp").id
    text = client.get(
        f"/api/v1/targets/{key}/series",
        params={"since": "7d", "metric": "ifHCIn", "top": 1, "format": "csv"},
    )
    assert text.headers["content-type"].startswith("text/csv")
    assert {row["verdict"] for row in rows_of(text.text)} >= {"ok", "unknown"}
    report = client.get("/api/v1/reports/traffic", params={"month": month}).json()
    assert (len(report["items"]), report["month"]) == (4, month)

    other = api_clients.client(services, (Scope.READ,), site="ber")
    assert other.get(base).status_code == 404
    assert other.get(f"/api/v1/targets/{key}/series").status_code == 404
    assert other.get("/api/v1/reports/traffic", params={"month": month}).json()["items"] == []
    assert client.get(base, params={"step": "1x"}).status_code == 422
    assert client.get(base, params={"step": "999999999d"}).status_code == 422
    always = client.get(base, params={"since": "0001-01-01", "until": "9999-12-31"}).json()
    assert len(always["items"][0]["points"]["at"]) <= 1500


def test_an_end_without_a_start_is_the_day_before_it(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    """As over HTTP: the last day is the default, whatever the end is."""
    until = datetime.fromtimestamp((START + DAY) / 1000, UTC).isoformat()
    words = ["--until", until, "--metric", "ifHCInOctets", "--json"]
    found = json.loads(run(capsys, "readings", "sw1", *words)[0])
    assert len(found["items"][0]["points"]["at"]) == 1419


def test_an_export_reads_wide_polls_in_small_pieces(
    engine: Engine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The samples in memory are bounded, not the polls only; none is lost between pieces."""
    read = []
    between = polls_of_span.between

    def counted(*values: object) -> list[Stored]:
        found = between(*values)  # type: ignore[arg-type]
        read.append(len(found))
        return found

    monkeypatch.setattr(polls_of_span, "between", counted)
    monkeypatch.setattr(sample_export, "SAMPLES", 100)
    out, _ = run(capsys, "export", "--since", "7d", "--site", "ams")
    assert len(rows_of(out)) == 1420 * 7
    assert max(read[1:]) == 100 // 7


def test_samples_are_exported_in_three_forms(
    engine: Engine, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Every form has the same samples, bit for bit; a Parquet file has labels as a map."""
    pq = pytest.importorskip("pyarrow.parquet")
    words = ["export", "--since", "7d", "--metric", "ifHC", "--site", "ams"]
    out, _ = run(capsys, *words)
    rows = rows_of(out)
    assert len(rows) == 1420 * 4
    assert list(rows[0]) == ["time", "device", "target", "metric", "labels", "value", "kind"]
    lines = [json.loads(line) for line in run(capsys, *words, "--format", "jsonl")[0].splitlines()]
    assert [line["value"] for line in lines] == [float(row["value"]) for row in rows]
    assert lines[0]["labels"] == {"ifIndex": "1", "ifName": "eth0"}

    file = tmp_path / "samples.parquet"
    run(capsys, *words, "--format", "parquet", "--output", str(file))
    table = pq.read_table(file)
    assert table.column_names == list(rows[0])
    assert table["value"].to_pylist() == [line["value"] for line in lines]
    assert dict(table["labels"][0].as_py()) == lines[0]["labels"]
    assert int(table["time"][0].as_py().timestamp() * 1000) == START
    assert list(tmp_path.glob("*.part")) == []
    assert main.run([*words, "--format", "parquet"]) == 2
    assert "--output" in capsys.readouterr().err


def test_a_range_is_drawn_with_its_gaps(
    engine: Engine, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The picture is a whole SVG file: axes, a line for each series, nothing where nothing is."""
    file = tmp_path / "eth.svg"
    words = ["readings", "sw1", "--since", "7d", "--metric", "ifHCInOctets"]
    _, err = run(capsys, *words, "--picture", str(file))
    assert "2 lines" in err
    picture = ElementTree.fromstring(file.read_text())
    texts = [each.text or "" for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert any("kbit/s" in text for text in texts)
    assert any("hourly roll-ups" in text for text in texts)
    assert "ifHCInOctets =eth1" in texts
    lines = [
        each.get("d", "")
        for each in picture.iter("{http://www.w3.org/2000/svg}path")
        if each.get("stroke-width")
    ]
    assert len(lines) == 2
    # Of seven days one has polls: a line is as long as that day, about a seventh of the width.
    steps = [float(point.split()[0]) for point in lines[0][1:].split("L")]
    assert steps[-1] - steps[0] == pytest.approx(850 / 7, rel=0.1)
