"""The home directory of `poller up`: private, locked, with a file that other terminals read."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from poller import errors
from poller.settings.setting_sources import RUN_FILE


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold the home for this process. Raises AlreadyRunning with the process that holds it."""
    lock = _open(home)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise errors.AlreadyRunning(
            f"poller up is already running on {home} (process {holder})",
            hint="stop it, or choose another directory with POLLER_HOME",
        ) from None

    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)

    try:
        yield
    finally:
        (home / RUN_FILE).unlink(missing_ok=True)
        os.close(lock)


def _open(home: Path) -> int:
    """Make the home private and open its lock file. Raises InvalidSetting."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.chmod(0o700)
        return os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}"
        raise errors.InvalidSetting(f"home: {reason}", hint="set POLLER_HOME") from None


def publish(home: Path, settings: Mapping[str, object]) -> None:
    """Write the settings for commands in other terminals; only the same user may read them."""
    path = home / RUN_FILE
    scratch = path.with_suffix(".new")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)

    with os.fdopen(descriptor, "w") as file:
        json.dump({"pid": os.getpid(), "settings": settings}, file)

    scratch.rename(path)
