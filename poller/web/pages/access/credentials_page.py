"""Credentials as texts: names, kinds, who uses them, and when they changed. Never a secret."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from poller import errors
from poller.db.inventory.credential_rows import StoredCredential
from poller.domain.inventory.target_filter import TargetFilter, text
from poller.presentation import formatting
from poller.web.pages.access import credential_form
from poller.web.pages.access.credential_form import CredentialForm
from poller.web.pages.alerts import alert_lines

#: Credentials of one page of the list.
LIMIT = 100
_DONE = {
    "add": 'Credential "{}" was stored.',
    "rotate": 'Credential "{}" was changed; workers use it with their next poll.',
    "remove": 'Credential "{}" was removed.',
}


@dataclass(frozen=True, slots=True)
class CredentialLine:
    """One credential."""

    name: str
    kind: str
    path: str  # below the root
    users: str
    users_path: str  # the devices with a target that is polled with it; "" if there is none
    where: str
    changed: str
    by: str


@dataclass(frozen=True, slots=True)
class CredentialsView:
    """One page of credentials."""

    as_of: str
    lines: Sequence[CredentialLine]
    said: str
    shows_authors: bool
    key_problem: str
    following: str


@dataclass(frozen=True, slots=True)
class CredentialView:
    """One credential with its forms."""

    as_of: str
    line: CredentialLine
    created: str
    version: str
    said: str
    note: str  # a warning about the secret that was stored just now
    was_changed: bool
    form: CredentialForm
    kinds: Sequence[str]  # others than that of the form
    is_other_kind: bool
    replaces: bool
    command: str
    edit_command: str  # for fields that are not secret; "" if there are none
    remove_command: str
    refusal: str  # why it was not removed
    refusal_hint: str


@dataclass(frozen=True, slots=True)
class NewCredentialView:
    """The form of a new credential."""

    as_of: str
    kinds: Sequence[str]
    form: CredentialForm
    command: str


def build_list(
    found: Sequence[StoredCredential],
    authors: Mapping[str, str],
    now_ms: int,
    did: str = "",
    name: str = "",
    key_problem: str = "",
    more: bool = False,
) -> CredentialsView:
    """Build the view of a page of the list."""
    after = found[-1].name if more and found else ""
    return CredentialsView(
        as_of=formatting.instant(now_ms),
        lines=[line_of(each, authors) for each in found],
        said=said(did, name),
        shows_authors=bool(authors),
        key_problem=key_problem,
        following=f"credentials?{urlencode({'after': after})}" if after else "",
    )


def build_one(
    found: StoredCredential,
    authors: Mapping[str, str],
    form: CredentialForm,
    kinds: Sequence[str],
    now_ms: int,
    did: str = "",
    note: str = "",
    replaces: bool = False,
    refusal: errors.PollerError | None = None,
) -> CredentialView:
    """Build the view of one credential. The form may be that of another kind."""
    is_other_kind = form.kind != found.kind
    return CredentialView(
        as_of=formatting.instant(now_ms),
        line=line_of(found, authors),
        created=alert_lines.instant(found.created_at),
        version=found.tag,
        said=said(did, found.name),
        note=note,
        was_changed=did == "rotate",
        form=form,
        kinds=[kind for kind in kinds if kind != form.kind],
        is_other_kind=is_other_kind,
        replaces=replaces,
        command=rotate_command(found.name, form.kind if is_other_kind else ""),
        edit_command=edit_command(found.name, form),
        remove_command=remove_command(found.name),
        refusal=f"{refusal}." if refusal else "",
        refusal_hint=refusal.hint if refusal else "",
    )


def line_of(of: StoredCredential, authors: Mapping[str, str]) -> CredentialLine:
    """Return the texts of one credential."""
    where = text(TargetFilter(credentials=(of.name,)))
    devices = formatting.counted(of.devices, "device")
    targets = formatting.counted(of.targets, "target")
    return CredentialLine(
        name=of.name,
        kind=of.kind,
        path=f"credentials/{quote(of.name, safe='')}",
        users=f"{devices}, {targets}" if of.devices or of.targets else "",
        users_path=f"devices?{urlencode({'where': where})}" if of.targets else "",
        where=where,
        changed=alert_lines.instant(of.updated_at),
        by=authors.get(of.name, ""),
    )


def said(did: str, name: str) -> str:
    """What a form did, in words."""
    return _DONE[did].format(name) if did in _DONE else ""


def add_command(kind: str) -> str:
    """The command that stores a credential; it asks for the secret."""
    return f"poller credential add NAME --kind {shlex.quote(kind)}"


def rotate_command(name: str, kind: str) -> str:
    """The command that replaces a secret; it asks for it. "" as the kind keeps it."""
    words = ["poller", "credential", "rotate", name]
    return shlex.join([*words, "--kind", kind] if kind else words)


def edit_command(name: str, form: CredentialForm) -> str:
    """The command that changes a field that is not secret; "" if the kind has none."""
    plain = [each for each in form.fields if not each.is_secret]
    if not plain:
        return ""
    field = plain[0].name.removeprefix(credential_form.PREFIX)
    return f"{shlex.join(['poller', 'credential', 'edit', name])} --field {field}=VALUE"


def remove_command(name: str) -> str:
    return shlex.join(["poller", "credential", "rm", name])
