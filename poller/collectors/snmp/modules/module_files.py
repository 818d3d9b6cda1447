"""Module files on this machine: each is read once per process, and again when it was edited.

A file that is missing or broken is an error of those who name it, at each of their polls, until it is repaired.
"""

from __future__ import annotations

import glob
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from poller import errors
from poller.collectors.snmp.modules import module_parser, yaml_text
from poller.collectors.snmp.modules.file_logins import Auth
from poller.collectors.snmp.modules.module_model import Module
from poller.collectors.snmp.modules.module_parser import File
from poller.collectors.snmp.modules.module_set import ModuleSet

K = TypeVar("K")
V = TypeVar("V")

#: Combinations of files, and files, that are remembered. Who has more of them reads some of them again.
_MOST = 200
_MAGIC = frozenset("*?[")

Stamp = tuple[str, int, int, int]  # path, time of change, size, inode


@dataclass(slots=True)
class Library:
    """Some files taken together: of two modules, or logins, with one name the later file's counts."""

    files: Sequence[File]
    #: Modules taken together for polling, by their names: a place for whoever makes them.
    module_sets: dict[tuple[str, ...], ModuleSet] = field(default_factory=dict)
    _made: dict[str, Module] = field(default_factory=dict)

    def names(self) -> set[str]:
        return {name for file in self.files for name in file.modules}

    def module(self, name: str) -> Module:
        """One of `names`, made when it is first asked for. Raises ConfigError."""
        if name not in self._made:
            file = next(file for file in reversed(self.files) if name in file.modules)
            self._made[name] = file.module(name)
        return self._made[name]

    def auth_names(self) -> set[str]:
        return {name for file in self.files for name in file.auth_names()}

    def auth(self, name: str) -> Auth:
        """One of `auth_names`. Raises ConfigError."""
        return next(file for file in reversed(self.files) if name in file.auth_names()).auth(name)


class Shelf:
    """What this process has read. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, tuple[Stamp, File | errors.ConfigError]] = {}
        self._libraries: dict[tuple[str, ...], tuple[Sequence[Stamp], Library]] = {}

    def library(self, config: tuple[str, ...]) -> Library:
        """Of these paths, which may be patterns. Raises ConfigError."""
        known = self.known(config)
        if known is not None:
            return known
        stamps = list(_stamps(config))
        with self._lock:
            library = Library([self._file(stamp) for stamp in stamps])
            _remember(self._libraries, config, (stamps, library))
        return library

    def known(self, config: tuple[str, ...]) -> Library | None:
        """If none of them was edited or removed since; costs no more than a look at each."""
        stamps, library = self._libraries.get(config, (None, None))
        if stamps is None:
            return None
        try:
            return library if stamps == list(_stamps(config)) else None
        except errors.ConfigError:
            return None

    def _file(self, stamp: Stamp) -> File:
        path = stamp[0]
        known, found = self._files.get(path, (None, None))
        if found is None or known != stamp:
            found = _read(path)
            _remember(self._files, path, (stamp, found))
        if isinstance(found, errors.ConfigError):
            raise type(found)(*found.args)
        return found


def _remember(shelf: dict[K, V], key: K, value: V) -> None:
    if len(shelf) >= _MOST:
        shelf.clear()
    shelf[key] = value


def _stamps(config: Sequence[str]) -> Iterator[Stamp]:
    for pattern in config:
        paths = sorted(glob.glob(pattern)) if _MAGIC & set(pattern) else [pattern]
        if not paths:
            raise errors.ConfigError(
                f"no module file matches {pattern}", hint="is it there, on this machine?"
            )
        yield from map(_stamp, paths)


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if not stat.S_ISREG(found.st_mode):
        raise errors.ConfigError(f"{path} is not a file")
    return path, found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: str) -> File | errors.ConfigError:
    """The error is a value here: a broken file is read once, not at each poll of each of its targets."""
    try:
        with open(path, "rb") as file:
            content = file.read(yaml_text.MOST_BYTES + 1)
        if len(content) > yaml_text.MOST_BYTES:
            return errors.ConfigError(f"{path} has more than {yaml_text.MOST_BYTES:,} bytes")
        return module_parser.read(content.decode(), path)
    except UnicodeDecodeError:
        return errors.ConfigError(f"{path} is not UTF-8 text")
    except OSError as error:
        return _unreadable(path, error)
    except errors.ConfigError as error:
        return error.with_traceback(None)


def _unreadable(path: str, error: Exception) -> errors.ConfigError:
    why = (getattr(error, "strerror", None) or str(error)).lower()
    return errors.ConfigError(
        f"module file {path} cannot be read", cause=why, hint="every worker needs a copy of it"
    )


_shelf = Shelf()
library = _shelf.library
known = _shelf.known
