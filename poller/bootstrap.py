"""The composition root: makes the services of a process from its settings."""

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
    from poller.jobs.registry import Registry as Jobs
    from poller.observability.check_ins import CheckIns
    from poller.observability.exposition.metrics_publisher import MetricsPlace, MetricsPublisher
    from poller.observability.sentry import Reporter
    from poller.security.redaction import Redactor
    from poller.security.vault import Keyring
    from poller.sinks.made_sink import MadeSink
    from poller.state.board.moves import Board
    from poller.state.cluster.leader_lock import Leadership
    from poller.state.keys import Keys


class Services:
    """The services of a role. Each is made at first use, so that a small command starts fast."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._reporter: Reporter | None = None
        #: Check-ins of jobs to Sentry; None without a DSN.
        self.check_ins: CheckIns | None = None
        #: The metrics of this process, once `publish_metrics` was called.
        self.metrics: MetricsPublisher | None = None

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

        lock_ms = round(self.settings.leader_lock_s * 1000)
        return Leadership(self.redis, self.keys, lock_ms, self.settings.instance_id)

    @cached_property
    def engine(self) -> Engine:
        from poller.db import engine

        if self.settings.database_url.get_secret_value():
            self._create_home()  # a private database is in it, and makes it
        return engine.create(self.settings.sql_url)

    def _create_home(self) -> None:
        try:
            self.settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise errors.InvalidSetting(
                f"home: {error.strerror}: {error.filename}",
                hint="set POLLER_HOME to a directory you may write to",
            ) from None

    @cached_property
    def registry(self) -> Registry:
        from poller.collectors import registry

        return registry.load()

    @cached_property
    def staleness(self) -> Sources:
        from poller.collectors import staleness_registry

        return staleness_registry.load()

    @cached_property
    def jobs(self) -> Jobs:
        from poller.jobs import registry

        return registry.load()

    @cached_property
    def keyring(self) -> Keyring:
        from poller.security import vault

        return vault.Keyring.load(self._secret_key, self.settings.home)

    @property
    def _secret_key(self) -> str | None:
        secret = self.settings.secret_key
        return secret.get_secret_value() if secret else None

    def key_problem(self) -> str:
        """Why stored credentials cannot be opened here; "" if they can. Raises StoreError."""
        from poller.db.inventory import credential_rows
        from poller.security import vault

        envelopes = credential_rows.envelopes(self.engine)
        return vault.key_problem(self._secret_key, self.settings.home, envelopes)

    @cached_property
    def sinks(self) -> list[MadeSink]:
        from poller.sinks import api, registry

        stores = api.Stores(self.engine, self.redis, self.settings)
        return registry.load(self.settings.sinks, stores, tables=self.settings.sink)

    @cached_property
    def redactor(self) -> Redactor:
        """Masks the secrets of this process in logs and reports."""
        from poller.security.redaction import Redactor

        redactor = Redactor()
        for name in setting_sources.SECRETS:
            secret = getattr(self.settings, name)
            if secret is not None:
                for part in masking.secret_parts(secret.get_secret_value(), name):
                    redactor.remember(part)
        return redactor

    def configure_logs(self, level: str | None = None) -> None:
        """Configure logs at this level, or at that of the settings."""
        from poller.observability import logs

        logs.configure(
            level or self.settings.log_level, self.settings.log_format, self.redactor.fields
        )
        self._attach_reporter()

    def report_errors(self, role: str) -> None:
        """Report bugs of this process to Sentry, if a DSN is set. Raises InvalidSetting."""
        dsn = self.settings.sentry_dsn
        if dsn is None or self._reporter is not None:
            return
        from poller.observability import sentry
        from poller.observability.check_ins import CheckIns

        to = sentry.Destination(
            dsn.get_secret_value(),
            self.settings.sentry_environment,
            self.settings.sentry_per_minute,
        )
        self._reporter = sentry.Reporter(to, role, _redact)
        self.check_ins = CheckIns(self._reporter.send)
        sentry.install(self._reporter)
        self._attach_reporter()

    def _attach_reporter(self) -> None:
        """Add the reporter to the root logger; `logs.configure` removes all its handlers."""
        if self._reporter is not None:
            logging.getLogger().addHandler(self._reporter)

    def publish_metrics(self, role: str, process: str = "") -> None:
        """Publish the metrics of this process. A second call does nothing. Raises InvalidSetting.

        `process` tells the processes of a role apart; a worker's is its node name.
        """
        if self.metrics is not None:
            return
        from poller.observability.exposition.metrics_publisher import MetricsPublisher

        place = self._metrics_place()
        self.metrics = MetricsPublisher(self.settings.home, place, role, process)
        self.metrics.start()

    def start_traces(self, role: str) -> None:
        """Trace polls, if an endpoint is set. Raises InvalidSetting."""
        if not self.settings.trace_endpoint:
            return
        from poller.observability import tracing

        settings = self.settings
        to = tracing.TraceDestination(settings.trace_endpoint, settings.trace_ratio)
        tracing.start(to, role)

    def _metrics_place(self) -> MetricsPlace:
        from poller.observability.exposition.metrics_publisher import MetricsPlace
        from poller.observability.exposition.scrape_server import ScrapeAccess
        from poller.security import network_exposure
        from poller.security.allowed_hosts import AllowedHosts

        settings = self.settings
        secret = settings.metrics_token
        token = secret.get_secret_value() if secret else ""
        if settings.metrics_port is not None:
            bind, insecure = settings.metrics_bind, settings.metrics_insecure
            network_exposure.check_metrics(bind, bool(token), insecure)
        access = ScrapeAccess(token)
        if not token and not settings.metrics_insecure:
            access = ScrapeAccess(allows_host=AllowedHosts().allows)
        return MetricsPlace(
            settings.metrics_bind, settings.metrics_port, settings.metrics_file, access
        )

    def notify(self, version: int) -> None:
        """Wake the leader after a change of the inventory."""
        self.board.wake("inventory")


def _redact(text: str) -> str:
    """Redact with the services of the current process: a forked child has its own."""
    return services().redactor.text(text)


@lru_cache(maxsize=1)
def services() -> Services:
    """The services of this process, from the environment."""
    return Services(load())
