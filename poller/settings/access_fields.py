"""Settings of log-ins: TLS, sessions, trusted proxies, OpenID Connect."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, ValidationInfo, field_validator

from poller import errors
from poller.domain.access import group_roles
from poller.settings.word_lists import Words, split_at_commas


class AccessFields(BaseModel):
    """The rights to the page and the API, and how a request shows them."""

    web_tls_cert: str = Field(
        "", description="File with the certificate chain of the page, in PEM. Not set: plain HTTP."
    )
    web_tls_key: str = Field("", description="File with the private key of web_tls_cert, in PEM.")
    session_hours: float = Field(
        168.0, gt=0, le=8760, description="A browser logs in again after this many hours."
    )
    session_idle_hours: float = Field(
        12.0, gt=0, le=8760, description="A login that is not used for this many hours ends."
    )
    trusted_proxies: Words = Field(
        (),
        description="Addresses and networks of proxies in front of the page. Only their "
        "X-Forwarded-For and X-Forwarded-Proto are believed.",
    )
    proxy_user_header: str = Field(
        "",
        description="Header in which trusted_proxies name the user, such as X-Forwarded-User. The "
        "proxy must remove it from what its clients send. Not set: no such login.",
    )
    proxy_groups_header: str = Field(
        "X-Forwarded-Groups",
        description="Header in which trusted_proxies name the groups of the user, with commas.",
    )
    oidc_issuer: str = Field(
        "", description="URL of an OpenID Connect provider that logs people in. Not set: none."
    )
    oidc_client_id: str = Field("", description="Client id of poller at oidc_issuer.")
    oidc_client_secret: SecretStr | None = Field(
        None, description="Client secret of poller at oidc_issuer."
    )
    oidc_groups_claim: str = Field(
        "groups", description="Claim in which oidc_issuer names the groups of a user."
    )
    group_roles: Words = Field(
        group_roles.DEFAULT,
        description="Role of each group of OpenID Connect and of a proxy, as group=role. The "
        "highest one counts, * is everybody, and a user without one is refused.",
    )

    @field_validator("trusted_proxies", "group_roles", mode="before")
    @classmethod
    def _split_words(cls, value: Any) -> Any:
        """Turn the text of an environment variable into words."""
        return split_at_commas(value)

    @field_validator("trusted_proxies", mode="after")
    @classmethod
    def _check_proxies(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse words that are neither an address nor a network."""
        for word in words:
            try:
                network = ipaddress.ip_network(word, strict=False)
            except ValueError:
                raise ValueError(f'"{word}" is neither an address nor a network') from None
            if network.prefixlen == 0:
                raise ValueError(f'"{word}" is every address: anybody could name any user')
        return words

    @field_validator("proxy_user_header", mode="after")
    @classmethod
    def _check_header(cls, value: str, info: ValidationInfo) -> str:
        """Refuse a header that nobody may set."""
        if value and not info.data.get("trusted_proxies"):
            raise ValueError("it needs trusted_proxies: the addresses that may set the header")
        return value

    @field_validator("group_roles", mode="after")
    @classmethod
    def _check_roles(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse words that name no role."""
        try:
            group_roles.parse(words)
        except errors.InvalidSetting as error:
            raise ValueError(f"{error.message}; {error.hint}") from None
        return words

    @field_validator("oidc_issuer", mode="after")
    @classmethod
    def _check_issuer(cls, value: str) -> str:
        """Refuse a provider whose answers anybody on the way could change."""
        if not value:
            return value
        parts = urlsplit(value)
        is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
            raise ValueError("it must be an https:// URL")
        return value

    @field_validator("oidc_client_secret", mode="after")
    @classmethod
    def _check_complete(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        """Refuse an issuer without a client."""
        is_complete = value and value.get_secret_value() and info.data.get("oidc_client_id")
        if info.data.get("oidc_issuer") and not is_complete:
            raise ValueError("oidc_issuer needs oidc_client_id and oidc_client_secret")
        return value
