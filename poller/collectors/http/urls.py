"""URLs, taken apart and checked. Printed without their query: that is where people put tokens."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import quote, urljoin, urlsplit

PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_LONGEST = 8000


class Url(NamedTuple):
    scheme: str
    host: str
    port: int
    target: str  # path and query, as they are sent

    @property
    def origin(self) -> tuple[str, str, int]:
        """Who is asked: a secret goes to nobody else."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """The `Host` header: without the port where it goes without saying."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target.partition('?')[0]}"


def parse(text: str) -> Url:
    """Raises ValueError, which says what is wrong and repeats nothing."""
    parts = urlsplit(text)
    if parts.scheme not in PORTS:
        raise ValueError("a URL begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "no user and password in a URL: use auth=basic and a credential of kind login"
        )
    if not parts.hostname:
        raise ValueError("the URL names no host")
    port = (
        parts.port if parts.port is not None else PORTS[parts.scheme]
    )  # raises ValueError beyond 65535
    if not port:
        raise ValueError("port 0 is none")
    query = f"?{parts.query}" if parts.query else ""
    return Url(parts.scheme, host_name(parts.hostname), port, target((parts.path or "/") + query))


def joined(base: Url, location: str) -> Url:
    """Where a redirection leads. Raises ValueError."""
    if len(location) > _LONGEST:
        raise ValueError("it is too long")
    return parse(urljoin(f"{base.scheme}://{base.authority}{base.target}", location))


def target(text: str) -> str:
    """Path and query as they may be sent: what is not ASCII is percent-encoded. Raises ValueError."""
    if not text.startswith("/"):
        raise ValueError("a path begins with /")
    if len(text) > _LONGEST:
        raise ValueError(f"a path has at most {_LONGEST} characters")
    return quote(text, safe="/%?=&:;,@!$'()*+~[]-._|{}")


def host_name(text: str) -> str:
    """A name or an IP address, as it is sent. Raises ValueError."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        pass
    try:
        name = text if text.isascii() else text.encode("idna").decode()
    except UnicodeError:
        name = ""
    if not _HOST.fullmatch(name):
        raise ValueError("that is no name of a host")
    return name.lower()
