"""The model of all settings, put together from the groups of the `*_fields` modules.

Sources, strongest first: environment `POLLER_*`, a file named by `POLLER_*_FILE` (secrets only),
`poller.toml`, a running `poller up` on the same home, the default. Unknown names are refused.
"""

from __future__ import annotations

import os

from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from poller.settings.access_fields import AccessFields
from poller.settings.cluster_fields import AdaptiveFields, PlaceFields, SchedulingFields
from poller.settings.failure_fields import FailureFields
from poller.settings.notify_fields import NotifyFields
from poller.settings.service_fields import (
    MetricsFields,
    ReportFields,
    RuleFields,
    ScrapeFields,
    TraceFields,
    TrapFields,
    WebFields,
)
from poller.settings.setting_sources import PREFIX, layers
from poller.settings.worker_fields import RetentionFields, WorkerFields


# The reference lists the fields of the last base first, so the groups are named in reverse.
class Settings(
    ReportFields,
    TraceFields,
    MetricsFields,
    TrapFields,
    RuleFields,
    ScrapeFields,
    AccessFields,
    WebFields,
    NotifyFields,
    RetentionFields,
    WorkerFields,
    FailureFields,
    AdaptiveFields,
    SchedulingFields,
    PlaceFields,
    BaseSettings,
):
    """All settings of all roles. Durations are in seconds unless the description names a unit."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    @property
    def sql_url(self) -> str:
        """The database URL, with the default filled in."""
        return self.database_url.get_secret_value() or f"sqlite:///{self.home / 'poller.db'}"

    @property
    def broker_url(self) -> str:
        """The URL of Redis, with its password."""
        return self.redis_url.get_secret_value()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the environment first, then the layers of setting_sources.py."""
        below_environment = [
            InitSettingsSource(cls, dict(values))
            for _, values in layers(os.environ, cls.model_fields)
        ]
        return (init_settings, env_settings, *below_environment)
