"""Validated options: targets with equal options share one object, and are validated once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from poller.collectors.api import Options
from poller.collectors.registry import Registry

#: Different options that are shared at a time. A fleet has a few; with more than that, sharing
#: starts anew.
MAX_SHARED = 1_024
#: Options with a longer text are not shared.
_LONGEST_TEXT = 4_096


class ValidOptions(NamedTuple):
    """Options as they are stored, and as the collector gets them."""

    raw: Mapping[str, Any]
    options: Options


class SharedOptions:
    """One per worker process, safe for threads."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._shared: dict[tuple[str, str], ValidOptions] = {}

    def validate(self, collector: str, raw: Mapping[str, Any]) -> ValidOptions:
        """Validate the options of a target. Raises ConfigError."""
        key = (collector, json.dumps(raw))
        shared = self._shared.get(key)
        if shared is not None:
            return shared

        valid = ValidOptions(raw, self._registry.options(collector, raw))
        _, text = key
        if len(text) <= _LONGEST_TEXT and _is_immutable(valid.options):
            if len(self._shared) >= MAX_SHARED:
                self._shared.clear()
            self._shared[key] = valid
        return valid


def _is_immutable(options: Options) -> bool:
    """Whether nothing of one target can be stored in these options."""
    model = type(options)
    return bool(model.model_config.get("frozen")) and not model.__private_attributes__
