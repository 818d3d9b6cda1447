"""Every option: its default, its bounds and where its value came from.

Sources, strongest first: environment `POLLER_*`, a file named by `POLLER_*_FILE` (secrets only),
`poller.toml`, the `poller up` that is running on this home, the default. Unknown names are refused.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import pydantic
import pydantic_core
import pydantic_settings
from pydantic import BaseModel, Field, SecretStr, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from poller import errors
from poller.domain.failures import circuit_breaker, retry, site_outage
from poller.domain.scheduling import session_limits
from poller.domain.scheduling.interval import Adaptive
from poller.settings import masking
from poller.settings.setting_sources import PREFIX, layers, origins_of, refuse_unknown

#: Every exception of pydantic and its relatives: values are the operator's, models are ours.
TRANSLATION: dict[type[Exception], type[errors.PollerError]] = {
    pydantic.ValidationError: errors.InvalidSetting,
    pydantic_settings.SettingsError: errors.InvalidSetting,
    pydantic.PydanticUserError: errors.Bug,
    pydantic.errors.PydanticForbiddenQualifier: errors.Bug,
    pydantic.PydanticImportError: errors.Bug,
    pydantic.PydanticInvalidForJsonSchema: errors.Bug,
    pydantic.PydanticSchemaGenerationError: errors.Bug,
    pydantic.PydanticUndefinedAnnotation: errors.Bug,
    pydantic_core.PydanticCustomError: errors.Bug,  # these four are for validators, which turn them into the first
    pydantic_core.PydanticKnownError: errors.Bug,
    pydantic_core.PydanticOmit: errors.Bug,
    pydantic_core.PydanticUseDefault: errors.Bug,
    pydantic_core.PydanticSerializationError: errors.Bug,
    pydantic_core.PydanticSerializationUnexpectedValue: errors.Bug,
    pydantic_core.SchemaError: errors.Bug,
}


#: Times `spool_patience_s`: the readings of a poll wait for a store that is only slow, and then its rows; see
#: workers/results/writers.py.
LONGEST_WRITE = 10

_NOUNS: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number"}

Words = Annotated[tuple[str, ...], NoDecode]


class Settings(BaseSettings):
    """All settings of all roles. Durations are in seconds."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    # Where things are
    home: Path = Field(
        Path(".poller"),
        description="Directory of the embedded server's data, logs, key file and SQLite file. "
        "Not set: the nearest .poller here or above, or one made here.",
    )
    redis_url: SecretStr = Field(
        SecretStr("redis://127.0.0.1:6379/0"),
        description="Redis or Valkey server. `poller up` starts its own when this is not set.",
    )
    database_url: SecretStr = Field(
        SecretStr(""),
        description="SQLAlchemy URL: sqlite:/// or postgresql://. Empty: poller.db in the home directory.",
    )
    secret_key: SecretStr | None = Field(
        None,
        description="Base64 key(s) of 32 bytes, comma separated; the first encrypts. Not set: home/secret.key.",
    )
    key_prefix: str = Field(
        "poller:",
        min_length=1,
        max_length=40,
        description="First part of our Redis keys. Celery's queues have none: each cluster needs its own database.",
    )

    # Scheduling
    leader_lock_s: float = Field(
        4.0, ge=1, le=60, description="How long leadership lasts without renewal."
    )
    leader_renew_s: float = Field(1.0, gt=0, le=20, description="How often the leader renews it.")
    tick_s: float = Field(
        0.5,
        ge=0.05,
        le=2,
        description="Longest pause between two looks at the board; a large fleet is looked at more often.",
    )
    leader_election: bool = Field(
        True, description="False: this beat leads without a lock. Only for a single beat."
    )
    reconcile_s: float = Field(
        30.0, ge=1, le=3600, description="Backup check of the inventory's version."
    )
    batch_size: int = Field(64, ge=1, le=1000, description="Targets per message.")
    claim_limit: int = Field(2048, ge=1, le=20000, description="Targets claimed at once.")
    max_queue: int = Field(
        256,
        ge=1,
        le=10000,
        description="Batches that may wait in one queue, and never more than two for each one that its workers "
        "poll at a time; the rest stays due on the board.",
    )
    queue_wait_s: float = Field(
        30.0,
        ge=1,
        le=3600,
        description="How long a batch may wait in its queue before it is handed back.",
    )
    lease_margin_s: float = Field(
        15.0, ge=1, le=600, description="Time a worker has beyond a poll's own time limit."
    )

    # Adaptive intervals: what a target gets that says no more than `adaptive`, and how fast it adapts
    adaptive_min_s: float = Field(
        5.0, ge=1, le=2_678_400, description="Shortest interval of an adaptive target."
    )
    adaptive_base_s: float = Field(
        10.0, ge=1, le=2_678_400, description="Interval of a healthy adaptive target."
    )
    adaptive_max_s: float = Field(
        300.0, ge=1, le=2_678_400, description="Longest interval of an adaptive target."
    )
    adaptive_alpha: float = Field(
        0.6,
        gt=0,
        le=1,
        description="Weight of a new interval against the old one. 1: no smoothing.",
    )
    adaptive_jitter: float = Field(
        0.05, ge=0, le=0.5, description="Share by which an adaptive interval may stray."
    )
    adaptive_stretch: float = Field(
        0.1,
        ge=0,
        le=10,
        description="Share by which each overdue batch beyond the first lengthens the interval.",
    )
    adaptive_penalty: float = Field(
        0.6,
        ge=0,
        le=10,
        description="How much each error shortens the interval, until it is certain.",
    )

    # Failures
    retry_tries: int = Field(
        2, ge=0, le=5, description="More tries of a failed poll before its next slot."
    )
    retry_base_s: int = Field(
        1, ge=1, le=60, description="Longest wait before the first one; doubles each time."
    )
    retry_share: float = Field(
        0.1, ge=0, le=1, description="Retries a worker may add to its polls, as a share."
    )
    breaker_failures: int = Field(
        5, ge=1, le=1000, description="Failures in a row that open a target's breaker."
    )
    breaker_base_s: float = Field(
        30.0, ge=1, le=86_400, description="First wait of an open breaker; then doubled."
    )
    breaker_cap_s: float = Field(
        900.0, ge=1, le=86_400, description="Longest wait of an open breaker."
    )
    breaker_auth_s: float = Field(
        900.0, ge=1, le=86_400, description="Wait after a refused credential, at once."
    )
    deadletter_retry_s: float = Field(
        1800.0, ge=10, le=604_800, description="How often a dead letter is tried."
    )
    deadletter_after_s: float = Field(
        86_400.0,
        ge=60,
        le=31_536_000,
        description="A breaker open for so long makes a dead letter.",
    )
    site_share: float = Field(
        0.6, gt=0, le=1, description="Share of a site's polls that find nobody: it is dark."
    )
    site_least: int = Field(
        10, ge=1, le=100_000, description="Such polls within a minute, at least."
    )
    site_canaries: int = Field(
        3, ge=1, le=100, description="Targets that are polled for a dark site."
    )
    site_probe_s: float = Field(30.0, ge=1, le=3600, description="How often they are.")

    # Workers
    worker_concurrency: int = Field(
        16, ge=1, le=1000, description="Batches polled at the same time by one worker process."
    )
    worker_drain_s: float = Field(
        5.0, ge=0, le=600, description="How long a stopping worker lets running batches finish."
    )
    worker_tags: Words = Field(
        (),
        description="What this worker carries, as key=value: it serves the targets that require no more.",
    )
    domains_s: float = Field(
        30.0,
        ge=1,
        le=3600,
        description="How often a worker looks for queues that no note told it of.",
    )
    blocking_threads: int = Field(
        16, ge=1, le=256, description="Threads of a worker process for each collector that blocks."
    )
    stuck_threads: int = Field(
        8,
        ge=1,
        le=256,
        description="Threads of one collector that may hang before it gets a process of its own.",
    )
    isolated_collectors: Words = Field(
        (), description="Collectors that run in a process of their own, by name."
    )
    isolation_memory_mb: int = Field(
        512, ge=64, le=1_000_000, description="Memory of such a process."
    )
    quarantine_crashes: int = Field(
        3,
        ge=1,
        le=1000,
        description="Crashes of a collector's process after which nobody runs it any more.",
    )
    quarantine_window_s: float = Field(
        3600.0, ge=60, le=2_678_400, description="Time within which these are counted."
    )
    target_cache: int = Field(
        50_000,
        ge=100,
        description="Targets a worker process remembers, some 30 KB each; polls of others cost several times as much.",
    )
    secret_cache_s: float = Field(
        60.0,
        ge=0,
        le=3600,
        description="A worker reads a credential again after so long; in its memory it stays until the process ends.",
    )
    session_idle_s: float = Field(
        600.0,
        ge=0,
        le=86_400,
        description="A kept connection to a device that nobody uses is closed after so long.",
    )
    session_age_s: float = Field(
        86_400.0, ge=0, le=2_678_400, description="It is replaced when it is so old."
    )
    sessions_per_host: int = Field(
        4,
        ge=1,
        le=1000,
        description="Kept connections to one address at a time, of one collector and worker process.",
    )
    session_pace_s: float = Field(
        0.0,
        ge=0,
        le=60,
        description="Least time between two new connections to one address, by one worker process.",
    )
    session_exceptions: Words = Field(
        (),
        description="Limits by collector, as COLLECTOR.LIMIT=NUMBER with idle_s, age_s, per_host or pace_s, "
        "such as routeros.per_host=2.",
    )
    sessions: int = Field(
        4096,
        ge=1,
        le=100_000,
        description="Kept connections of one worker process; beyond that a new one replaces the one used last.",
    )
    sinks: Words = Field(("sql",), description="Where readings go, by entry-point name.")
    spool_patience_s: float = Field(
        1.0,
        ge=0.05,
        le=30,
        description="How long a poll waits for its rows to be written before they go to disk; "
        "at most a tenth of lease_margin_s.",
    )
    spool_mb: int = Field(
        256,
        ge=1,
        le=100_000,
        description="Disk space of a worker process for rows that wait for a database or sink that is down.",
    )
    stream_length: int = Field(
        10_000, ge=10, description="Polls kept in the `stream` sink's Redis stream."
    )

    # Keeping
    runs_days: float = Field(30.0, gt=0, le=3650, description="How long good runs are kept.")
    runs_failed_days: float = Field(
        90.0, gt=0, le=3650, description="How long failed and refused runs are kept."
    )
    readings_days: float = Field(
        7.0, gt=0, le=3650, description="How long readings are kept in SQL."
    )
    events_days: float = Field(90.0, gt=0, le=3650, description="How long events are kept in SQL.")
    events_length: int = Field(
        10_000,
        ge=100,
        description="Events kept in the Redis stream; so many may wait for a database that is away.",
    )

    # Web and Flower
    web_bind: str = Field("127.0.0.1", description="Address the page listens on.")
    web_port: int | None = Field(
        None, ge=0, le=65535, description="Port of the page. Not set: 8080, or a free one."
    )
    web_url: str = Field(
        "", description="Where people find the page. Not set: the one of `poller up`, if it runs."
    )
    flower_bind: str = Field("127.0.0.1", description="Address Flower listens on.")
    flower_port: int | None = Field(
        None, ge=0, le=65535, description="Port of Flower. Not set: 5555, or a free one."
    )
    flower_basic_auth: SecretStr | None = Field(
        None, description="user:password of Flower; needed beyond loopback."
    )
    flower_url: str = Field(
        "",
        description="Where the page links to Flower. Not set: nowhere, or the one of `poller up`.",
    )

    # Notifications of devices
    trap_bind: str = Field(
        "127.0.0.1", description="Address `poller traps` listens on; 0.0.0.0 or :: hears devices."
    )
    trap_port: int = Field(
        1162,
        ge=0,
        le=65535,
        description="Its UDP port. Devices send to 162, which needs privileges or a redirect.",
    )
    trap_gap_s: float = Field(
        10.0, ge=0, le=3600, description="Least time between two polls of a device for traps."
    )
    trap_polls_per_s: float = Field(
        20.0,
        gt=0,
        le=10_000,
        description="Devices polled for traps, per second and listener; more wait their turn.",
    )
    trap_listener: bool = Field(False, description="`poller up` runs a listener for traps, too.")

    # Logs
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Least level that is logged."
    )
    log_format: Literal["text", "json"] = Field(
        "text", description="One line of text, or one JSON object, per record."
    )

    # Reports of our own bugs
    sentry_dsn: SecretStr | None = Field(
        None,
        description="Where bugs and store failures are reported; needs poller[sentry]. Not set: nowhere.",
    )
    sentry_environment: str = Field(
        "production", min_length=1, max_length=64, description="What Sentry calls this."
    )
    sentry_per_minute: int = Field(
        20,
        ge=1,
        le=600,
        description="Most reports of one process in a minute; of one kind never more than one.",
    )

    @field_validator("sentry_dsn", mode="after")
    @classmethod
    def _is_dsn(cls, value: SecretStr | None) -> SecretStr | None:
        text = value.get_secret_value() if value else ""
        if text and not masking.DSN.fullmatch(text):
            raise ValueError("it must look like https://KEY@HOST/NUMBER")
        return value if text else None

    @field_validator("session_exceptions", mode="after")
    @classmethod
    def _are_limits(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        try:
            session_limits.exceptions(words, session_limits.Limits())
        except errors.InvalidSetting as error:
            raise ValueError(f"{error.message}; {error.hint}") from None
        return words

    @field_validator(
        "session_exceptions", "sinks", "worker_tags", "isolated_collectors", mode="before"
    )
    @classmethod
    def _split(cls, value: Any) -> Any:
        return (
            tuple(word.strip() for word in value.split(",") if word.strip())
            if isinstance(value, str)
            else value
        )

    @field_validator("adaptive_base_s", "adaptive_max_s", mode="after")
    @classmethod
    def _rising(cls, value: float, info: ValidationInfo) -> float:
        lower = {"adaptive_base_s": "adaptive_min_s", "adaptive_max_s": "adaptive_base_s"}[
            str(info.field_name)
        ]
        if value < info.data.get(lower, 0):
            raise ValueError(f"{value:g} is less than {lower}, which is {info.data[lower]:g}")
        return value

    @field_validator("leader_renew_s", mode="after")
    @classmethod
    def _in_time(cls, value: float, info: ValidationInfo) -> float:
        lock_s = info.data.get("leader_lock_s", math.inf)
        if value > lock_s / 2:
            raise ValueError(
                f"{value:g} is more than half of leader_lock_s, which is {lock_s:g}: one lost renewal ends it"
            )
        return value

    @field_validator("spool_patience_s", mode="after")
    @classmethod
    def _within_lease(cls, value: float, info: ValidationInfo) -> float:
        margin_s = info.data.get("lease_margin_s", math.inf)
        if value > margin_s / LONGEST_WRITE:
            raise ValueError(
                f"{value:g} is more than a tenth of lease_margin_s, which is {margin_s:g}: "
                "a poll whose rows wait for a slow database would lose its lease"
            )
        return value

    @field_validator("home", mode="after")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @property
    def sql_url(self) -> str:
        """The database URL, with the default filled in."""
        return self.database_url.get_secret_value() or f"sqlite:///{self.home / 'poller.db'}"

    @property
    def adaptive(self) -> Adaptive:
        """What an adaptive target gets that has no numbers of its own."""
        bounds = (self.adaptive_min_s, self.adaptive_base_s, self.adaptive_max_s)
        low, base, high = (round(seconds * 1000) for seconds in bounds)
        shares = (
            self.adaptive_alpha,
            self.adaptive_jitter,
            self.adaptive_stretch,
            self.adaptive_penalty,
        )
        return Adaptive(low, base, high, *shares)

    @property
    def breaker_rules(self) -> circuit_breaker.Rules:
        base, cap, auth = (
            round(s * 1000) for s in (self.breaker_base_s, self.breaker_cap_s, self.breaker_auth_s)
        )
        return circuit_breaker.rules(
            circuit_breaker.Rule(self.breaker_failures, base, max(base, cap)), auth
        )

    @property
    def session_rules(self) -> session_limits.Rules:
        usual = session_limits.Limits(
            self.session_idle_s, self.session_age_s, self.sessions_per_host, self.session_pace_s
        )
        return session_limits.Rules(
            usual, session_limits.exceptions(self.session_exceptions, usual), self.sessions
        )

    @property
    def site_limits(self) -> site_outage.Limits:
        return site_outage.Limits(
            self.site_share, self.site_least, self.site_canaries, round(self.site_probe_s * 1000)
        )

    @property
    def retry_limits(self) -> retry.Limits:
        return retry.Limits(self.retry_tries, self.retry_base_s, cap_s=60.0)

    @property
    def broker_url(self) -> str:
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
        weaker = [
            InitSettingsSource(cls, dict(values))
            for _, values in layers(os.environ, cls.model_fields)
        ]
        return (init_settings, env_settings, *weaker)


def load() -> Settings:
    """Read all sources. Raises InvalidSetting, naming the variable or key and what it takes."""
    refuse_unknown(os.environ, Settings.model_fields)
    try:
        return Settings()
    except tuple(TRANSLATION) as error:
        raise _translated(error) from None


def _translated(error: Exception) -> errors.PollerError:
    """Names the field and what it takes; never with the value."""
    kind = next(TRANSLATION[base] for base in type(error).__mro__ if base in TRANSLATION)
    if isinstance(error, pydantic.ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = str(first["loc"][0]) if first["loc"] else "settings"
        origin = origins(os.environ).get(field, "default")
        text = f"{field} (from {origin}): {first['msg'].removeprefix('Value error, ')}"
        return kind(text, hint=_advice(field))
    if kind is errors.InvalidSetting:
        return kind(str(error), hint="`poller settings` lists what each one takes")
    return kind("the settings cannot be read", type(error).__name__, "this is a bug in poller")


def origins(environ: Mapping[str, str]) -> dict[str, str]:
    """Where each field's value comes from, in words."""
    return origins_of(environ, Settings.model_fields)


def rows(settings: BaseModel, environ: Mapping[str, str]) -> list[tuple[str, str, str, str]]:
    """(name, value, origin, description) of every setting; secrets are masked, URLs keep their host."""
    where = origins(environ)
    return [
        (name, _shown(getattr(settings, name)), where[name], field.description or "")
        for name, field in Settings.model_fields.items()
    ]


def _advice(field: str) -> str:
    """What it takes, and what it is for."""
    info = Settings.model_fields.get(field)
    if info is None:
        return "`poller settings` lists what each one takes"
    takes = _takes(info)
    return f"{field} takes {takes}. {info.description}" if takes else f"{field}: {info.description}"


def _takes(info: FieldInfo) -> str:
    """In words, of those whose type and bounds say it; of others their description does."""
    kinds = set(get_args(info.annotation)) or {info.annotation}
    if get_origin(info.annotation) is Literal:
        return " or ".join(get_args(info.annotation))
    noun = next((word for kind, word in _NOUNS.items() if kind in kinds), "")
    words = {"gt": "above", "ge": "from", "le": "to"}
    bounds = [
        f"{words[n]} {getattr(each, n):.10g}"
        for each in info.metadata
        for n in words
        if hasattr(each, n)
    ]
    such = "" if info.default is None or noun == _NOUNS[bool] else f", such as {info.default}"
    return " ".join([noun, *bounds]) + such if noun else ""


def _shown(value: Any) -> str:
    if isinstance(value, SecretStr):
        return masking.masked(value.get_secret_value())
    if isinstance(value, tuple):
        return ",".join(value)
    return "" if value is None else str(value)
