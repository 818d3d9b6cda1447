"""The options of a `nats` sink: servers, subject, stream, login."""

from __future__ import annotations

from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from poller.sinks.bus import poll_messages
from poller.sinks.tls_options import OptionalFile, TlsOptions, read_secret, readable

_SCHEMES = ("nats", "tls")


def _server(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in _SCHEMES or not parts.hostname or parts.port == 0:
        raise ValueError("a server is nats://host:4222 or tls://host:4222")
    if parts.username is not None or parts.password is not None:
        raise ValueError("no user and password in the address: give username and password_file")
    return text


class NatsOptions(TlsOptions):
    """The options of a `nats` sink."""

    servers: tuple[Annotated[str, AfterValidator(_server)], ...] = Field(
        ("nats://127.0.0.1:4222",), min_length=1, description="Servers of one cluster."
    )
    subject: Annotated[str, AfterValidator(poll_messages.check_template)] = Field(
        "poller.readings.{site}.{device}.{collector}",
        description="Subject of a poll; {site}, {device}, {target}, {collector}, {id} are filled.",
    )
    stream: str = Field(
        "poller", pattern=r"^[A-Za-z0-9_-]+$", description="Stream that `create_stream` creates."
    )
    create_stream: bool = Field(False, description="Create the stream if it does not exist.")
    duplicate_window_s: int = Field(
        600, ge=1, le=86_400, description="Time within which a created stream tells repetitions."
    )
    max_age_s: int = Field(
        86_400, ge=60, description="Time for which a created stream stores a message."
    )
    replicas: int = Field(1, ge=1, le=5, description="Copies of a created stream in a cluster.")
    username: str = Field("", description="User of the server, with `password_file`.")
    password_file: OptionalFile = Field(None, description="File with the password of `username`.")
    bearer_token_file: OptionalFile = Field(None, description="File with the server's token.")
    credentials_file: OptionalFile = Field(None, description="File .creds of a user.")
    nkey_file: OptionalFile = Field(None, description="File with the seed of an nkey.")
    timeout_s: float = Field(5.0, ge=0.1, le=60, description="Time until all polls have acks.")

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        if bool(self.username) != (self.password_file is not None):
            raise ValueError("username and password_file belong together")
        ways = (self.password_file, self.bearer_token_file, self.credentials_file, self.nkey_file)
        if sum(way is not None for way in ways) > 1:
            raise ValueError(
                "give one of password_file, bearer_token_file, credentials_file, nkey_file"
            )
        return self

    def login(self, sink: str) -> dict[str, Any]:
        """Return the arguments of nats-py's connect. Raises InvalidSetting for a bad file."""
        login: dict[str, Any] = {}
        if self.password_file:
            login["user"] = self.username
            login["password"] = read_secret(sink, "password_file", self.password_file)
        if self.bearer_token_file:
            login["token"] = read_secret(sink, "bearer_token_file", self.bearer_token_file)
        if self.nkey_file:
            login["nkeys_seed_str"] = read_secret(sink, "nkey_file", self.nkey_file)
        if self.credentials_file:
            readable(sink, "credentials_file", self.credentials_file)
            login["user_credentials"] = str(self.credentials_file)
        is_secured = any(server.startswith("tls:") for server in self.servers)
        if is_secured or self.ca_file or self.cert_file or self.insecure:
            login["tls"] = self.context(sink)
        return login
