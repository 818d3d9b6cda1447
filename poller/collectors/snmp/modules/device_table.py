"""Which modules suit a device? Decided by its sysObjectID: of the patterns that match, the longest wins.

The table is `device_table.yml`; an operator's own (option `match`) adds to it and wins where a pattern is the same.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from poller import errors
from poller.collectors.snmp import oid
from poller.collectors.snmp.modules import module_catalog
from poller.domain.inventory import did_you_mean

SYS_OBJECT_ID = "1.3.6.1.2.1.1.2.0"
SYS_DESCR = "1.3.6.1.2.1.1.1.0"

#: Module names for a sysObjectID and a sysDescr.
Choose = Callable[[str, str], tuple[str, ...]]

_FIELDS = ("sysObjectID", "sysDescr", "device", "modules")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a table. `pattern` is an OID, or one with `.*` for all beneath it."""

    pattern: str
    modules: tuple[str, ...]
    device: str = ""  # what these are, for people
    descr: str = ""  # a text that must be in sysDescr, in any case
    source: str = ""

    def suits(self, sys_object_id: str, sys_descr: str) -> bool:
        root = self.pattern.removesuffix(".*")
        covered = oid.covers(root, sys_object_id) if root != self.pattern else sys_object_id == root
        return covered and self.descr.lower() in sys_descr.lower()

    @property
    def rank(self) -> tuple[int, bool, bool]:
        """Longer patterns first; of two that are as long the exact one, then the one that minds sysDescr."""
        root = self.pattern.removesuffix(".*")
        return root.count("."), root == self.pattern, bool(self.descr)


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, and the entry that decided it; None when nobody knows this sysObjectID."""

    modules: tuple[str, ...]
    entry: Entry | None


@dataclass(frozen=True, slots=True)
class Table:
    """`base` is read from every device; `entries` are sorted, the strongest first."""

    base: tuple[str, ...]
    entries: tuple[Entry, ...]

    def choose(self, sys_object_id: str, sys_descr: str = "") -> Choice:
        number = sys_object_id.removeprefix(".")
        entry = next((entry for entry in self.entries if entry.suits(number, sys_descr)), None)
        names = (*self.base, *(entry.modules if entry else ()))
        return Choice(tuple(dict.fromkeys(names)), entry)

    def names(self) -> frozenset[str]:
        """Every module it may choose."""
        return frozenset(self.base).union(*(entry.modules for entry in self.entries))


@dataclass(frozen=True, slots=True)
class ChosenModules:
    """The modules chosen for a device; `at` is on the event loop's clock."""

    names: tuple[str, ...]
    at: float


def choose(sys_object_id: str, sys_descr: str = "") -> tuple[str, ...]:
    """Module names for a device by our own table, the base first; never none."""
    return built_in().choose(sys_object_id, sys_descr).modules


def chooser(path: str, config: tuple[str, ...] = ()) -> Choose:
    """`choose` with the operator's table, read when it is needed. What it returns raises OptionsUnusable."""
    if not path:
        return choose

    def chosen(sys_object_id: str, sys_descr: str) -> tuple[str, ...]:
        try:
            names = load(path).choose(sys_object_id, sys_descr).modules
            refuse_unknown(path, names, config)
            return names
        except errors.ConfigError as error:
            raise errors.OptionsUnusable(error.message, error.cause, error.hint) from None

    return chosen


def refuse_unknown(path: str, names: Collection[str], config: tuple[str, ...]) -> None:
    """Raises InvalidInput for a module that neither the program nor a file of `config` has."""
    known = module_catalog.known(config)
    for name in sorted(set(names) - known):
        meant = did_you_mean.nearest(name, known)
        near = f"did you mean {meant}? or " if meant else ""
        raise errors.InvalidInput(
            f'{path}: unknown module "{name}"', hint=f"{near}name its file with config"
        )


@cache
def built_in() -> Table:
    text = resources.files(__package__).joinpath("device_table.yml").read_text(encoding="utf-8")
    return parse(text, "device_table.yml", None)


def table(path: str) -> Table:
    """The one a target has: the operator's, or ours."""
    return load(path) if path else built_in()


def load(path: str) -> Table:
    """The operator's table over ours; read again when the file has changed. Raises ConfigError."""
    try:
        stat = Path(path).stat()
        return _load(path, stat.st_mtime_ns, stat.st_size)
    except OSError as error:
        raise errors.ConfigError(
            f"{path}: {error.strerror}", hint="option match names a file that every worker can read"
        ) from None
    except UnicodeDecodeError:
        raise errors.ConfigError(f"{path} is not UTF-8 text") from None


@lru_cache(maxsize=64)
def _load(path: str, _mtime_ns: int, _size: int) -> Table:
    return parse(Path(path).read_text(encoding="utf-8"), path, built_in())


def parse(text: str, source: str, beneath: Table | None) -> Table:
    """A table from YAML; `source` names it in errors, `beneath` is what it adds to. Raises ConfigError."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise errors.ConfigError(
            f"{source} is not valid YAML", cause=" ".join(str(error).split())
        ) from None
    top = _mapping(document, source, ("base", "match"))
    own = [
        _entry(item, f"{source}: match entry {n}", source)
        for n, item in enumerate(_list(top, "match", source), 1)
    ]
    _refuse_twins(own, source)
    base = _names(top, "base", source) if "base" in top else (beneath.base if beneath else ())
    if not base:
        raise errors.ConfigError(
            f"{source}: base: names no module", hint="leave it away for: system, if_mib"
        )
    taken = {(entry.pattern, entry.descr.lower()) for entry in own}
    others = [
        e for e in (beneath.entries if beneath else ()) if (e.pattern, e.descr.lower()) not in taken
    ]
    return Table(base, tuple(sorted([*own, *others], key=lambda entry: entry.rank, reverse=True)))


def _entry(body: Any, where: str, source: str) -> Entry:
    fields = _mapping(body, where, _FIELDS)
    pattern = str(fields.get("sysObjectID", "")).removeprefix(".")
    if not oid.is_valid(pattern.removesuffix(".*")):
        raise errors.ConfigError(
            f'{where}: sysObjectID: "{pattern}" is not a numeric OID',
            hint="write 1.3.6.1.4.1.14988.1 or 1.3.6.1.4.1.9.*",
        )
    return Entry(
        pattern,
        _names(fields, "modules", where),
        _text(fields, "device"),
        _text(fields, "sysDescr"),
        source,
    )


def _refuse_twins(entries: Sequence[Entry], source: str) -> None:
    seen: set[tuple[str, str]] = set()
    for entry in entries:
        key = (entry.pattern, entry.descr.lower())
        if key in seen:
            raise errors.ConfigError(
                f"{source}: {entry.pattern} is there twice", hint="put its modules in one entry"
            )
        seen.add(key)


def _mapping(body: Any, where: str, known: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise errors.ConfigError(f"{where}: must be a mapping", hint="it takes " + ", ".join(known))
    for key in map(str, body):
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "it takes " + ", ".join(known)
            raise errors.ConfigError(f'{where}: unknown key "{key}"', hint=hint)
    return body


def _list(fields: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = fields.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise errors.ConfigError(f"{where}: {key}: must be a list")
    return value


def _names(fields: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    names = _list(fields, key, where)
    if not all(isinstance(name, str) and name for name in names):
        raise errors.ConfigError(f"{where}: {key}: must be a list of module names")
    return tuple(dict.fromkeys(names))


def _text(fields: Mapping[str, Any], key: str) -> str:
    return str(fields.get(key) or "")
