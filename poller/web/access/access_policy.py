"""The settings of log-ins in the form that requests are judged by."""

from __future__ import annotations

from dataclasses import dataclass, field

from poller.security import trusted_proxies
from poller.security.trusted_proxies import TrustedProxies
from poller.settings import Settings

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """Which requests are believed what."""

    has_tls: bool = False
    is_https_outside: bool = False  # people use an https address; a proxy may have the TLS
    proxies: TrustedProxies = field(default_factory=TrustedProxies)
    session_s: int = 3600
    idle_ms: int = _HOUR_MS
    has_provider: bool = False  # OpenID Connect


def of_settings(settings: Settings) -> AccessPolicy:
    """Return the policy of a web process."""
    return AccessPolicy(
        has_tls=bool(settings.web_tls_cert),
        is_https_outside=settings.web_url.startswith("https://"),
        proxies=trusted_proxies.make(
            settings.trusted_proxies,
            settings.proxy_user_header,
            settings.proxy_groups_header,
            settings.group_roles,
        ),
        session_s=round(settings.session_hours * 3600),
        idle_ms=round(settings.session_idle_hours * _HOUR_MS),
        has_provider=bool(settings.oidc_issuer),
    )
