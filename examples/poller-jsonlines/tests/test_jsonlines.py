"""Lines are complete, files rotate, and a write that fails leaves nothing behind."""

from __future__ import annotations

import errno
import json
import math
import multiprocessing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from poller_jsonlines import JsonLinesSink

from poller import errors
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.sinks.api import Sample, Stores


def sink(home: Path) -> JsonLinesSink:
    return JsonLinesSink(Stores(engine=None, redis=None, settings=SimpleNamespace(home=home)))


def sample(number: float, device: str = "core-sw-1") -> Sample:
    target: Any = SimpleNamespace(device=device, name="ping", collector="ping")
    readings = ReadingSet.of(
        [Reading("rtt", number), Reading("info", 1, {"way": "ïcmp"}, Kind.INFO)]
    )
    return Sample(target, 1_764_000_000_123, readings)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_poll_is_a_line(tmp_path: Path) -> None:
    """Numbers that JSON does not have are null."""
    sink(tmp_path).write([sample(0.25), sample(math.nan)])
    first, second = lines(tmp_path / "readings.jsonl")
    assert first == {
        "at_ms": 1_764_000_000_123,
        "device": "core-sw-1",
        "target": "ping",
        "collector": "ping",
        "readings": [["rtt", {}, "gauge", 0.25], ["info", {"way": "ïcmp"}, "info", 1.0]],
    }
    assert second["readings"][0] == ["rtt", {}, "gauge", None]


def test_files_rotate_and_the_oldest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JSONLINES_MAX_BYTES", "1000")
    monkeypatch.setenv("JSONLINES_KEEP", "2")
    made = sink(tmp_path)
    for number in range(40):
        made.write([sample(number)])
    files = sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock")
    assert files == ["readings.jsonl", "readings.jsonl.1", "readings.jsonl.2"]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    kept = [line["readings"][0][3] for name in reversed(files) for line in lines(tmp_path / name)]
    assert kept == list(range(40 - len(kept), 40))


def test_a_full_disk_leaves_no_half_line_and_the_retry_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, path = sink(tmp_path), tmp_path / "readings.jsonl"
    made.write([sample(1)])
    before = path.read_bytes()
    real = Path.open

    class Full:
        def __init__(self, file: Any) -> None:
            self._file, self._calls = file, 0

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

        def fileno(self) -> int:
            return int(self._file.fileno())

        def write(self, data: Any) -> int:
            self._calls += 1
            if self._calls > 1:
                raise OSError(errno.ENOSPC, "No space left on device")
            return int(self._file.write(data[:10]))

    monkeypatch.setattr(
        Path,
        "open",
        lambda at, *a, **k: Full(real(at, *a, **k)) if at == path else real(at, *a, **k),
    )
    with pytest.raises(errors.StoreUnavailable, match="No space left"):
        made.write([sample(2)])
    monkeypatch.setattr(Path, "open", real)
    assert path.read_bytes() == before
    made.write([sample(2)])
    assert [line["readings"][0][3] for line in lines(path)] == [1, 2]


def _write_many(home: Path, device: str) -> None:
    made = sink(home)
    for number in range(200):
        made.write([sample(number, device)])


def test_several_processes_share_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line whole, none lost, while it rotates."""
    monkeypatch.setenv("JSONLINES_MAX_BYTES", "20000")
    monkeypatch.setenv("JSONLINES_KEEP", "20")
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(tmp_path, f"device{n}")) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    found = [
        line
        for path in tmp_path.glob("readings.jsonl*")
        if path.suffix != ".lock"
        for line in lines(path)
    ]
    assert sorted((line["device"], line["readings"][0][3]) for line in found) == [
        (f"device{n}", float(number)) for n in range(3) for number in range(200)
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [("JSONLINES_MAX_BYTES", "many"), ("JSONLINES_MAX_BYTES", "10"), ("JSONLINES_KEEP", "-1")],
)
def test_a_wrong_variable_stops_the_worker_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(errors.InvalidSetting, match=name):
        sink(tmp_path)


def test_a_place_that_cannot_be_written_is_told_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JSONLINES_FILE", str(tmp_path / "file" / "readings.jsonl"))
    with pytest.raises(errors.InvalidSetting, match="JSONLINES_FILE: cannot write"):
        sink(tmp_path)
