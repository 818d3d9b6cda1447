"""The sink: it appends the samples of one call to a file, all or none, and rotates the file.

A lock makes this safe for several processes that write to the same file.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from poller import errors
from poller.sinks.api import Sample, Stores
from poller_jsonlines import config, lines


class JsonLinesSink:
    """Writes one JSON line per poll. Each worker process makes one instance."""

    name: ClassVar[str] = "jsonlines"
    api_version: ClassVar[int] = 1

    def __init__(self, stores: Stores) -> None:
        """Create the file. Raises InvalidSetting if the file cannot be written."""
        self._config = config.read(Path(stores.settings.home))
        self._path = self._config.path
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()
        except OSError as error:
            raise errors.InvalidSetting(
                f"JSONLINES_FILE: cannot write to {self._path}", cause=_reason(error)
            ) from None

    def write(self, samples: Sequence[Sample]) -> None:
        """Append one line per sample.

        Raises StoreUnavailable if the disk is full or away. poller then repeats the call later.
        """
        data = "".join(lines.line(sample) for sample in samples).encode()
        try:
            with self._locked():
                self._rotate_before(len(data))
                _append(self._path, data)
        except OSError as error:
            raise errors.StoreUnavailable(
                f"cannot write to {self._path}", cause=_reason(error)
            ) from error

    def close(self) -> None:
        """Do nothing: no file stays open between two calls."""

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from writing. Closing the lock file releases the lock."""
        with Path(f"{self._path}.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _rotate_before(self, new_bytes: int) -> None:
        """Rotate the files if the new bytes do not fit into the current one.

        `readings.jsonl` becomes `.1`, `.1` becomes `.2`, and the oldest file is removed.
        """
        size = self._path.stat().st_size if self._path.exists() else 0
        if size == 0 or size + new_bytes <= self._config.max_bytes:
            return

        backup_count = self._config.backup_count
        if backup_count == 0:
            self._path.unlink()
            return

        for number in range(backup_count, 1, -1):
            newer = Path(f"{self._path}.{number - 1}")
            if newer.exists():
                newer.replace(f"{self._path}.{number}")
        self._path.replace(f"{self._path}.1")


def _append(path: Path, data: bytes) -> None:
    """Append all data, or none: after an error the file has its old size again.

    A repeated call then writes no line twice.
    """
    with path.open("ab", buffering=0) as file:
        old_size = os.fstat(file.fileno()).st_size
        try:
            unwritten = memoryview(data)
            while unwritten:
                written = file.write(unwritten)
                unwritten = unwritten[written:]
        except OSError:
            os.ftruncate(file.fileno(), old_size)
            raise


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
