"""Module files of this machine: each file is read once per process, and again after an edit.

A missing or broken file is an error of the targets that name it, at each poll until it is repaired.
"""

from __future__ import annotations

import glob
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from poller import errors
from poller.collectors.snmp.modules import module_parser, yaml_text
from poller.collectors.snmp.modules.file_logins import Auth
from poller.collectors.snmp.modules.module_model import Module
from poller.collectors.snmp.modules.module_parser import ModuleFile
from poller.collectors.snmp.modules.module_set import ModuleSet

K = TypeVar("K")
V = TypeVar("V")

#: Paths or glob patterns, as in option `config`.
Config = tuple[str, ...]

#: Files, and combinations of files, that are cached. Beyond that the cache starts over.
_CACHE_SIZE = 200
_GLOB_CHARACTERS = frozenset("*?[")


class Stamp(NamedTuple):
    """A version of a file: any edit changes one of the fields."""

    path: str
    mtime_ns: int
    size: int
    inode: int


@dataclass(slots=True)
class Library:
    """Several files taken together; where two files share a name, the later file counts."""

    files: Sequence[ModuleFile]
    #: Cache of `module_catalog`: module sets by the names of their modules.
    module_sets: dict[tuple[str, ...], ModuleSet] = field(default_factory=dict)
    _modules: dict[str, Module] = field(default_factory=dict)

    def names(self) -> set[str]:
        """Return the names of all modules."""
        return {name for file in self.files for name in file.modules}

    def module(self, name: str) -> Module:
        """Return one of `names`, parsed at its first use.

        Raises ConfigError.
        """
        if name not in self._modules:
            files = [file for file in self.files if name in file.modules]
            self._modules[name] = files[-1].module(name)

        return self._modules[name]

    def auth_names(self) -> set[str]:
        """Return the names of all logins."""
        return {name for file in self.files for name in file.auth_names()}

    def auth(self, name: str) -> Auth:
        """Return one of `auth_names`. Raises ConfigError."""
        files = [file for file in self.files if name in file.auth_names()]
        return files[-1].auth(name)


#: A file or its error, with the version that was read.
_CachedFile = tuple[Stamp, ModuleFile | errors.ConfigError]
_CachedLibrary = tuple[Sequence[Stamp], Library]


class FileCache:
    """The module files this process has read. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, _CachedFile] = {}
        self._libraries: dict[Config, _CachedLibrary] = {}

    def library(self, config: Config) -> Library:
        """Return the library of these paths.

        Raises ConfigError.
        """
        cached = self.cached_library(config)
        if cached is not None:
            return cached

        stamps = list(_stamps(config))
        with self._lock:
            library = Library([self._file(stamp) for stamp in stamps])
            _store(self._libraries, config, (stamps, library))

        return library

    def cached_library(self, config: Config) -> Library | None:
        """Return the cached library; None if a file is new, edited or gone.

        The call takes one `stat` for each file.
        """
        cached = self._libraries.get(config)
        if cached is None:
            return None

        stamps, library = cached
        try:
            current = list(_stamps(config))
        except errors.ConfigError:
            return None

        return library if stamps == current else None

    def _file(self, stamp: Stamp) -> ModuleFile:
        """Return a file, read unless the cache has this version.

        Raises ConfigError.
        """
        cached_stamp, file = self._files.get(stamp.path, (None, None))
        if file is None or cached_stamp != stamp:
            file = _read(stamp.path)
            _store(self._files, stamp.path, (stamp, file))

        if isinstance(file, errors.ConfigError):
            raise type(file)(*file.args)

        return file


def _store(cache: dict[K, V], key: K, value: V) -> None:
    """Add to a cache of limited size."""
    if len(cache) >= _CACHE_SIZE:
        cache.clear()

    cache[key] = value


def _stamps(config: Sequence[str]) -> Iterator[Stamp]:
    """Yield the versions of all files, patterns expanded.

    Raises ConfigError.
    """
    for pattern in config:
        paths = [pattern]
        if _GLOB_CHARACTERS & set(pattern):
            paths = sorted(glob.glob(pattern))
        if not paths:
            raise errors.ConfigError(
                f"no module file matches {pattern}", hint="is it there, on this machine?"
            )
        yield from map(_stamp, paths)


def _stamp(path: str) -> Stamp:
    """Return the version of a file on disk.

    Raises ConfigError.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None

    if not stat.S_ISREG(status.st_mode):
        raise errors.ConfigError(f"{path} is not a file")

    return Stamp(path, status.st_mtime_ns, status.st_size, status.st_ino)


def _read(path: str) -> ModuleFile | errors.ConfigError:
    """Read a file; return its error as a value, which is cached as well.

    A broken file is therefore parsed once, not at each poll of each of its targets.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(yaml_text.MAX_BYTES + 1)
        if len(content) > yaml_text.MAX_BYTES:
            return errors.ConfigError(f"{path} has more than {yaml_text.MAX_BYTES:,} bytes")
        return module_parser.read(content.decode(), path)
    except UnicodeDecodeError:
        return errors.ConfigError(f"{path} is not UTF-8 text")
    except OSError as error:
        return _unreadable(path, error)
    except errors.ConfigError as error:
        return error.with_traceback(None)


def _unreadable(path: str, error: Exception) -> errors.ConfigError:
    """Return the error for a file that cannot be opened."""
    reason = getattr(error, "strerror", None) or str(error)
    return errors.ConfigError(
        f"module file {path} cannot be read",
        cause=reason.lower(),
        hint="every worker needs a copy of the file",
    )


_cache = FileCache()
library = _cache.library
cached_library = _cache.cached_library
