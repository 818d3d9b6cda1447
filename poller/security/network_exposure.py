"""Refuses to open the page or Flower to a network by mistake."""

from __future__ import annotations

import ipaddress

from poller import errors


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


def check_flower(bind: str, has_login: bool) -> None:
    """Refuse Flower without a login beyond loopback: it can stop workers. Raises InvalidSetting."""
    if not is_loopback(bind) and not has_login:
        raise errors.InvalidSetting(
            f"flower_bind: {bind or 'every address'} can be reached from outside, "
            "and Flower has no password",
            hint="set POLLER_FLOWER_BASIC_AUTH=user:password (or ..._FILE), "
            "or bind it to 127.0.0.1",
        )
