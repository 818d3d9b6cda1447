"""The options of an http target. Every validation error states what the option takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from poller.collectors import api, tls
from poller.collectors.http import json_paths, urls
from poller.collectors.http.urls import PORTS, Url
from poller.collectors.tls import Trust
from poller.domain import expressions

_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_STATUS_RANGE = re.compile(r"([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?")
_PLACE = ("scheme", "port", "path")


class HttpOptions(api.Options):
    url: Annotated[
        str,
        Field(
            description="URL to request; without it scheme, port and path at the device's address"
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
            description=(
                "Server name if it is not the address: Host header, SNI, the certificate's name"
            )
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
        int, Field(ge=0, le=10, description="Maximum of redirections to follow, to any server")
    ] = 0
    max_body: Annotated[
        int, Field(ge=0, le=16_777_216, description="Maximum of bytes of the body to read")
    ] = 1_048_576
    ca_file: tls.CaFile = ""
    fingerprint: tls.Fingerprint = ""
    insecure: Annotated[bool, Field(description="With https: accept any certificate")] = False
    auth: Annotated[
        Literal["none", "basic", "bearer", "header"],
        Field(description="Login: basic with a login, bearer or header with a token"),
    ] = "none"
    header: Annotated[
        str, Field(description="The header that carries the token, with auth=header")
    ] = "X-API-Key"

    def target_url(self, address: str) -> Url:
        """Return the URL to request. Raises ValueError if the address is no host name."""
        if self.url:
            return urls.parse(self.url)
        return Url(
            scheme=self.scheme,
            host=urls.host_name(address),
            port=self.port or PORTS[self.scheme],
            target=urls.request_target(self.path),
        )

    @property
    def trust(self) -> Trust:
        return Trust(self.ca_file, self.fingerprint, self.insecure)

    @property
    def reads_body(self) -> bool:
        return bool(self.match or self.values)

    def expects(self, status: int) -> bool:
        """Return whether `expect` contains a status code."""
        return any(status in codes for codes in status_ranges(self.expect))

    @field_validator("url")
    @classmethod
    def _check_url(cls, text: str) -> str:
        if text:
            urls.parse(text)
        return text

    @field_validator("path")
    @classmethod
    def _check_path(cls, text: str) -> str:
        urls.request_target(text)
        return text

    @field_validator("host")
    @classmethod
    def _check_host(cls, text: str) -> str:
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
    def _check_statuses(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        if not status_ranges(words):
            raise ValueError("name at least one status code")
        return words

    @field_validator("match")
    @classmethod
    def _check_expression(cls, text: str) -> str:
        if text:
            expression(text)
        return text

    @field_validator("values", mode="before")
    @classmethod
    def _split_values(cls, value: Any) -> Any:
        """Accept `load=nodes[0].load,free=memory.free` from a command line."""
        if not isinstance(value, str):
            return value
        paths = {}
        for word in value.split(","):
            if not word.strip():
                continue
            metric, equals, path = word.partition("=")
            if not equals:
                raise ValueError("write metric=path, several separated by commas")
            paths[metric.strip()] = path.strip()
        return paths

    @field_validator("values")
    @classmethod
    def _check_values(cls, values: dict[str, str]) -> dict[str, str]:
        for metric, path in values.items():
            if not _METRIC.fullmatch(metric):
                raise ValueError(f'"{metric}" is no name of a metric; it has letters, digits and _')
            if metric.startswith("http_"):
                raise ValueError(
                    f'"{metric}": names that begin with http_ are this collector\'s own'
                )
            json_paths.parse(path)
        return values

    @field_validator("header")
    @classmethod
    def _check_header(cls, name: str) -> str:
        if not _HEADER.fullmatch(name):
            raise ValueError("a name of a header has letters, digits and -")
        return name

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        defaults = {name: field.default for name, field in HttpOptions.model_fields.items()}
        place = [name for name in _PLACE if getattr(self, name) != defaults[name]]
        if self.url and place:
            raise ValueError(f"url says it all: leave out {', '.join(place)}")

        trust = tls.trust_options(self)
        is_tls = self.url.startswith("https:") if self.url else self.scheme == "https"
        if trust and not self.redirects and not is_tls:
            raise ValueError(f"{trust[0]} needs https")
        if self.reads_body and (self.method == "HEAD" or not self.max_body):
            raise ValueError("match and values need a body: method GET, and a max_body above 0")
        if self.header != defaults["header"] and self.auth != "header":
            raise ValueError("header needs auth=header")
        return self


@lru_cache(maxsize=256)
def status_ranges(words: Sequence[str]) -> tuple[range, ...]:
    """Return the status codes of words such as `200` and `200-399`. Raises ValueError."""
    return tuple(_status_range(word) for word in words)


def _status_range(word: str) -> range:
    match = _STATUS_RANGE.fullmatch(word)
    if not match:
        raise ValueError(f'"{word}" is no status code; write 200, or 200-299')
    first = int(match[1])
    last = int(match[2] or match[1])
    if last < first:
        raise ValueError(f'"{word}" is empty: the first code is above the second')
    return range(first, last + 1)


@lru_cache(maxsize=1024)
def expression(text: str) -> Any:
    """Compile an RE2 expression, whose search time is linear in the body. Raises ValueError."""
    try:
        return expressions.compiled(text)
    except ValueError as error:
        raise ValueError(f"it is no regular expression: {error}") from None
