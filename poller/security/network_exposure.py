"""Refuses to open the page, Flower or the metrics to a network by mistake."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from poller import errors


@lru_cache(maxsize=64)
def is_loopback(bind: str) -> bool:
    """Whether only this machine reaches a server on this address. "" is every address."""
    try:
        return ipaddress.ip_address(bind).is_loopback
    except ValueError:
        return bind == "localhost"


def check_page(bind: str, has_login: bool) -> None:
    """Refuse a page beyond loopback that nobody can log in to. Raises InvalidSetting."""
    if not is_loopback(bind) and not has_login:
        raise errors.InvalidSetting(
            f"web_bind: {bind or 'every address'} can be reached from outside, "
            "and there is no user and no token",
            hint="poller user add NAME --role admin "
            "(or: poller token add NAME --scope read, or set POLLER_OIDC_ISSUER)",
        )


def has_flower_login(basic_auth: object, proxy_user_header: str | None) -> bool:
    """Whether Flower asks for a login: its own password, or that of a trusted proxy."""
    return basic_auth is not None or bool(proxy_user_header)


def check_flower(bind: str, has_login: bool) -> None:
    """Refuse Flower without a login beyond loopback: it can stop workers. Raises InvalidSetting."""
    if not is_loopback(bind) and not has_login:
        raise errors.InvalidSetting(
            f"flower_bind: {bind or 'every address'} can be reached from outside, "
            "and Flower has no password",
            hint="set POLLER_FLOWER_BASIC_AUTH=user:password (or ..._FILE), "
            "or bind it to 127.0.0.1",
        )


def check_metrics(bind: str, has_token: bool, insecure: bool) -> None:
    """Refuse metrics beyond loopback without a token. Raises InvalidSetting."""
    if not is_loopback(bind) and not has_token and not insecure:
        raise errors.InvalidSetting(
            f"metrics_bind: {bind or 'every address'} can be reached from outside, "
            "and metrics_token is not set",
            hint="set POLLER_METRICS_TOKEN (or ..._FILE), bind it to 127.0.0.1, "
            "or set POLLER_METRICS_INSECURE=true if the network may read it",
        )
