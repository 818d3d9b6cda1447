"""The themes of pages, and the cookie that remembers the chosen one."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from fastapi.responses import Response

COOKIE = "poller_theme"
_COOKIE_AGE_S = 31_536_000  # a year


class Theme(enum.StrEnum):
    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


def from_cookies(cookies: Mapping[str, str]) -> Theme:
    """The theme that the browser remembers; the system's for an unknown one."""
    text = cookies.get(COOKIE, "")
    return Theme(text) if text in list(Theme) else Theme.SYSTEM


def store(theme: Theme, response: Response) -> None:
    """Let the browser remember a theme."""
    response.set_cookie(COOKIE, theme.value, max_age=_COOKIE_AGE_S, samesite="strict")
