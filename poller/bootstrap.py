"""The composition root: settings to services. The one place that knows which adapter serves which need."""

from __future__ import annotations

import logging
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from poller import errors
from poller.settings import Settings, load, masking, setting_sources

if TYPE_CHECKING:
    import redis
    from sqlalchemy.engine import Engine

    from poller.collectors.registry import Registry
    from poller.collectors.staleness_registry import Sources
    from poller.observability.sentry import Reporter
    from poller.security.redaction import Redactor
    from poller.security.vault import Keyring
    from poller.sinks.api import Sink
    from poller.state.board.moves import Board
    from poller.state.cluster.leader_lock import Leadership
    from poller.state.keys import Keys


class Services:
    """Everything a role may need, made when first asked for, so that a small command stays quick."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._reporter: Reporter | None = None

    @cached_property
    def keys(self) -> Keys:
        from poller.state.keys import Keys

        return Keys(self.settings.key_prefix)

    @cached_property
    def redis(self) -> redis.Redis:
        from poller.state import redis_client

        return redis_client.connect(self.settings.broker_url)

    @cached_property
    def board(self) -> Board:
        from poller.state.board.moves import Board

        return Board(self.redis, self.keys)

    @cached_property
    def leadership(self) -> Leadership:
        from poller.state.cluster.leader_lock import Leadership

        return Leadership(self.redis, self.keys, round(self.settings.leader_lock_s * 1000))

    @cached_property
    def engine(self) -> Engine:
        from poller.db import engine

        try:
            self.settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise errors.InvalidSetting(
                f"home: {error.strerror}: {error.filename}",
                hint="set POLLER_HOME to a directory you may write to",
            ) from None
        return engine.create(self.settings.sql_url)

    @cached_property
    def registry(self) -> Registry:
        from poller.collectors import registry

        return registry.load()

    @cached_property
    def staleness(self) -> Sources:
        from poller.collectors import staleness_registry

        return staleness_registry.load()

    @cached_property
    def keyring(self) -> Keyring:
        from poller.security import vault

        secret = self.settings.secret_key
        return vault.Keyring.load(secret.get_secret_value() if secret else None, self.settings.home)

    @cached_property
    def sinks(self) -> list[Sink]:
        from poller.sinks import api, registry

        return registry.load(
            self.settings.sinks, api.Stores(self.engine, self.redis, self.settings)
        )

    @cached_property
    def redactor(self) -> Redactor:
        """Knows the secrets of this process, so that no log line shows them."""
        from poller.security.redaction import Redactor

        values = [getattr(self.settings, name) for name in setting_sources.SECRETS]
        texts = [value.get_secret_value() for value in values if value is not None]
        return Redactor(part for text in texts for part in masking.secret_parts(text))

    def configure_logs(self, level: str | None = None) -> None:
        from poller.observability import logs

        logs.configure(
            level or self.settings.log_level, self.settings.log_format, self.redactor.fields
        )
        self._attach_reporter()

    def report_errors(self, role: str) -> None:
        """From now on bugs of this process go to Sentry, if a DSN is set. Raises InvalidSetting."""
        dsn = self.settings.sentry_dsn
        if dsn is None or self._reporter is not None:
            return
        from poller.observability import sentry

        to = sentry.Destination(
            dsn.get_secret_value(),
            self.settings.sentry_environment,
            self.settings.sentry_per_minute,
        )
        self._reporter = sentry.Reporter(to, role, _without_secrets)
        sentry.install(self._reporter)
        self._attach_reporter()

    def _attach_reporter(self) -> None:
        """To the root logger, whose handlers every configuration of the logs removes."""
        if self._reporter is not None:
            logging.getLogger().addHandler(self._reporter)

    def notify(self, version: int) -> None:
        """Tell the leader that the inventory changed."""
        self.board.wake("inventory")


def _without_secrets(text: str) -> str:
    """Asks for the services each time: a forked child has its own, and other secrets."""
    return services().redactor.text(text)


@lru_cache(maxsize=1)
def services() -> Services:
    """The services of this process, from the environment."""
    return Services(load())
