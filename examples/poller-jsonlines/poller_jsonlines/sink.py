"""The sink: samples to lines, lines to a file. All of a call is written or nothing, whoever else writes there."""

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
    """Made once per worker process; several processes of a host may write to the same file."""

    name: ClassVar[str] = "jsonlines"
    api_version: ClassVar[int] = 1

    def __init__(self, stores: Stores) -> None:
        self._config = config.read(Path(stores.settings.home))
        try:
            self._config.path.parent.mkdir(parents=True, exist_ok=True)
            self._config.path.touch()
        except OSError as error:
            cause = error.strerror or type(error).__name__
            raise errors.InvalidSetting(
                f"JSONLINES_FILE: cannot write to {self._config.path}", cause
            ) from None

    def write(self, samples: Sequence[Sample]) -> None:
        """Raises StoreUnavailable when the disk is full or gone: the same samples come again later."""
        data = "".join(lines.line(sample) for sample in samples).encode()
        try:
            with self._alone():
                self._rotate(len(data))
                _append(self._config.path, data)
        except OSError as error:
            text = f"cannot write to {self._config.path}"
            raise errors.StoreUnavailable(
                text, cause=error.strerror or type(error).__name__
            ) from error

    def close(self) -> None:
        """Nothing is held between two calls."""

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with Path(f"{self._config.path}.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # released with the file
            yield

    def _rotate(self, more: int) -> None:
        """`readings.jsonl` becomes `.1`, that becomes `.2`, and the last one goes."""
        path, keep = self._config.path, self._config.keep
        size = path.stat().st_size if path.exists() else 0
        if not size or size + more <= self._config.most_bytes:
            return
        for number in range(keep, 0, -1):
            older = path if number == 1 else Path(f"{path}.{number - 1}")
            if older.exists():
                older.replace(f"{path}.{number}")
        if not keep:
            path.unlink()


def _append(path: Path, data: bytes) -> None:
    """What was written of it before an error is taken back: a retry must double nothing."""
    with path.open("ab", buffering=0) as file:
        before = os.fstat(file.fileno()).st_size
        try:
            left = memoryview(data)
            while left:
                left = left[file.write(left) :]
        except OSError:
            os.ftruncate(file.fileno(), before)
            raise
