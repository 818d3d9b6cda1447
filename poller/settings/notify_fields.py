"""Settings of who is told of alerts: receivers, routes, and the dead man's switch."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, ValidationInfo, field_validator

from poller import errors
from poller.domain.alerts.telling import route_form
from poller.settings import sink_tables
from poller.settings.sink_tables import SinkTables

_RECEIVER_EXAMPLE = '{"ops": {"kind": "webhook", "url": "http://127.0.0.1:8000/alerts"}}'
_ROUTE_EXAMPLE = '{"all": {"receivers": ["ops"]}}'


class NotifyFields(BaseModel):
    """Receivers and routes of notices, and the dead man's switch."""

    receiver: SinkTables = Field(
        {},
        description="Who is told of alerts, a table [receiver.NAME] for each. Its kind is "
        "alertmanager, webhook, email, apprise or one of a plugin. In the environment JSON.",
    )
    route: SinkTables = Field(
        {},
        description="Which alerts are told to which receivers, a table [route.NAME] for each. "
        "An alert goes to every route that takes it. In the environment JSON.",
    )
    heartbeat_url: SecretStr | None = Field(
        None,
        description="URL that the leader requests while the platform works: a dead man's switch, "
        "so that its end is noticed elsewhere. Not set: none.",
    )
    heartbeat_s: float = Field(
        60.0, ge=5, le=3600, description="How often heartbeat_url is requested."
    )

    @field_validator("receiver", mode="before")
    @classmethod
    def _parse_receivers(cls, value: Any) -> Any:
        """Turn the JSON text of an environment variable into tables."""
        return sink_tables.parsed(value, _RECEIVER_EXAMPLE)

    @field_validator("route", mode="before")
    @classmethod
    def _parse_routes(cls, value: Any) -> Any:
        """Turn the JSON text of an environment variable into tables."""
        return sink_tables.parsed(value, _ROUTE_EXAMPLE)

    @field_validator("receiver", mode="after")
    @classmethod
    def _check_receivers(cls, tables: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Refuse tables with a bad name or with a secret in them."""
        sink_tables.check(tables, "receiver", "webhook")
        return tables

    @field_validator("route", mode="after")
    @classmethod
    def _check_routes(
        cls, tables: dict[str, dict[str, Any]], info: ValidationInfo
    ) -> dict[str, dict[str, Any]]:
        """Refuse a route with an option that is wrong, or with a receiver that does not exist."""
        sink_tables.check_names(tables, "route")
        receivers = info.data.get("receiver")
        if receivers is None:
            return tables  # the receivers are wrong, which is the error that is told
        try:
            route_form.read(tables, receivers)
        except errors.InvalidSetting as error:
            hint = f"; {error.hint}" if error.hint else ""
            raise ValueError(f"{error}{hint}") from None
        return tables

    @field_validator("heartbeat_url", mode="after")
    @classmethod
    def _check_heartbeat_url(cls, value: SecretStr | None) -> SecretStr | None:
        """Refuse what is no URL of HTTP. The text is a secret, so that no error repeats it."""
        if value is None or not value.get_secret_value():
            return None
        parts = urlsplit(value.get_secret_value())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("it is no URL that begins with http:// or https://")
        if parts.username is not None or parts.password is not None:
            raise ValueError("no user and password in this URL: the service gives one without")
        return value
