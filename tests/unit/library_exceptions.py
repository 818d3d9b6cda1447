"""The exceptions that a library defines, found by importing all of its modules."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Iterator, Sequence
from types import ModuleType


def defined_by(
    package: str, besides: Sequence[str] = (), also: Sequence[str] = ()
) -> list[type[BaseException]]:
    """Public exceptions of a package, without warnings and without the modules `besides`, which we
    never call.

    `also` names other modules its classes claim to be from, as those of extensions do.
    """
    homes = (package, *also)
    found = {
        kind
        for module in _modules(package, besides)
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, BaseException)
        and not issubclass(kind, Warning)
        and not name.startswith("_")
        if any(_is_in(kind.__module__, home) for home in homes)
        and not any(_is_in(kind.__module__, b) for b in besides)
    }
    assert found, f"{package} defines no exceptions any more"
    return sorted(found, key=lambda kind: (kind.__module__, kind.__name__))


def _modules(package: str, besides: Sequence[str]) -> Iterator[ModuleType]:
    root = importlib.import_module(package)
    yield root
    for info in pkgutil.walk_packages(
        getattr(root, "__path__", ()), f"{package}.", onerror=lambda _: None
    ):
        if any(_is_in(info.name, other) for other in besides) or "__main__" in info.name:
            continue
        try:
            with warnings.catch_warnings(action="ignore"):
                yield importlib.import_module(info.name)
        except (
            Exception,
            SystemExit,
        ):  # it needs something that is not installed: nobody can call it
            continue


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")
