"""The theme of a page: that of the address, else that of the cookie, else the system's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Cookie, Depends
from fastapi.responses import HTMLResponse

from poller.web.pages.html import Theme

_COOKIE = "poller_theme"
_COOKIE_AGE_S = 31_536_000  # a year


@dataclass(frozen=True, slots=True)
class ThemeChoice:
    theme: Theme
    in_address: bool  # so the cookie is set


def theme_from_cookies(cookies: Mapping[str, str]) -> Theme:
    """The theme of the cookie, for a response to an address that could not be read."""
    return _parse(cookies.get(_COOKIE, ""))


def store_theme(choice: ThemeChoice, response: HTMLResponse) -> HTMLResponse:
    """Set the cookie when the address has a theme; return the response."""
    if choice.in_address:
        response.set_cookie(_COOKIE, choice.theme.value, max_age=_COOKIE_AGE_S, samesite="strict")
    return response


def _choose(
    theme: Theme | None = None, poller_theme: Annotated[str, Cookie()] = Theme.SYSTEM
) -> ThemeChoice:
    if theme is None:
        return ThemeChoice(_parse(poller_theme), in_address=False)
    return ThemeChoice(theme, in_address=True)


def _parse(text: str) -> Theme:
    return Theme(text) if text in list(Theme) else Theme.SYSTEM


#: A parameter of a route: FastAPI fills it from the address and the cookie.
RequestedTheme = Annotated[ThemeChoice, Depends(_choose)]
