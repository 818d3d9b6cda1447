"""Reads the settings of this process from all sources, and names the source of each value."""

from __future__ import annotations

import os
from collections.abc import Mapping

from poller.settings import setting_errors, setting_sources
from poller.settings.fields import Settings


def load() -> Settings:
    """Read all sources. Raises InvalidSetting, naming the variable or key and what it takes."""
    setting_sources.refuse_unknown(os.environ, Settings.model_fields)
    try:
        return Settings()
    except tuple(setting_errors.TRANSLATION) as error:
        raise setting_errors.translated(error) from None


def origins(environ: Mapping[str, str]) -> dict[str, str]:
    """The source of each setting's value, in words."""
    return setting_sources.origins_of(environ, Settings.model_fields)
