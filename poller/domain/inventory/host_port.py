"""Addresses as people write them: `192.0.2.1`, `sw1:1161`, `2001:db8::1`, `[2001:db8::1]:161`.

A bare IPv6 address has no port: its last group would look like one. Brackets keep both apart.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, NamedTuple

from poller import errors
from poller.domain.inventory import naming

LONGEST_HOST = 253
HIGHEST_PORT = 65_535
_EXAMPLES = "for example 192.0.2.1, sw1.example.net:1161 or [2001:db8::1]:161"
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_PORT = re.compile(r"[0-9]{1,5}")
_ZONE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)


class HostPort(NamedTuple):
    """An IP address or a host name, and the port if one is given."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        """The form that `parse` reads back."""
        if self.port is None:
            return self.host
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse(text: Any, field: str = "address") -> HostPort:
    """Return host and port of an address. Raises InvalidInput, which names the field."""
    if not isinstance(text, str) or not text:
        raise errors.InvalidInput(f"the {field} is empty", hint=_EXAMPLES)
    found = _parts(text)
    if isinstance(found, HostPort):
        return found
    shown = naming.printable(text[: LONGEST_HOST + 1])
    raise errors.InvalidInput(
        f'the {field} "{shown}" is not an IP address or host name',
        cause=found,
        hint=_EXAMPLES,
    )


def parse_snmp_target(text: Any) -> HostPort:
    """Return host and port of a scrape's `target`, which may begin with `udp://`.

    Raises InvalidInput.
    """
    scheme = _SCHEME.fullmatch(text) if isinstance(text, str) else None
    if scheme is None:
        return parse(text, "target")
    if scheme[1].lower() != "udp":
        raise errors.InvalidInput(
            f'the target "{naming.printable(text)}" has the transport {scheme[1]}',
            cause="SNMP is polled over UDP only",
            hint="leave the transport out, or write udp://",
        )
    return parse(scheme[2], "target")


def _parts(text: str) -> HostPort | str:
    """Return host and port, or the fault of the text."""
    if _is_ip(text):
        return HostPort(text)
    if "://" in text:
        return "it has a scheme; give the host only"
    if text.startswith("["):
        return _bracketed(text)
    host, colon, port = text.partition(":")
    if ":" in port:
        return "an IPv6 address with a port is written [2001:db8::1]:161"
    fault = _host_fault(host) or (_port_fault(port) if colon else "")
    return fault or HostPort(host.rstrip("."), int(port) if colon else None)


def _bracketed(text: str) -> HostPort | str:
    inner, bracket, rest = text[1:].partition("]")
    if not bracket:
        return "the closing bracket is missing"
    if ":" not in inner or not _is_ip(inner):
        return "brackets enclose an IPv6 address"
    if not rest:
        return HostPort(inner)
    if not rest.startswith(":"):
        return "only :PORT may follow the closing bracket"
    return _port_fault(rest[1:]) or HostPort(inner, int(rest[1:]))


def _port_fault(text: str) -> str:
    """Return the fault of a port, empty if the port is valid."""
    if not text:
        return "the port after the colon is missing"
    if _PORT.fullmatch(text) and 1 <= int(text) <= HIGHEST_PORT:
        return ""
    return f"a port is a number from 1 to {HIGHEST_PORT}"


def _is_ip(text: str) -> bool:
    address, percent, zone = text.partition("%")
    if percent and not _ZONE.fullmatch(zone):
        return False
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return parsed.version == 6 or not percent


def _host_fault(text: str) -> str:
    """Return the fault of a host name, empty if the name is valid."""
    if _is_ip(text):
        return ""
    labels = text.rstrip(".").split(".")
    if len(text) > LONGEST_HOST or not all(_LABEL.fullmatch(label) for label in labels):
        return "host names have letters, digits and hyphens between dots"
    if labels[-1].isdigit():
        return "it looks like an IPv4 address, but is none"
    return ""
