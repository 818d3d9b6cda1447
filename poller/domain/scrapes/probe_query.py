"""The parameters of `/probe`: modules of blackbox_exporter and mktxp, on our collectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from poller import errors
from poller.domain.inventory import host_port, naming
from poller.domain.inventory.host_port import HostPort
from poller.domain.scrapes.scrape_query import Pairs, values_of

DEFAULT_MODULE = "http_2xx"


@dataclass(frozen=True, slots=True)
class ProbeModule:
    """A collector with options. A port of the target is an option, unless a URL has it."""

    collector: str
    options: Mapping[str, Any] = field(default_factory=dict)
    takes_url: bool = False
    needs_port: bool = False


MODULES: Mapping[str, ProbeModule] = {
    "icmp": ProbeModule("ping", {"method": "icmp"}),
    "ping": ProbeModule("ping"),
    "tcp_connect": ProbeModule("ping", {"method": "tcp", "count": 1}, needs_port=True),
    "http": ProbeModule("http", takes_url=True),
    # No redirection is followed: a server could lead a probe to any address.
    "http_2xx": ProbeModule("http", {"expect": "200-299"}, takes_url=True),
    "routeros": ProbeModule("routeros"),
}


@dataclass(frozen=True, slots=True)
class ProbeQuery:
    """One probe: the host that is asked, and the collector with its options."""

    module: str
    target: str
    host: HostPort
    collector: str
    options: Mapping[str, Any]
    auth: str = ""
    is_plain: bool = True  # the target is only a host: a target of the inventory may answer


def parse_probe(pairs: Pairs) -> ProbeQuery:
    """Return the probe of these parameters. Raises InvalidInput, as blackbox_exporter refuses."""
    name = _first(pairs, "module") or DEFAULT_MODULE
    module = MODULES.get(name)
    if module is None:
        raise errors.InvalidInput(
            f'Unknown module "{naming.printable(name[:100])}"',
            hint="there are: " + ", ".join(MODULES),
        )
    target = _first(pairs, "target")
    if not target:
        raise errors.InvalidInput("Target parameter is missing")
    if len(target) > 2000 or not target.isprintable():
        raise errors.InvalidInput("Target parameter is too long, or has unprintable characters")
    auth = _first(pairs, "auth")
    if module.takes_url and "://" in target:
        host, options = _parts_of_url(target)
        options = {**module.options, **options}
        return ProbeQuery(name, target, host, module.collector, options, auth, is_plain=False)

    host = host_port.parse(target, "target")
    if module.needs_port and host.port is None:
        raise errors.InvalidInput(f"module {name} needs a target with a port, HOST:PORT")
    options = dict(module.options)
    if host.port is not None and "method" in options and options["method"] == "icmp":
        raise errors.InvalidInput(f"module {name} takes a target without a port")
    if host.port is not None:
        options["port"] = host.port
    is_plain = host.port is None
    return ProbeQuery(name, target, host, module.collector, options, auth, is_plain)


def _parts_of_url(target: str) -> tuple[HostPort, dict[str, Any]]:
    """Return the host, and the options of the http collector for the rest of the URL.

    The host is no part of the options: the poll goes to the address that was checked.
    """
    try:
        url = urlsplit(target)
        name, port, user = url.hostname, url.port, url.username or url.password
    except ValueError as error:
        raise errors.InvalidInput("Target parameter is not a URL", str(error)) from None
    if url.scheme not in ("http", "https") or not name:
        raise errors.InvalidInput("Target parameter is not a URL of http or https")
    if user:
        raise errors.InvalidInput(
            "Target parameter has a login", "addresses are kept in logs", "name a credential: auth="
        )
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    options: dict[str, Any] = {"scheme": url.scheme, "path": path}
    if port is not None:
        options["port"] = port
    host = host_port.parse(f"[{name}]" if ":" in name else name, "target")
    return HostPort(host.host, port), options


def _first(pairs: Pairs, name: str) -> str:
    values = values_of(pairs, name)
    if len(values) > 1:
        raise errors.InvalidInput(f"'{name}' parameter must only be specified once")
    return values[0] if values else ""
