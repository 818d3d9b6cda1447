"""The sinks of `poller up --sink`: names of the settings, installed kinds, or KIND=ADDRESS."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from poller import errors
from poller.domain.inventory import did_you_mean
from poller.settings import Settings
from poller.sinks import registry, sink_options

#: The option that an address is for; the first that the kind has.
_ADDRESS_OPTIONS = ("url", "servers")


def variables(words: Iterable[str], settings: Settings) -> dict[str, str]:
    """Return the environment of these sinks beside those of the settings.

    Raises InvalidInput for an unknown kind, and for one that takes no address.
    """
    names = list(settings.sinks)
    tables: dict[str, dict[str, Any]] = {name: dict(each) for name, each in settings.sink.items()}
    for word in words:
        name = _add(word, tables)
        if name not in names:
            names.append(name)
    return {"POLLER_SINKS": ",".join(names), "POLLER_SINK": json.dumps(tables)}


def _add(word: str, tables: dict[str, dict[str, Any]]) -> str:
    """Add the table that a word stands for, and return the name of its sink."""
    kind, has_address, address = word.partition("=")
    if kind in tables and not has_address:
        return kind
    installed = registry.survey().plugins
    try:
        did_you_mean.refuse_unknown("sink", kind, [*installed, *tables], "poller sinks")
    except errors.NotFound as error:
        raise errors.InvalidInput(f"--sink: {error.message}", hint=error.hint) from None
    if not has_address:
        return kind
    if kind not in installed:
        raise errors.InvalidInput(
            f'--sink: "{kind}" has its address in poller.toml', hint=f"--sink {kind}"
        )

    names = (kind, *(f"{kind}-{number}" for number in range(2, 100)))
    name = next(each for each in names if each not in tables)
    tables[name] = {"kind": kind, **_address(kind, installed[kind].sink, address)}
    return name


def _address(kind: str, sink: Any, address: str) -> dict[str, Any]:
    model = sink_options.model_of(sink)
    options = model.model_fields if model else {}
    option = next((each for each in _ADDRESS_OPTIONS if each in options), None)
    if option is None:
        raise errors.InvalidInput(f'--sink: "{kind}" takes no address', hint=f"--sink {kind}")
    return {option: address if option == "url" else address.split(",")}
