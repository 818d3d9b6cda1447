"""Which theme a reader wants: what the address says now, else what it said last time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Cookie, Depends
from fastapi.responses import HTMLResponse

from poller.web.page import Theme

_COOKIE = "poller_theme"
_A_YEAR_S = 31_536_000


@dataclass(frozen=True, slots=True)
class Chosen:
    shown: Theme
    now: bool  # by this address, so that it is to be kept


def _chosen(theme: Theme | None = None, poller_theme: Annotated[str, Cookie()] = Theme.SYSTEM) -> Chosen:
    kept = Theme(poller_theme) if poller_theme in list(Theme) else Theme.SYSTEM
    return Chosen(theme or kept, theme is not None)


ChosenTheme = Annotated[Chosen, Depends(_chosen)]


def keep(chosen: Chosen, answer: HTMLResponse) -> HTMLResponse:
    """The answer, with the choice in it if it was made just now."""
    if chosen.now:
        answer.set_cookie(_COOKIE, chosen.shown.value, max_age=_A_YEAR_S, samesite="strict")
    return answer
