"""Tokens as texts: the list, the form, and the value of a new token, which is shown once."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from poller.db.access.token_rows import StoredToken
from poller.domain.access.scopes import Scope
from poller.presentation import formatting
from poller.presentation.health import Tone
from poller.service.access.api_tokens import MadeToken
from poller.web.pages.access import input_fields, scope_texts
from poller.web.pages.access.input_fields import Refusal
from poller.web.pages.alerts import alert_lines
from poller.web.pages.device.target_form import FormField

#: Tokens of one page of the list.
LIMIT = 50
NAME, SCOPE, SITE, LIFE = "name", "scope", "site", "life"
#: The life that the form begins with; an empty field is a token that never ends.
LIFE_AT_FIRST = "90d"
_FIELDS_OF_ERRORS = {
    "the token name": NAME,
    "there is a token": NAME,
    "there is no scope": SCOPE,
    "a token needs a scope": SCOPE,
    "a token with the scope": SITE,
    "the site name": SITE,
    "no site": SITE,
    "a token lives": LIFE,
    f"{LIFE}:": LIFE,
}


@dataclass(frozen=True, slots=True)
class TokenLine:
    """One token."""

    name: str
    scopes: str
    site: str
    created: str
    by: str
    last_used: str  # "" for never
    end: str  # "" for never
    tone: str
    state: str
    command: str


@dataclass(frozen=True, slots=True)
class ScopeChoice:
    """One mark of the form."""

    scope: str
    meaning: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class TokensView:
    """One page of tokens, and the form of a new one."""

    as_of: str
    lines: Sequence[TokenLine]
    first: str
    after: str  # the name that the next page begins after; "" on the last page
    said: str
    name: FormField
    others: Sequence[FormField]
    scopes: Sequence[ScopeChoice]
    scope_error: str
    error: str
    hint: str
    made: MadeLine | None


@dataclass(frozen=True, slots=True)
class MadeLine:
    """A token that was made by this request, with its value and its command."""

    name: str
    value: str
    scopes: str
    command: str

    def __repr__(self) -> str:
        return f"MadeLine({self.name})"


def build_view(
    found: Sequence[StoredToken],
    sites: Sequence[str],
    now_ms: int,
    *,
    has_more: bool = False,
    after: str = "",
    said: str = "",
    made: MadeToken | None = None,
    life: str = "",
    refusal: Refusal | None = None,
    chosen: Collection[str] = (),
) -> TokensView:
    """Build the view. `life` is that of the made token, `chosen` are scopes of a refused form."""
    form = input_fields.filled(_fields(sites), refusal, _FIELDS_OF_ERRORS)
    scopes = FormField(SCOPE, "Scopes", "")
    of_scopes = input_fields.filled([scopes], refusal, _FIELDS_OF_ERRORS).fields[0]
    return TokensView(
        as_of=formatting.instant(now_ms),
        lines=[_line(each, now_ms) for each in found],
        first="tokens" if after else "",
        after=found[-1].name if has_more and found else "",
        said=said,
        name=form.fields[0],
        others=form.fields[1:],
        scopes=[
            ScopeChoice(each.value, scope_texts.MEANINGS[each], each in chosen) for each in Scope
        ],
        scope_error=of_scopes.error,
        error=form.error,
        hint=form.hint,
        made=_made(made, life) if made else None,
    )


def _made(of: MadeToken, life: str) -> MadeLine:
    names = [scope.value for scope in of.token.scopes]
    words = ["poller", "token", "add", of.token.name]
    for name in names:
        words += ["--scope", name]
    if of.token.site is not None:
        words += ["--site", of.token.site]
    if life:
        words += ["--expires", life]
    return MadeLine(of.token.name, of.value, ", ".join(names), shlex.join(words))


def _line(of: StoredToken, now_ms: int) -> TokenLine:
    is_over = of.expires_ms is not None and of.expires_ms <= now_ms
    return TokenLine(
        name=of.name,
        scopes=", ".join(scope.value for scope in of.scopes),
        site=of.site or "",
        created=alert_lines.instant(of.created_at),
        by=of.created_by,
        last_used=formatting.instant(of.last_used_ms) if of.last_used_ms else "",
        end=formatting.instant(of.expires_ms) if of.expires_ms else "",
        tone=str(Tone.UNKNOWN if is_over else Tone.OK),
        state="ended" if is_over else "valid",
        command=shlex.join(["poller", "token", "rm", of.name]),
    )


def _fields(sites: Sequence[str]) -> list[FormField]:
    life = f"until it ends, such as 12h or {LIFE_AT_FIRST}; empty: it never ends"
    return [
        FormField(NAME, "Name", "", "such as ci or prometheus", is_required=True),
        FormField(
            SITE,
            "Site",
            "",
            "the token sees and changes this site only; empty: all sites",
            suggestions=sites,
        ),
        FormField(LIFE, "Life", LIFE_AT_FIRST, life),
    ]
