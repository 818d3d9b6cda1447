"""A network namespace with nothing but a loopback, in which a test may switch things off."""

from __future__ import annotations

import ctypes
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.conftest import missing

T = TypeVar("T")
_CLONE_NEWNET = 0x40000000


def alone(work: Callable[[], T]) -> T:
    """Run `work` in a thread with its own network namespace. Needs root."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.unshare(_CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            ip("link set lo up")
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed and isinstance(failed[0], PermissionError | FileNotFoundError):
        missing(f"no network of its own can be had here: {failed[0]}")
    if failed:
        raise failed[0]
    return done[0]


def ip(words: str) -> None:
    """Run iproute2 in the network of the calling thread."""
    subprocess.run(["ip", *words.split()], check=True, capture_output=True)


def sysctl(name: str, value: str) -> None:
    """Set a kernel parameter in the network of the calling thread."""
    Path("/proc/sys", *name.split(".")).write_text(value)
