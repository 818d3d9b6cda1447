"""The modules a target can name: built-in ones, and those of the files in its option `config`.

A file's module wins over a built-in module of the same name. All functions raise ConfigError for a
file that cannot be used.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib import resources

from poller import errors
from poller.collectors.snmp.modules import module_files, module_parser
from poller.collectors.snmp.modules.file_logins import Auth
from poller.collectors.snmp.modules.module_files import Library
from poller.collectors.snmp.modules.module_model import Module
from poller.collectors.snmp.modules.module_parser import ModuleFile
from poller.collectors.snmp.modules.module_set import ModuleSet

Names = tuple[str, ...]

#: Modules for a device whose kind is unknown.
BASE: Names = ("system", "if_mib")


@cache
def built_in() -> Mapping[str, Module]:
    """Return the built-in modules by name; their files are parsed once per process."""
    modules: dict[str, Module] = {}
    for file in built_in_files():
        modules.update({name: file.module(name) for name in file.modules})

    return modules


def built_in_files() -> Iterator[ModuleFile]:
    """Yield the built-in files, read as far as the names of their modules."""
    for file in resources.files(__package__).joinpath("builtin").iterdir():
        if file.name.endswith(".yml"):
            yield module_parser.read(file.read_text(encoding="utf-8"), file.name)


def names(config: Names = ()) -> set[str]:
    """Return the names of all modules."""
    if not config:
        return set(built_in())
    return {*built_in(), *module_files.library(config).names()}


def modules(config: Names = ()) -> Mapping[str, Module]:
    """Return all modules by name, parsed: for name lookups at a terminal, not for polls."""
    by_name = {**built_in()}
    if config:
        library = module_files.library(config)
        for name in sorted(library.names()):
            by_name[name] = library.module(name)

    return by_name


def select(names: Names, config: Names = ()) -> ModuleSet:
    """Return the modules of these names, `BASE` for none.

    The result is the same object until a file is edited.
    """
    names = names or BASE
    if not config:
        return _built_in_set(names)

    library = module_files.library(config)
    if names not in library.module_sets:
        modules = tuple(_find(name, library) for name in names)
        library.module_sets[names] = ModuleSet(modules)

    return library.module_sets[names]


def select_cached(names: Names, config: Names = ()) -> ModuleSet | None:
    """Return the result of `select` if that takes no file read; else None."""
    names = names or BASE
    if not config:
        return _built_in_set(names)

    library = module_files.cached_library(config)
    if library is None:
        return None
    return library.module_sets.get(names)


def auth(name: str, config: Names) -> Auth:
    """Return a login of these files."""
    library = module_files.library(config)
    auth_names = library.auth_names()
    if name not in auth_names:
        raise errors.InvalidInput(_unknown("auth", name, auth_names))

    return library.auth(name)


@cache
def _built_in_set(names: Names) -> ModuleSet:
    """Return built-in modules, as one object per process."""
    modules = tuple(_find(name, None) for name in names)
    return ModuleSet(modules)


def _find(name: str, library: Library | None) -> Module:
    """Return a module of the library, else a built-in one.

    Raises InvalidInput.
    """
    file_modules = library.names() if library is not None else set()
    if library is not None and name in file_modules:
        return library.module(name)
    if name in built_in():
        return built_in()[name]

    raise errors.InvalidInput(_unknown("module", name, {*built_in(), *file_modules}))


def _unknown(what: str, name: str, available: Collection[str]) -> str:
    """Return the error text for an unknown name, with a suggestion and all names."""
    hint = ""
    near = difflib.get_close_matches(name, available, n=1, cutoff=0.4)
    if near:
        hint = f"did you mean {near[0]}? "

    listed = ", ".join(sorted(available))
    return f'unknown {what} "{name}"; {hint}there are: {listed or "none"}'
