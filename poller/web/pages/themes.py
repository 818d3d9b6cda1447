"""Which theme a reader wants: what the address says now, else what it said last time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Cookie, Depends
from fastapi.responses import HTMLResponse

from poller.web.pages.html import Theme

_COOKIE = "poller_theme"
_A_YEAR_S = 31_536_000


@dataclass(frozen=True, slots=True)
class Chosen:
    shown: Theme
    now: bool  # by this address, so that it is to be kept


def _chosen(
    theme: Theme | None = None, poller_theme: Annotated[str, Cookie()] = Theme.SYSTEM
) -> Chosen:
    return Chosen(theme or _known(poller_theme), theme is not None)


def kept(cookies: Mapping[str, str]) -> Theme:
    """The choice of last time, for an answer to an address that could not be read."""
    return _known(cookies.get(_COOKIE, ""))


def _known(text: str) -> Theme:
    return Theme(text) if text in list(Theme) else Theme.SYSTEM


ChosenTheme = Annotated[Chosen, Depends(_chosen)]


def keep(chosen: Chosen, answer: HTMLResponse) -> HTMLResponse:
    """The answer, with the choice in it if it was made just now."""
    if chosen.now:
        answer.set_cookie(_COOKIE, chosen.shown.value, max_age=_A_YEAR_S, samesite="strict")
    return answer
