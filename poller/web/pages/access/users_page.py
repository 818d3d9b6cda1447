"""Users as texts: the list with its form, and one user with what can be changed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from poller.db.access.user_rows import StoredUser
from poller.domain.access.scopes import Role
from poller.presentation import formatting
from poller.presentation.health import Tone
from poller.security import passwords
from poller.web.pages.access import input_fields, scope_texts
from poller.web.pages.access.input_fields import InputForm, Refusal
from poller.web.pages.access.session_lines import SessionLine
from poller.web.pages.alerts import alert_lines
from poller.web.pages.device.target_form import FormField

#: Users of one page of the list.
LIMIT = 50
NAME, ROLE, PASSWORD, AGAIN = "name", "role", passwords.FIELD, "again"
#: The beginnings of errors that name no field.
_FIELDS_OF_ERRORS = {
    "the user name": NAME,
    "there is a user": NAME,
    "there is no role": ROLE,
}
_DONE = {
    "add": 'User "{}" was added.',
    "role": 'User "{}" has another role now, also in sessions that are open.',
    "enable": 'User "{}" may log in.',
    "disable": 'User "{}" may not log in any more; all sessions of the user have ended.',
    "password": 'User "{}" has a new password; all sessions of the user have ended.',
    "remove": 'User "{}" was removed.',
    "end": "The session of {} has ended.",
}


@dataclass(frozen=True, slots=True)
class UserLine:
    """One user."""

    name: str
    path: str  # below the root
    role: str
    tone: str
    state: str
    last_login: str  # "" for never
    created: str
    is_own: bool


@dataclass(frozen=True, slots=True)
class UsersView:
    """One page of users, the form of a new one, and the newest sessions."""

    as_of: str
    lines: Sequence[UserLine]
    first: str
    following: str
    said: str
    form: InputForm
    first_user_notes: Sequence[str]  # what the first user changes; none if it is not the first
    sessions: Sequence[SessionLine]
    more_sessions: str  # the address of the next ones
    first_sessions: str
    command: str


@dataclass(frozen=True, slots=True)
class UserView:
    """One user with the forms. `refused` names the form that was refused."""

    as_of: str
    line: UserLine
    updated: str
    said: str
    roles: Sequence[str]
    role_help: str
    password: InputForm
    sessions: Sequence[SessionLine]
    switch: str  # "disable" or "enable"
    refused: str
    error: str
    hint: str
    role_command: str
    enable_command: str
    password_command: str
    remove_command: str


@dataclass(frozen=True, slots=True)
class ListedUsers:
    """The list of users."""

    users: Sequence[StoredUser]
    has_more: bool
    after: str  # the name after which the page begins
    sessions: Sequence[SessionLine]
    session_cursor: str = ""
    next_session_cursor: str = ""
    first_user_notes: Sequence[str] = field(default_factory=list)


def build_list(
    found: ListedUsers, own: str, now_ms: int, said: str = "", refusal: Refusal | None = None
) -> UsersView:
    """Build the view of the list. `own` is the name of the user who looks at it."""
    is_first = bool(found.first_user_notes)
    last = found.users[-1].name if found.has_more and found.users else ""
    form = input_fields.filled(_new_user(is_first), refusal, _FIELDS_OF_ERRORS)
    role = Role.ADMIN if is_first else Role.VIEWER
    return UsersView(
        as_of=formatting.instant(now_ms),
        lines=[line_of(each, own) for each in found.users],
        first="users" if found.after else "",
        following=_address(after=last) if last else "",
        said=said,
        form=form,
        first_user_notes=found.first_user_notes,
        sessions=found.sessions,
        more_sessions=_sessions_address(found.next_session_cursor),
        first_sessions="users#sessions" if found.session_cursor else "",
        command=f"poller user add NAME --role {role}",
    )


def build_one(
    found: StoredUser,
    sessions: Sequence[SessionLine],
    own: str,
    now_ms: int,
    said: str = "",
    refusal: Refusal | None = None,
) -> UserView:
    """Build the view of one user."""
    is_of_password = refusal is not None and refusal.form == PASSWORD
    password = input_fields.filled(
        _new_password(), refusal if is_of_password else None, _FIELDS_OF_ERRORS
    )
    edit = shlex.join(["poller", "user", "edit", found.name])
    switch = "disable" if found.enabled else "enable"
    return UserView(
        as_of=formatting.instant(now_ms),
        line=line_of(found, own),
        updated=alert_lines.instant(found.updated_at),
        said=said,
        roles=[role.value for role in Role],
        role_help=scope_texts.ROLES,
        password=password,
        sessions=sessions,
        switch=switch,
        refused=refusal.form if refusal else "",
        error=f"{refusal.error}." if refusal else "",
        hint=refusal.error.hint if refusal else "",
        role_command=f"{edit} --role ROLE",
        enable_command=f"{edit} --{switch}",
        password_command=f"{edit} --password",
        remove_command=shlex.join(["poller", "user", "rm", found.name]),
    )


def line_of(of: StoredUser, own: str) -> UserLine:
    """Return the texts of one user."""
    return UserLine(
        name=of.name,
        path=f"users/{quote(of.name, safe='')}",
        role=of.role.value,
        tone=str(Tone.OK if of.enabled else Tone.UNKNOWN),
        state="may log in" if of.enabled else "disabled",
        last_login=formatting.instant(of.last_login_ms) if of.last_login_ms else "",
        created=alert_lines.instant(of.created_at),
        is_own=of.name == own,
    )


def said(did: str, name: str) -> str:
    """Say in words how a form ended."""
    return _DONE[did].format(name) if did in _DONE else ""


def texts(role: str, name: str) -> Mapping[str, str]:
    """The typed values of the form of a new user, without its passwords."""
    return {NAME: name, ROLE: role}


def _new_user(is_first: bool) -> list[FormField]:
    roles = [Role.ADMIN] if is_first else list(Role)
    name = FormField(NAME, "Name", "", "without blanks", is_required=True, autocomplete="off")
    role = FormField(
        ROLE, "Role", roles[0].value, scope_texts.ROLES, choices=[each.value for each in roles]
    )
    return [name, role, *_new_password()]


def _new_password() -> list[FormField]:
    help_text = f"at least {passwords.SHORTEST} characters, such as a sentence"
    fields = ((PASSWORD, "Password", help_text), (AGAIN, "Password again", ""))
    return [
        FormField(
            name,
            label,
            "",
            help_text,
            is_required=True,
            is_secret=True,
            autocomplete="new-password",
        )
        for name, label, help_text in fields
    ]


def _address(**given: str) -> str:
    return f"users?{urlencode(given)}"


def _sessions_address(cursor: str) -> str:
    return f"{_address(sessions=cursor)}#sessions" if cursor else ""
