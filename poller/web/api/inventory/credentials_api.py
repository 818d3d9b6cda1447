"""`/api/v1/credentials`: stored secrets. They are sent, and never come back."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from poller.collectors.credentials import Credential
from poller.db.inventory.credential_rows import StoredCredential
from poller.service.access import credential_editing
from poller.service.inventory import credential_actions
from poller.web.api.contract import api_hints, etags, idempotency, paging, problems, resources
from poller.web.api.contract.etags import IfMatch
from poller.web.api.contract.needs import EditingAll, Reading
from poller.web.api.contract.paging import Cursor, Limit, Page

router = resources.router("credentials")
kinds_router = resources.router("credential-kinds")

CredentialName = Annotated[str, Path(max_length=200, description="The name of the credential.")]
SecretFields = Annotated[
    dict[str, Any],
    Field(
        max_length=50,
        description="The fields of its kind, secrets included; see /api/v1/credential-kinds.",
    ),
]


class CredentialBody(BaseModel):
    """A credential without its secret."""

    name: str
    kind: str
    devices: int = Field(description="Devices that have it.")
    targets: int = Field(description="Targets that are polled with it.")
    created_at: datetime
    updated_at: datetime


class NewCredential(BaseModel):
    """A credential to be stored."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: str = Field(max_length=200)
    kind: str = Field(max_length=100)
    fields: SecretFields


class NewSecret(BaseModel):
    """The new secret of a credential."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    kind: str | None = Field(None, max_length=100, description="Absent: as before.")
    fields: SecretFields


class ChangedFields(BaseModel):
    """New values of some fields of a credential; the others stay."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    fields: SecretFields


class ChangedCredential(CredentialBody):
    """A credential after a change, without its secret."""

    notes: list[str] = Field(description="Warnings, such as of a short secret.")


class CredentialKind(BaseModel):
    """A kind of credential."""

    kind: str
    secret_fields: list[str]
    plain_fields: list[str]
    fields_schema: dict[str, Any] = Field(description="The JSON schema of `fields`.")


@router.get("")
def list_credentials(
    call: Reading,
    request: Request,
    response: Response,
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[CredentialBody]:
    """List the credentials by name, without secrets."""
    key = paging.decode(cursor, str)
    every = sorted(credential_actions.listing(call.services, call.actor), key=_name)
    rest = [each for each in every if key is None or each.name > key[0]]
    following = paging.encode([rest[limit - 1].name] if len(rest) > limit else None)
    paging.link_next(request, response, following)
    return Page(items=[_body(each) for each in rest[:limit]], next=following)


@router.post(
    "", status_code=201, responses=problems.CHANGING, openapi_extra=idempotency.HOLDS_SECRET
)
def add_credential(call: EditingAll, response: Response, body: NewCredential) -> ChangedCredential:
    """Store a credential."""
    read = credential_actions.from_fields(body.fields)
    notes = credential_actions.add(call.services, call.author, body.name, body.kind, read)
    return _changed(call, response, body.name, notes)


@router.get("/{name}")
def show_credential(call: Reading, response: Response, name: CredentialName) -> CredentialBody:
    """Show one credential, without its secret."""
    found = credential_actions.show(call.services, call.actor, name)
    etags.set_tag(response, found.tag)
    return _body(found)


@router.patch("/{name}", responses=problems.CHANGING, openapi_extra=idempotency.HOLDS_SECRET)
def edit_credential(
    call: EditingAll,
    response: Response,
    name: CredentialName,
    body: ChangedFields,
    if_match: IfMatch = None,
) -> ChangedCredential:
    """Replace some fields of a credential; workers use them with their next poll."""
    expected = etags.expected(if_match)
    done = credential_editing.edit(call.services, call.author, name, body.fields, expected)
    return _changed(call, response, name, done.notes)


@router.post("/{name}/rotate", responses=problems.CHANGING, openapi_extra=idempotency.HOLDS_SECRET)
def rotate_credential(
    call: EditingAll,
    response: Response,
    name: CredentialName,
    body: NewSecret,
    if_match: IfMatch = None,
) -> ChangedCredential:
    """Replace the secret of a credential; workers use the new one with their next poll."""
    expected = etags.expected(if_match)
    read = credential_actions.from_fields(body.fields)
    done = credential_actions.rotate(call.services, call.author, name, body.kind, read, expected)
    return _changed(call, response, name, done.notes)


@router.delete("/{name}", status_code=204, responses=problems.CHANGING)
def remove_credential(call: EditingAll, name: CredentialName, if_match: IfMatch = None) -> None:
    """Remove a credential that no device and no target uses."""
    credential_actions.remove(call.services, call.author, name, etags.expected(if_match))


@kinds_router.get("")
def list_credential_kinds(call: Reading) -> list[CredentialKind]:
    """List the kinds of credentials, built in and of plugins, with their fields."""
    models = credential_actions.models(call.services)
    return [_kind(models[kind]) for kind in sorted(models)]


def _kind(model: type[Credential]) -> CredentialKind:
    return CredentialKind(
        kind=model.kind,
        secret_fields=list(model.secret_fields()),
        plain_fields=list(model.plain_fields()),
        fields_schema=model.model_json_schema(),
    )


def _changed(
    call: EditingAll, response: Response, name: str, notes: list[str]
) -> ChangedCredential:
    found = credential_actions.show(call.services, call.actor, name)
    etags.set_tag(response, found.tag)
    shown = [api_hints.for_api(note) for note in notes]
    return ChangedCredential(**_body(found).model_dump(), notes=shown)


def _body(found: StoredCredential) -> CredentialBody:
    return CredentialBody(
        name=found.name,
        kind=found.kind,
        devices=found.devices,
        targets=found.targets,
        created_at=found.created_at,
        updated_at=found.updated_at,
    )


def _name(found: StoredCredential) -> str:
    return found.name
