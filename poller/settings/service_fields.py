"""Settings of the page, Flower, the trap listener, metrics, logs and Sentry reports."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, field_validator

from poller.settings import masking
from poller.settings.word_lists import Words, split_at_commas


class WebFields(BaseModel):
    """Where the page and Flower listen."""

    web_bind: str = Field("127.0.0.1", description="Address the page listens on.")
    web_port: int | None = Field(
        None, ge=0, le=65535, description="Port of the page. Not set: 8080, or a free one."
    )
    web_url: str = Field(
        "", description="URL of the page for people. Not set: that of a running `poller up`."
    )
    web_hosts: Words = Field(
        (),
        description="Names under which browsers may reach the page. IP addresses, localhost and "
        "the host of web_url need no entry.",
    )
    web_streams: int = Field(
        200,
        ge=1,
        le=10_000,
        description="Pages that are kept up to date at the same time; further ones get 503.",
    )
    flower_bind: str = Field("127.0.0.1", description="Address Flower listens on.")
    flower_port: int | None = Field(
        None, ge=0, le=65535, description="Port of Flower. Not set: 5555, or a free one."
    )
    flower_basic_auth: SecretStr | None = Field(
        None, description="user:password of Flower; required beyond loopback."
    )
    flower_hosts: Words = Field(
        (),
        description="Names under which browsers may reach Flower. IP addresses, localhost and the "
        "host of flower_url need no entry.",
    )
    flower_url: str = Field(
        "",
        description="URL of Flower, linked from the page. "
        "Not set: that of a running `poller up`, else no link.",
    )

    @field_validator("web_hosts", "flower_hosts", mode="before")
    @classmethod
    def _split_hosts(cls, value: Any) -> Any:
        """Turn the text of an environment variable into words."""
        return split_at_commas(value)


class ScrapeFields(BaseModel):
    """Scrapes of `/snmp` and `/probe`."""

    scrape_networks: Words = Field(
        (),
        description="Networks whose addresses /snmp and /probe may poll although no device has "
        "them, such as 10.0.0.0/8. Not set: devices of the inventory only.",
    )
    scrape_polls: int = Field(
        64,
        ge=1,
        le=10_000,
        description="Polls for scrapes that the cluster, and each worker of it, runs at the same "
        "time, shared equally by the scrapers; further scrapes get 503.",
    )
    scrape_keep_s: float = Field(
        5.0,
        ge=0,
        le=300,
        description="How long the result of a poll for a scrape also answers other scrapes.",
    )
    snmp_config: Words = Field(
        (),
        description="Files of modules in snmp_exporter's format for /snmp: paths or patterns. "
        "Workers need a copy. Not set: built-in modules, and those of each target.",
    )

    @field_validator("scrape_networks", "snmp_config", mode="before")
    @classmethod
    def _split_scrape_words(cls, value: Any) -> Any:
        """Turn the text of an environment variable into words."""
        return split_at_commas(value)

    @field_validator("scrape_networks", mode="after")
    @classmethod
    def _check_scrape_networks(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse a text that is no network."""
        for word in words:
            try:
                ipaddress.ip_network(word)
            except ValueError:
                raise ValueError(f'"{word}" is no network; write 10.0.0.0/8') from None
        return words


class RuleFields(BaseModel):
    """The files of alert rules."""

    rule_files: Words = Field(
        (),
        description="Files of alert rules: paths or patterns, relative to the folder that the "
        "leader runs in. The leader applies a changed file within 30 s.",
    )

    @field_validator("rule_files", mode="before")
    @classmethod
    def _split_rule_files(cls, value: Any) -> Any:
        """Turn the text of an environment variable into words."""
        return split_at_commas(value)


class TrapFields(BaseModel):
    """Where `poller traps` listens, and how often a trap triggers a poll."""

    trap_bind: str = Field(
        "127.0.0.1",
        description="Address `poller traps` listens on; 0.0.0.0 or :: receives from the network.",
    )
    trap_port: int = Field(
        1162,
        ge=0,
        le=65535,
        description="UDP port of `poller traps`. Devices send to 162, which needs privileges or a "
        "redirect.",
    )
    trap_gap_s: float = Field(
        10.0,
        ge=0,
        le=3600,
        description="Shortest time between two polls of one device that traps trigger.",
    )
    trap_polls_per_s: float = Field(
        20.0,
        gt=0,
        le=10_000,
        description="Devices that one listener polls per second because of traps; others wait.",
    )
    trap_listener: bool = Field(False, description="True: `poller up` also runs `poller traps`.")


class MetricsFields(BaseModel):
    """Where the metrics of the processes of a host are."""

    metrics_port: int | None = Field(
        None,
        ge=0,
        le=65535,
        description="Port where one process of a host serves the metrics of all its poller "
        "processes. Not set: they are at /metrics of the page.",
    )
    metrics_bind: str = Field("127.0.0.1", description="Address of metrics_port.")
    metrics_token: SecretStr | None = Field(
        None, description="Bearer token that a scrape of metrics_port must show."
    )
    metrics_insecure: bool = Field(
        False,
        description="True: metrics_port may listen beyond loopback without metrics_token.",
    )
    metrics_file: Path | None = Field(
        None,
        description="File for node_exporter's textfile collector with the metrics of a host, "
        "replaced every 5 s. Its name must end in .prom.",
    )

    @field_validator("metrics_file", mode="after")
    @classmethod
    def _check_file(cls, value: Path | None) -> Path | None:
        """Refuse a name that node_exporter does not read; an empty one counts as not set."""
        if value is None or value == Path():
            return None
        if value.suffix != ".prom":
            raise ValueError("its name must end in .prom, or node_exporter does not read it")
        return value.expanduser()

    @field_validator("metrics_token", mode="after")
    @classmethod
    def _check_token(cls, value: SecretStr | None) -> SecretStr | None:
        """Refuse a token that no header can carry; an empty one counts as not set."""
        text = value.get_secret_value() if value else ""
        if not text:
            return None
        if not text.isascii() or not text.isprintable() or " " in text:
            raise ValueError("it must be printable ASCII without spaces")
        return value


class TraceFields(BaseModel):
    """Traces of polls for OpenTelemetry."""

    trace_endpoint: str = Field(
        "",
        description="URL that receives traces by OTLP/HTTP, such as "
        "http://127.0.0.1:4318/v1/traces; needs poller[otel]. Not set: no traces.",
    )
    trace_ratio: float = Field(
        0.01, ge=0, le=1, description="Share of the batches that the leader has traced."
    )

    @field_validator("trace_endpoint", mode="after")
    @classmethod
    def _check_endpoint(cls, value: str) -> str:
        """Refuse a text that is no URL, and one with a login, which would be in logs."""
        if not value:
            return value
        url = urlsplit(value)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError("it must look like http://HOST:4318/v1/traces")
        if url.username or url.password:
            raise ValueError("a login belongs into OTEL_EXPORTER_OTLP_HEADERS")
        return value


class ReportFields(BaseModel):
    """Logs, and reports of bugs in poller to Sentry."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Lowest level that is logged."
    )
    log_format: Literal["text", "json"] = Field(
        "text", description="One line of text, or one JSON object, per log record."
    )
    sentry_dsn: SecretStr | None = Field(
        None,
        description="Sentry project that receives bugs and store failures; needs poller[sentry]. "
        "Not set: no reports.",
    )
    sentry_environment: str = Field(
        "production",
        min_length=1,
        max_length=64,
        description="Name of this installation in Sentry reports.",
    )
    sentry_per_minute: int = Field(
        20,
        ge=1,
        le=600,
        description="Most Sentry reports of one process per minute; of one kind at most one.",
    )

    @field_validator("sentry_dsn", mode="after")
    @classmethod
    def _check_dsn(cls, value: SecretStr | None) -> SecretStr | None:
        """Refuse a text of another form; an empty one counts as not set."""
        text = value.get_secret_value() if value else ""
        if not text:
            return None
        if not masking.DSN.fullmatch(text):
            raise ValueError("it must look like https://KEY@HOST/NUMBER")
        return value
