"""Which modules suit a device: the longest pattern that matches its sysObjectID decides.

The table is `device_table.yml`. An operator's table (option `match`) adds to it, and wins where
patterns are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from poller import errors
from poller.collectors.snmp import oid
from poller.collectors.snmp.modules import module_catalog, typed_fields
from poller.domain.inventory import did_you_mean

SYS_OBJECT_ID = "1.3.6.1.2.1.1.2.0"
SYS_DESCR = "1.3.6.1.2.1.1.1.0"

#: Module names for a sysObjectID and a sysDescr.
Choose = Callable[[str, str], tuple[str, ...]]

_TABLE_FIELDS = ("base", "match")
_ENTRY_FIELDS = ("sysObjectID", "sysDescr", "device", "modules")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a table."""

    #: An OID, or an OID with `.*` for all OIDs beneath it, too.
    pattern: str
    modules: tuple[str, ...]
    #: Name of the devices, for display.
    device: str = ""
    #: Text that sysDescr must contain, in any case.
    descr: str = ""
    source: str = ""

    def matches(self, sys_object_id: str, sys_descr: str) -> bool:
        """Return whether the entry describes a device with these values."""
        if self.descr.lower() not in sys_descr.lower():
            return False

        root = self.pattern.removesuffix(".*")
        if root == self.pattern:
            return sys_object_id == root
        return oid.covers(root, sys_object_id)

    @property
    def rank(self) -> tuple[int, bool, bool]:
        """Sort key: a longer pattern, then an exact one, then one with a sysDescr, wins."""
        root = self.pattern.removesuffix(".*")
        length = root.count(".")
        is_exact = root == self.pattern
        return length, is_exact, bool(self.descr)

    @property
    def key(self) -> tuple[str, str]:
        """Entries with the same key describe the same devices."""
        return self.pattern, self.descr.lower()


@dataclass(frozen=True, slots=True)
class Choice:
    """The modules for a device, and the entry that decided; None for an unknown sysObjectID."""

    modules: tuple[str, ...]
    entry: Entry | None


@dataclass(frozen=True, slots=True)
class Table:
    """`base` is read from every device; `entries` are sorted, the highest rank first."""

    base: tuple[str, ...]
    entries: tuple[Entry, ...]

    def choose(self, sys_object_id: str, sys_descr: str = "") -> Choice:
        """Choose the modules of a device: the base, and those of the first entry that matches."""
        number = sys_object_id.removeprefix(".")
        for entry in self.entries:
            if entry.matches(number, sys_descr):
                names = dict.fromkeys((*self.base, *entry.modules))
                return Choice(tuple(names), entry)

        return Choice(self.base, None)

    def names(self) -> frozenset[str]:
        """Return every module the table may choose."""
        names = set(self.base)
        for entry in self.entries:
            names.update(entry.modules)

        return frozenset(names)


@dataclass(frozen=True, slots=True)
class ChosenModules:
    """The modules chosen for a device; `at` is on the event loop's clock."""

    names: tuple[str, ...]
    at: float


def choose(sys_object_id: str, sys_descr: str = "") -> tuple[str, ...]:
    """Return module names for a device by the built-in table, the base first."""
    choice = built_in().choose(sys_object_id, sys_descr)
    return choice.modules


def chooser(path: str, config: tuple[str, ...] = ()) -> Choose:
    """Return `choose` for the operator's table at `path`, which is read when it is needed.

    The returned function raises OptionsUnusable.
    """
    if not path:
        return choose

    def choose_by_file(sys_object_id: str, sys_descr: str) -> tuple[str, ...]:
        try:
            names = load(path).choose(sys_object_id, sys_descr).modules
            refuse_unknown(path, names, config)
            return names
        except errors.ConfigError as error:
            raise errors.OptionsUnusable(error.message, error.cause, error.hint) from None

    return choose_by_file


def refuse_unknown(path: str, names: Collection[str], config: tuple[str, ...]) -> None:
    """Raise InvalidInput for a module that is neither built in nor in a file of `config`."""
    available = module_catalog.names(config)
    unknown = set(names) - available
    for name in sorted(unknown):
        near = did_you_mean.nearest(name, available)
        suggestion = f"did you mean {near}? or " if near else ""
        raise errors.InvalidInput(
            f'{path}: unknown module "{name}"', hint=f"{suggestion}name its file with config"
        )


@cache
def built_in() -> Table:
    """Return the table of this package, parsed once per process."""
    text = resources.files(__package__).joinpath("device_table.yml").read_text(encoding="utf-8")
    return parse(text, "device_table.yml", None)


def table(path: str) -> Table:
    """Return the operator's table at `path`, or the built-in table. Raises ConfigError."""
    return load(path) if path else built_in()


def load(path: str) -> Table:
    """Return the operator's table over the built-in one; an edited file is read again.

    Raises ConfigError.
    """
    try:
        status = Path(path).stat()
        return _load(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise errors.ConfigError(
            f"{path}: {error.strerror}", hint="option match names a file that every worker can read"
        ) from None
    except UnicodeDecodeError:
        raise errors.ConfigError(f"{path} is not UTF-8 text") from None


@lru_cache(maxsize=64)
def _load(path: str, _mtime_ns: int, _size: int) -> Table:
    """Parse a file; the time and size of the file are part of the cache key."""
    text = Path(path).read_text(encoding="utf-8")
    return parse(text, path, built_in())


def parse(text: str, source: str, beneath: Table | None) -> Table:
    """Parse a table that adds to `beneath`; `source` names it in errors.

    Raises ConfigError.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        cause = " ".join(str(error).split())
        raise errors.ConfigError(f"{source} is not valid YAML", cause=cause) from None

    fields = _mapping(document, source, _TABLE_FIELDS)
    entries: dict[tuple[str, str], Entry] = {}
    for number, item in enumerate(_list(fields, "match", source), 1):
        entry = _entry(item, f"{source}: match entry {number}", source)
        if entry.key in entries:
            raise errors.ConfigError(
                f"{source}: {entry.pattern} is there twice", hint="put its modules in one entry"
            )
        entries[entry.key] = entry

    base = _names(fields, "base", source)
    if beneath is not None:
        if "base" not in fields:
            base = beneath.base
        for entry in beneath.entries:
            entries.setdefault(entry.key, entry)
    if not base:
        raise errors.ConfigError(
            f"{source}: base: names no module", hint="leave it out for: system, if_mib"
        )

    ranked = sorted(entries.values(), key=_rank, reverse=True)
    return Table(base, tuple(ranked))


def _rank(entry: Entry) -> tuple[int, bool, bool]:
    """Return the sort key of an entry."""
    return entry.rank


def _entry(body: Any, where: str, source: str) -> Entry:
    """Parse one line of a table.

    Raises ConfigError.
    """
    fields = _mapping(body, where, _ENTRY_FIELDS)
    pattern = str(fields.get("sysObjectID", "")).removeprefix(".")
    if not oid.is_valid(pattern.removesuffix(".*")):
        raise errors.ConfigError(
            f'{where}: sysObjectID: "{pattern}" is not a numeric OID',
            hint="write 1.3.6.1.4.1.14988.1 or 1.3.6.1.4.1.9.*",
        )

    return Entry(
        pattern=pattern,
        modules=_names(fields, "modules", where),
        device=_text(fields, "device"),
        descr=_text(fields, "sysDescr"),
        source=source,
    )


def _mapping(body: Any, where: str, allowed: Sequence[str]) -> Mapping[str, Any]:
    """Return a mapping with allowed keys only.

    Raises ConfigError.
    """
    if not isinstance(body, dict):
        raise errors.ConfigError(
            f"{where}: must be a mapping", hint="it takes " + ", ".join(allowed)
        )

    for key in map(str, body):
        if key not in allowed:
            hint = typed_fields.key_hint(key, allowed)
            raise errors.ConfigError(f'{where}: unknown key "{key}"', hint=hint)

    return body


def _list(fields: Mapping[str, Any], key: str, where: str) -> list[Any]:
    """Return a list, empty when it is missing.

    Raises ConfigError.
    """
    value = fields.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise errors.ConfigError(f"{where}: {key}: must be a list")

    return value


def _names(fields: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """Return a list of module names without repetitions.

    Raises ConfigError.
    """
    names = _list(fields, key, where)
    for name in names:
        if not isinstance(name, str) or not name:
            raise errors.ConfigError(f"{where}: {key}: must be a list of module names")

    return tuple(dict.fromkeys(names))


def _text(fields: Mapping[str, Any], key: str) -> str:
    """Return a text, empty when it is missing."""
    return str(fields.get(key) or "")
