"""The options of an http target. A wrong one says what it takes."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

import re2
from pydantic import Field, field_validator, model_validator

from poller.collectors import api, fingerprints
from poller.collectors.http import json_paths, status_ranges, urls
from poller.collectors.http.http_tls import Trust
from poller.collectors.http.urls import PORTS, Url

_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_PLACE = ("scheme", "port", "path")
_TRUST = ("ca_file", "fingerprint", "insecure")
_QUIET = re2.Options()
_QUIET.log_errors = False


class HttpOptions(api.Options):
    url: Annotated[
        str,
        Field(
            description="What to ask for, in full; without it scheme, port and path, at the device's address"
        ),
    ] = ""
    scheme: Annotated[Literal["http", "https"], Field(description="Plain, or TLS")] = "http"
    port: Annotated[
        int | None, Field(ge=1, le=65535, description="TCP port; 80, or 443 with https")
    ] = None
    path: Annotated[str, Field(description="Path, and query if any")] = "/"
    host: Annotated[
        str,
        Field(
            description="Name to ask for when the address is not it: Host header, SNI, the certificate's name"
        ),
    ] = ""
    method: Annotated[Literal["GET", "HEAD"], Field(description="HEAD: without a body")] = "GET"
    expect: Annotated[
        tuple[str, ...],
        Field(description="Status codes that are fine: 200, or ranges such as 200-399; a list"),
    ] = ("200-399",)
    match: Annotated[
        str, Field(description="Regular expression (RE2) that must be found in the body")
    ] = ""
    values: Annotated[
        dict[str, str],
        Field(
            default_factory=dict,
            description="Numbers of a JSON body: metric=path, as in load=nodes[0].load",
        ),
    ]
    redirects: Annotated[
        int, Field(ge=0, le=10, description="Redirections to follow, wherever they lead")
    ] = 0
    max_body: Annotated[
        int, Field(ge=0, le=16_777_216, description="Bytes of the body to read, no more")
    ] = 1_048_576
    ca_file: Annotated[
        str, Field(description="PEM file, on the worker, of the CA that signed the certificate")
    ] = ""
    fingerprint: Annotated[
        str,
        Field(
            description="SHA-256 of the certificate: this one is trusted, whoever signed it, and no other"
        ),
    ] = ""
    insecure: Annotated[bool, Field(description="With https: accept any certificate")] = False
    auth: Annotated[
        Literal["none", "basic", "bearer", "header"],
        Field(
            description="How to log in: basic with a login, bearer or a header of your own with a token"
        ),
    ] = "none"
    header: Annotated[
        str, Field(description="The header that carries the token, with auth=header")
    ] = "X-API-Key"

    def where(self, address: str) -> Url:
        """Raises ValueError when the device's address is no name of a host."""
        if self.url:
            return urls.parse(self.url)
        return Url(
            self.scheme,
            urls.host_name(address),
            self.port or PORTS[self.scheme],
            urls.target(self.path),
        )

    @property
    def trust(self) -> Trust:
        return Trust(self.ca_file, self.fingerprint, self.insecure)

    @property
    def reads_body(self) -> bool:
        return bool(self.match or self.values)

    @field_validator("url")
    @classmethod
    def _is_url(cls, text: str) -> str:
        if text:
            urls.parse(text)
        return text

    @field_validator("path")
    @classmethod
    def _is_path(cls, text: str) -> str:
        urls.target(text)
        return text

    @field_validator("host")
    @classmethod
    def _is_host(cls, text: str) -> str:
        return urls.host_name(text) if text else ""

    @field_validator("expect", mode="before")
    @classmethod
    def _split_statuses(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return (str(value),)
        if isinstance(value, str):
            return tuple(word.strip() for word in value.split(",") if word.strip())
        if isinstance(value, list | tuple):
            return tuple(str(word) if type(word) is int else word for word in value)
        return value

    @field_validator("expect")
    @classmethod
    def _are_statuses(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        if not status_ranges.ranges(words):
            raise ValueError("name at least one status code")
        return words

    @field_validator("match")
    @classmethod
    def _is_expression(cls, text: str) -> str:
        if text:
            expression(text)
        return text

    @field_validator("values", mode="before")
    @classmethod
    def _split_values(cls, value: Any) -> Any:
        """`load=nodes[0].load,free=memory.free` as one types it."""
        if not isinstance(value, str):
            return value
        pairs = [word.partition("=") for word in value.split(",") if word.strip()]
        if not all(equals for _, equals, _ in pairs):
            raise ValueError("write metric=path, several separated by commas")
        return {metric.strip(): path.strip() for metric, _, path in pairs}

    @field_validator("values")
    @classmethod
    def _are_values(cls, values: dict[str, str]) -> dict[str, str]:
        for metric, path in values.items():
            if not _METRIC.fullmatch(metric):
                raise ValueError(f'"{metric}" is no name of a metric; it has letters, digits and _')
            if metric.startswith("http_"):
                raise ValueError(
                    f'"{metric}": names that begin with http_ are this collector\'s own'
                )
            json_paths.parse(path)
        return values

    @field_validator("ca_file")
    @classmethod
    def _whole_path(cls, path: str) -> str:
        """A worker has another current directory than whoever adds a target."""
        return os.path.abspath(os.path.expanduser(path)) if path else ""

    @field_validator("fingerprint")
    @classmethod
    def _is_sha256(cls, text: str) -> str:
        return fingerprints.parse(text) if text else ""

    @field_validator("header")
    @classmethod
    def _is_header(cls, name: str) -> str:
        if not _HEADER.fullmatch(name):
            raise ValueError("a name of a header has letters, digits and -")
        return name

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        given = [
            name for name in _PLACE if getattr(self, name) != HttpOptions.model_fields[name].default
        ]
        if self.url and given:
            raise ValueError(f"url says it all: leave {', '.join(given)} away")
        self._check_trust([name for name in _TRUST if getattr(self, name)])
        if self.reads_body and (self.method == "HEAD" or not self.max_body):
            raise ValueError("match and values need a body: method GET, and a max_body above 0")
        if self.header != HttpOptions.model_fields["header"].default and self.auth != "header":
            raise ValueError("header needs auth=header")
        return self

    def _check_trust(self, given: list[str]) -> None:
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} contradict each other: give one")
        if given and not self.redirects and not self._is_tls:
            raise ValueError(f"{given[0]} needs https")

    @property
    def _is_tls(self) -> bool:
        return self.url.startswith("https:") if self.url else self.scheme == "https"


@lru_cache(maxsize=1024)
def expression(text: str) -> Any:
    """Compiled; RE2 needs time in proportion to the body, whatever the expression. Raises ValueError."""
    try:
        return re2.compile(text, _QUIET)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        said = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise ValueError(f"it is no regular expression: {said}") from None
