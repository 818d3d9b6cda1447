"""Which modules are there? The built-in ones, read once per process, and those of the files a target names."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources

from poller import errors
from poller.collectors.snmp.modules import module_files, module_parser
from poller.collectors.snmp.modules.file_logins import Auth
from poller.collectors.snmp.modules.module_files import Library
from poller.collectors.snmp.modules.module_model import Module
from poller.collectors.snmp.modules.module_set import ModuleSet

Names = tuple[str, ...]

#: What is read of a device nothing else is known about.
BASE: Names = ("system", "if_mib")


@cache
def built_in() -> Mapping[str, Module]:
    modules: dict[str, Module] = {}
    for file in resources.files(__package__).joinpath("builtin").iterdir():
        if file.name.endswith(".yml"):
            modules.update(module_parser.parse(file.read_text(encoding="utf-8"), file.name))
    return modules


def known(config: Names = ()) -> set[str]:
    """Names of all modules there are. Raises ConfigError, as all of these, when a file cannot be used."""
    return {*built_in(), *(module_files.library(config).names() if config else ())}


def modules(config: Names = ()) -> Mapping[str, Module]:
    """All of them: for people who look for a name, not for polls."""
    if not config:
        return built_in()
    library = module_files.library(config)
    return {**built_in(), **{name: library.module(name) for name in sorted(library.names())}}


def select(names: Names, config: Names = ()) -> ModuleSet:
    """The modules of these names, ready for polling; of the files named by `config` first, else built-in ones.

    The same object as long as no file was edited.
    """
    if not config:
        return _built_in_set(names or BASE)
    return _module_set(module_files.library(config), names or BASE)


def select_cached(names: Names, config: Names = ()) -> ModuleSet | None:
    """The same, if that takes no time: no file has to be read for it."""
    if not config:
        return _built_in_set(names or BASE)
    library = module_files.known(config)
    return library.module_sets.get(names or BASE) if library is not None else None


def auth(name: str, config: Names) -> Auth:
    """A login of these files."""
    library = module_files.library(config)
    if name not in library.auth_names():
        raise errors.InvalidInput(_unknown("auth", name, library.auth_names()))
    return library.auth(name)


@cache
def _built_in_set(names: Names) -> ModuleSet:
    return ModuleSet(tuple(_find(name, None) for name in names))


def _module_set(library: Library, names: Names) -> ModuleSet:
    if names not in library.module_sets:
        library.module_sets[names] = ModuleSet(tuple(_find(name, library) for name in names))
    return library.module_sets[names]


def _find(name: str, library: Library | None) -> Module:
    if library is not None and name in library.names():
        return library.module(name)
    if name in built_in():
        return built_in()[name]
    raise errors.InvalidInput(
        _unknown("module", name, {*built_in(), *(library.names() if library else ())})
    )


def _unknown(what: str, name: str, there: Collection[str]) -> str:
    near = difflib.get_close_matches(name, there, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near else ""
    return f'unknown {what} "{name}"; {hint}there are: {", ".join(sorted(there)) or "none"}'
