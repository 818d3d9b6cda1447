"""Settings as a table for people: name, value, origin, description. Secrets are masked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from poller.settings import masking
from poller.settings.fields import Settings
from poller.settings.loader import origins
from poller.settings.setting_sources import DEFAULT


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting as `poller settings` shows it."""

    name: str
    value: str
    origin: str
    description: str
    default: str = ""

    @property
    def is_set(self) -> bool:
        """Whether the value was given, also if it equals the default."""
        return self.origin != DEFAULT


def rows(settings: Settings, environ: Mapping[str, str]) -> list[SettingRow]:
    """One row per setting, in the order of the model."""
    origin_of = origins(environ)
    table = []
    for name, field in Settings.model_fields.items():
        row = SettingRow(
            name=name,
            value=_shown(name, getattr(settings, name)),
            origin=origin_of[name],
            description=field.description or "",
            default=_shown(name, field.get_default(call_default_factory=True)),
        )
        table.append(row)
    return table


def _shown(name: str, value: Any) -> str:
    """A value as text, without secrets."""
    if isinstance(value, SecretStr):
        return masking.masked(value.get_secret_value(), name)
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, dict):
        return json.dumps(value) if value else ""
    return "" if value is None else str(value)
