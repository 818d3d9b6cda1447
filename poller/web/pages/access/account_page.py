"""The own account as texts: who one is, what one may do, where one is logged in."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.scopes import Scope
from poller.presentation import formatting
from poller.security import passwords
from poller.service.access import own_account
from poller.web.pages.access import input_fields, scope_texts
from poller.web.pages.access.input_fields import InputForm, Refusal
from poller.web.pages.access.session_lines import SessionLine
from poller.web.pages.device.target_form import FormField

_DONE = {
    "password": "Your password was changed; your other sessions have ended.",
    "end": "The session has ended.",
}
_KINDS = {
    ActorKind.LOCAL: "nobody on this machine is asked for a login",
    ActorKind.TOKEN: "an API token",
    ActorKind.PROXY: "a user whom the proxy before poller logs in",
}
_OIDC = "a user of single sign-on, who has the password there"
_LOCAL_USER = "a user with a password of poller"
AGAIN = "again"


@dataclass(frozen=True, slots=True)
class ScopeLine:
    """One right, and whether one has it."""

    scope: str
    meaning: str
    has: bool


@dataclass(frozen=True, slots=True)
class AccountView:
    """The own account. `form` is None for those who have no password here."""

    as_of: str
    name: str
    kind: str
    role: str
    site: str
    scopes: Sequence[ScopeLine]
    sessions: Sequence[SessionLine]
    asks_no_login: bool
    said: str
    form: InputForm | None
    command: str


def build_view(
    actor: Actor,
    sessions: Sequence[SessionLine],
    now_ms: int,
    did: str = "",
    refusal: Refusal | None = None,
) -> AccountView:
    """Build the view of the account of an actor."""
    has_password = own_account.has_password(actor)
    form = input_fields.filled(_fields(), refusal, {}) if has_password else None
    of_user = _LOCAL_USER if has_password else _OIDC
    return AccountView(
        as_of=formatting.instant(now_ms),
        name=actor.name,
        kind=_KINDS.get(actor.kind, of_user),
        role=scope_texts.role_of(actor.scopes),
        site=actor.site or "",
        scopes=[
            ScopeLine(each.value, scope_texts.MEANINGS[each], actor.may(each)) for each in Scope
        ],
        sessions=sessions,
        asks_no_login=actor.kind is ActorKind.LOCAL,
        said=_DONE.get(did, ""),
        form=form,
        command=shlex.join(["poller", "user", "edit", actor.name, "--password"]),
    )


def _fields() -> list[FormField]:
    shortest = f"at least {passwords.SHORTEST} characters, such as a sentence"
    return [
        _secret(own_account.OLD, "Old password", "", "current-password"),
        _secret(passwords.FIELD, "New password", shortest),
        _secret(AGAIN, "New password again", ""),
    ]


def _secret(name: str, label: str, help_text: str, complete: str = "new-password") -> FormField:
    return FormField(
        name, label, "", help_text, is_required=True, is_secret=True, autocomplete=complete
    )
