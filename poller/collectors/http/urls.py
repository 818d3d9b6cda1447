"""Parses and checks URLs. A URL is printed without its query, which may hold a token."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import quote, urljoin, urlsplit

PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_MAX_LENGTH = 8000
#: Characters between two dots of a host's name.
LONGEST_LABEL = 63


class Url(NamedTuple):
    scheme: str
    host: str
    port: int
    target: str  # path and query, as they are sent

    @property
    def origin(self) -> tuple[str, str, int]:
        """The server of the URL. A secret is sent to one origin only."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """The `Host` header; a default port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        path = self.target.partition("?")[0]
        return f"{self.scheme}://{self.authority}{path}"


def parse(text: str) -> Url:
    """Parse a URL. Raises ValueError, which repeats nothing of the text."""
    parts = urlsplit(text)
    if parts.scheme not in PORTS:
        raise ValueError("a URL begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "no user and password in a URL: use auth=basic and a credential of kind login"
        )
    if not parts.hostname:
        raise ValueError("the URL names no host")
    port = parts.port  # raises ValueError beyond 65535
    if port is None:
        port = PORTS[parts.scheme]
    if not port:
        raise ValueError("port 0 is none")
    query = f"?{parts.query}" if parts.query else ""
    path = parts.path or "/"
    return Url(parts.scheme, host_name(parts.hostname), port, request_target(path + query))


def join(base: Url, location: str) -> Url:
    """Return the URL a redirection leads to. Raises ValueError."""
    if len(location) > _MAX_LENGTH:
        raise ValueError("it is too long")
    return parse(urljoin(f"{base.scheme}://{base.authority}{base.target}", location))


def request_target(text: str) -> str:
    """Return path and query as they are sent, in ASCII. Raises ValueError."""
    if not text.startswith("/"):
        raise ValueError("a path begins with /")
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"a path has at most {_MAX_LENGTH} characters")
    return quote(text, safe="/%?=&:;,@!$'()*+~[]-._|{}")


def host_name(text: str) -> str:
    """Return a host name or IP address as it is sent. Raises ValueError."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        pass
    try:
        name = text if text.isascii() else text.encode("idna").decode()
    except UnicodeError:
        name = ""
    labels = name.removesuffix(".").split(".")
    if not _HOST.fullmatch(name) or not all(0 < len(label) <= LONGEST_LABEL for label in labels):
        raise ValueError("that is no name of a host")
    return name.lower()
