"""The sink writes complete lines, rotates its files, and writes all of a call or nothing."""

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
from poller.collectors.api import Kind, Reading, ReadingSet
from poller.sinks.api import Sample, Stores


def sink(home: Path) -> JsonLinesSink:
    return JsonLinesSink(Stores(engine=None, redis=None, settings=SimpleNamespace(home=home)))


def sample(number: float, device: str = "core-sw-1") -> Sample:
    target: Any = SimpleNamespace(device=device, name="ping", collector="ping")
    rtt = Reading("rtt", number)
    info = Reading("info", 1, {"protocol": "ïcmp"}, Kind.INFO)
    return Sample(target, 1_764_000_000_123, ReadingSet.of([rtt, info]))


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rtt(line: Any) -> float | None:
    """Return the value of the first reading in a line."""
    value: float | None = line["readings"][0][3]
    return value


def data_files(home: Path) -> list[Path]:
    """Return the newest file and the rotated ones, without the lock file."""
    return sorted(path for path in home.iterdir() if path.suffix != ".lock")


def test_each_poll_is_a_line(tmp_path: Path) -> None:
    """A line has all readings of the poll; a number that JSON does not have is null."""
    sink(tmp_path).write([sample(0.25), sample(math.nan)])
    first, second = lines(tmp_path / "readings.jsonl")
    assert first == {
        "at_ms": 1_764_000_000_123,
        "device": "core-sw-1",
        "target": "ping",
        "collector": "ping",
        "readings": [
            ["rtt", {}, "gauge", 0.25],
            ["info", {"protocol": "ïcmp"}, "info", 1.0],
        ],
    }
    assert second["readings"][0] == ["rtt", {}, "gauge", None]


def test_files_rotate_and_the_oldest_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JSONLINES_MAX_BYTES", "1000")
    monkeypatch.setenv("JSONLINES_KEEP", "2")
    jsonlines = sink(tmp_path)
    for number in range(40):
        jsonlines.write([sample(number)])

    files = data_files(tmp_path)
    names = [path.name for path in files]
    assert names == ["readings.jsonl", "readings.jsonl.1", "readings.jsonl.2"]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())

    oldest_first = [rtt(line) for path in reversed(files) for line in lines(path)]
    assert oldest_first == list(range(40 - len(oldest_first), 40))


class FullDisk:
    """A file on a disk that becomes full after ten bytes."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._calls = 0

    def __enter__(self) -> FullDisk:
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


def test_a_full_disk_leaves_no_partial_line_and_the_retry_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jsonlines = sink(tmp_path)
    path = tmp_path / "readings.jsonl"
    jsonlines.write([sample(1)])
    before = path.read_bytes()
    real_open = Path.open

    def open_on_full_disk(opened: Path, *args: Any, **kwargs: Any) -> Any:
        file = real_open(opened, *args, **kwargs)
        return FullDisk(file) if opened == path else file

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", open_on_full_disk)
        with pytest.raises(errors.StoreUnavailable, match="No space left"):
            jsonlines.write([sample(2)])

    assert path.read_bytes() == before
    jsonlines.write([sample(2)])
    assert [rtt(line) for line in lines(path)] == [1, 2]


def _write_many(home: Path, device: str) -> None:
    jsonlines = sink(home)
    for number in range(200):
        jsonlines.write([sample(number, device)])


def test_several_processes_share_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line is complete and none is lost while the file rotates."""
    monkeypatch.setenv("JSONLINES_MAX_BYTES", "20000")
    monkeypatch.setenv("JSONLINES_KEEP", "20")

    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(tmp_path, f"device{n}")) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]

    written = [line for path in data_files(tmp_path) for line in lines(path)]
    expected = [(f"device{n}", float(number)) for n in range(3) for number in range(200)]
    assert sorted((line["device"], rtt(line)) for line in written) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [("JSONLINES_MAX_BYTES", "many"), ("JSONLINES_MAX_BYTES", "10"), ("JSONLINES_KEEP", "-1")],
)
def test_a_wrong_variable_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(errors.InvalidSetting, match=name):
        sink(tmp_path)


def test_a_file_that_cannot_be_written_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JSONLINES_FILE", str(tmp_path / "file" / "readings.jsonl"))
    with pytest.raises(errors.InvalidSetting, match="JSONLINES_FILE: cannot write"):
        sink(tmp_path)
