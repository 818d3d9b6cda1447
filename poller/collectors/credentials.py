"""What a collector may be given to log in with. Secret fields are `SecretStr`: they never print.

A credential is stored encrypted as one JSON object with its `kind`. A plugin may bring its own model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import pydantic
from pydantic import BaseModel, ConfigDict, SecretStr

from poller import errors
from poller.domain import naming, nearest


class Credential(BaseModel):
    """Base of every credential model."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
    kind: ClassVar[str]

    @classmethod
    def secret_fields(cls) -> tuple[str, ...]:
        return tuple(n for n, f in cls.model_fields.items() if "SecretStr" in str(f.annotation))

    @classmethod
    def plain_fields(cls) -> tuple[str, ...]:
        return tuple(n for n in cls.model_fields if n not in cls.secret_fields())

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what a person types or pipes: a JSON object, or the one secret, or `user:password`."""
        text = text.strip("\r\n")
        if text.lstrip().startswith("{"):
            return cls.from_fields(_json_object(text))
        return cls._from_plain_text(text)

    @classmethod
    def _from_plain_text(cls, text: str) -> Self:
        names = cls.secret_fields()
        if len(names) == 1 and not [n for n in cls.plain_fields() if cls.model_fields[n].is_required()]:
            return cls.from_fields({names[0]: text})
        raise errors.InvalidInput(
            f"a {cls.kind} credential has several parts",
            hint="give a JSON object with " + ", ".join(cls.model_fields),
        )

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """Validate; the error names the field and never repeats a value."""
        try:
            return cls.model_validate(fields)
        except pydantic.ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            if first["type"] == "extra_forbidden":
                raise cls._unknown(field) from None
            text = first["msg"].removeprefix("Value error, ")
            raise errors.InvalidInput(": ".join(filter(None, (f"{cls.kind} credential", field, text)))) from None

    @classmethod
    def _unknown(cls, field: str) -> errors.InvalidInput:
        meant = nearest.nearest(field, cls.model_fields)
        hint = f"did you mean {meant}?" if meant else f"it takes {', '.join(cls.model_fields)}"
        return errors.InvalidInput(f'{cls.kind} credential: unknown field "{naming.printable(field)}"', hint=hint)

    def secrets(self) -> list[str]:
        """The secret texts themselves: for those who must keep them out of logs."""
        return [value.get_secret_value() for _, value in self if isinstance(value, SecretStr)]

    def to_json(self) -> str:
        """The text that is encrypted, secrets in the clear: for the vault only."""
        fields = {
            name: value.get_secret_value() if isinstance(value, SecretStr) else value
            for name, value in self
            if value is not None
        }
        return json.dumps({"kind": self.kind, **fields})


class Community(Credential):
    """SNMP v1 and v2c."""

    kind = "community"
    community: SecretStr


class SnmpV3(Credential):
    """SNMPv3 user. Without passwords: noAuthNoPriv; with the first: authNoPriv; with both: authPriv."""

    kind = "snmpv3"
    username: str
    auth_protocol: Literal["MD5", "SHA", "SHA224", "SHA256", "SHA384", "SHA512"] = "SHA"
    auth_password: SecretStr | None = None
    priv_protocol: Literal["DES", "AES", "AES192", "AES192C", "AES256", "AES256C"] = "AES"
    priv_password: SecretStr | None = None

    @pydantic.field_validator("auth_password", "priv_password")
    @classmethod
    def _is_one(cls, password: SecretStr | None) -> SecretStr | None:
        if password is not None and not password.get_secret_value():
            raise ValueError("is empty; without a password, leave the field away")
        return password

    @pydantic.model_validator(mode="after")
    def _privacy_needs_authentication(self) -> Self:
        if self.priv_password is not None and self.auth_password is None:
            raise ValueError("priv_password needs auth_password: SNMPv3 has no privacy without authentication")
        return self


class Login(Credential):
    """A user name and a password."""

    kind = "login"
    username: str
    password: SecretStr

    @classmethod
    def _from_plain_text(cls, text: str) -> Self:
        username, colon, password = text.partition(":")
        if not colon:
            raise errors.InvalidInput("a login is written user:password")
        return cls.from_fields({"username": username, "password": password})


class Token(Credential):
    """A bearer or API token."""

    kind = "token"
    token: SecretStr


BUILT_IN: dict[str, type[Credential]] = {model.kind: model for model in (Community, SnmpV3, Login, Token)}


def from_json(text: str, models: dict[str, type[Credential]] | None = None) -> Credential:
    """A stored credential back to its model."""
    fields = _json_object(text)
    kind = str(fields.pop("kind", ""))
    known = {**(models or {}), **BUILT_IN}
    if kind not in known:
        raise errors.InvalidInput(f'unknown credential kind "{kind}"', hint="use " + ", ".join(known))
    return known[kind].from_fields(fields)


def read(text: str, accepted: Sequence[type[Credential]]) -> Credential:
    """What a person gave to a collector that accepts these models, preferred first; never repeats the text.

    A JSON object is the model of its `kind`, else the first that has the most of its keys; plain text is the first.
    """
    text = text.strip("\r\n")
    if not text.lstrip().startswith("{"):
        return accepted[0].from_text(text)
    fields = _json_object(text)
    if "kind" in fields:
        model = {model.kind: model for model in accepted}.get(str(fields.pop("kind")))
    else:
        model = max(accepted, key=lambda model: len(set(fields) & set(model.model_fields)))
    if model is None:
        raise errors.InvalidInput(
            "the credential is of a kind this collector does not take",
            hint="use " + " or ".join(model.kind for model in accepted),
        )
    return model.from_fields(fields)


def _json_object(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except ValueError:
        raise errors.InvalidInput("the credential is not valid JSON") from None
    if not isinstance(fields, dict):
        raise errors.InvalidInput("the credential must be a JSON object")
    return fields
