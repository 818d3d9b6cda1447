"""Which modules are there? The built-in ones, read once per process from the YAML beside this file."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from poller.collectors.snmp import loading
from poller.collectors.snmp.language import Module
from poller.collectors.snmp.profile import Profile


@cache
def built_in() -> Mapping[str, Module]:
    modules: dict[str, Module] = {}
    for file in resources.files(__package__).joinpath("modules").iterdir():
        if file.name.endswith(".yml"):
            modules.update(loading.parse(file.read_text(encoding="utf-8"), file.name))
    return modules


@cache
def select(names: tuple[str, ...]) -> Profile:
    """The modules of these names, ready for polling; ValueError names the unknown one and the nearest."""
    return Profile(tuple(_find(name) for name in names))


def _find(name: str) -> Module:
    known = built_in()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near else ""
    raise ValueError(f'unknown module "{name}"; {hint}there are: {", ".join(sorted(known))}')
