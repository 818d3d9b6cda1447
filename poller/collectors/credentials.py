"""Credential models: what a collector receives to log in. Secret fields are `SecretStr`.

A credential is stored encrypted, as one JSON object with its `kind`. A plugin may bring its own
model. No error text of this module repeats a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import pydantic
from pydantic import BaseModel, ConfigDict, SecretStr

from poller import errors
from poller.domain.inventory import did_you_mean, naming

#: A text that contains this many characters of a secret in a row reveals too much of the secret.
#: Shorter runs occur in ordinary sentences.
_REVEALING_LENGTH = 5
_COLLECTIONS = (list, tuple, set, frozenset)


class Credential(BaseModel):
    """Base class of every credential model."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
    kind: ClassVar[str]

    @classmethod
    def secret_fields(cls) -> tuple[str, ...]:
        fields = cls.model_fields.items()
        return tuple(name for name, field in fields if "SecretStr" in str(field.annotation))

    @classmethod
    def plain_fields(cls) -> tuple[str, ...]:
        secret = cls.secret_fields()
        return tuple(name for name in cls.model_fields if name not in secret)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse typed or piped text: a JSON object, the only secret, or `user:password`."""
        text = text.strip("\r\n")
        if text.lstrip().startswith("{"):
            return cls.from_fields(_json_object(text))
        return cls._from_plain_text(text)

    @classmethod
    def _from_plain_text(cls, text: str) -> Self:
        secret = cls.secret_fields()
        required = [name for name in cls.plain_fields() if cls.model_fields[name].is_required()]
        if len(secret) == 1 and not required:
            return cls.from_fields({secret[0]: text})
        raise errors.InvalidInput(
            f"a {cls.kind} credential has several parts",
            hint="give a JSON object with " + ", ".join(cls.model_fields),
        )

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """Validate fields. The error names the field and never repeats a value."""
        try:
            return cls.model_validate(fields)
        except pydantic.ValidationError as error:
            raise cls._refusal(error, fields) from None
        except BaseException as error:  # noqa: BLE001  door: a model of a plugin
            text = f"{cls.kind} credential: it cannot be checked"
            raise errors.InvalidInput(text, cause=type(error).__name__) from None

    @classmethod
    def _refusal(
        cls, error: pydantic.ValidationError, fields: Mapping[str, Any]
    ) -> errors.InvalidInput:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            return cls._unknown_field(field)

        text = first["msg"].removeprefix("Value error, ")
        hint = ""
        if _reveals(text, cls._hidden_texts(fields)):
            text = "is not valid"
            hint = "the message of its model is not shown: it repeats the secret"
        parts = (f"{cls.kind} credential", field, text)
        return errors.InvalidInput(": ".join(part for part in parts if part), hint=hint)

    @classmethod
    def _unknown_field(cls, field: str) -> errors.InvalidInput:
        suggestion = did_you_mean.nearest(field, cls.model_fields)
        hint = f"it takes {', '.join(cls.model_fields)}"
        if suggestion:
            hint = f"did you mean {suggestion}?"
        text = f'{cls.kind} credential: unknown field "{naming.printable(field)}"'
        return errors.InvalidInput(text, hint=hint)

    @classmethod
    def _hidden_texts(cls, fields: Mapping[str, Any]) -> Iterator[str]:
        """Yield every text that no message may repeat: all values but simple plain fields."""
        plain = cls.plain_fields()
        for name, value in fields.items():
            if name not in plain or isinstance(value, (Mapping, BaseModel, *_COLLECTIONS)):
                yield from _texts(_reveal(value))

    def secrets(self) -> list[str]:
        """Return the secret texts, so that a caller can mask them in logs."""
        return list(_secrets(self))

    def to_json(self) -> str:
        """Return the text to encrypt, with secrets in the clear. Only the vault may call this."""
        fields = {name: _reveal(value) for name, value in self if value is not None}
        return json.dumps({"kind": self.kind, **fields})


class Community(Credential):
    """The community string of SNMP v1 and v2c."""

    kind = "community"
    community: SecretStr


class SnmpV3(Credential):
    """An SNMPv3 user.

    No password means noAuthNoPriv, an auth_password authNoPriv, both passwords authPriv.
    """

    kind = "snmpv3"
    username: str
    auth_protocol: Literal["MD5", "SHA", "SHA224", "SHA256", "SHA384", "SHA512"] = "SHA"
    auth_password: SecretStr | None = None
    priv_protocol: Literal["DES", "AES", "AES192", "AES192C", "AES256", "AES256C"] = "AES"
    priv_password: SecretStr | None = None

    @pydantic.field_validator("auth_password", "priv_password")
    @classmethod
    def _is_not_empty(cls, password: SecretStr | None) -> SecretStr | None:
        if password is not None and not password.get_secret_value():
            raise ValueError("is empty; without a password, leave the field out")
        return password

    @pydantic.model_validator(mode="after")
    def _privacy_needs_authentication(self) -> Self:
        if self.priv_password is not None and self.auth_password is None:
            raise ValueError(
                "priv_password needs auth_password: SNMPv3 has no privacy without authentication"
            )
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


BUILT_IN: dict[str, type[Credential]] = {
    model.kind: model for model in (Community, SnmpV3, Login, Token)
}


def from_json(text: str, models: dict[str, type[Credential]] | None = None) -> Credential:
    """Return the credential of a stored text. `models` are the kinds that plugins bring."""
    fields = _json_object(text)
    kind = str(fields.pop("kind", ""))
    available = {**(models or {}), **BUILT_IN}
    if kind not in available:
        raise errors.InvalidInput(
            f'unknown credential kind "{kind}"', hint="use " + ", ".join(available)
        )
    return available[kind].from_fields(fields)


def read(text: str, accepted: Sequence[type[Credential]]) -> Credential:
    """Parse an operator's text as one of the accepted models, preferred model first.

    A JSON object becomes the model of its `kind`; without a kind, the model that shares the most
    keys with it. Plain text becomes the first model.
    """
    text = text.strip("\r\n")
    if not text.lstrip().startswith("{"):
        return accepted[0].from_text(text)
    fields = _json_object(text)
    return _model_of(fields, accepted).from_fields(fields)


def _model_of(fields: dict[str, Any], accepted: Sequence[type[Credential]]) -> type[Credential]:
    """Choose the model of a JSON object, and remove the `kind` from the object."""

    def shared_keys(model: type[Credential]) -> int:
        return len(set(fields) & set(model.model_fields))

    if "kind" not in fields:
        return max(accepted, key=shared_keys)
    kind = str(fields.pop("kind"))
    for model in reversed(accepted):
        if model.kind == kind:
            return model
    raise errors.InvalidInput(
        "the credential is of a kind this collector does not take",
        hint="use " + " or ".join(model.kind for model in accepted),
    )


def _json_object(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except ValueError:
        raise errors.InvalidInput("the credential is not valid JSON") from None
    if not isinstance(fields, dict):
        raise errors.InvalidInput("the credential must be a JSON object")
    return fields


def _secrets(value: Any) -> Iterator[str]:
    """Yield the secrets of a value at any depth."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    for item in _items(value):
        yield from _secrets(item)


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts and numbers of a value at any depth."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
    for item in _items(value):
        yield from _texts(item)


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, BaseModel):
        value = dict(iter(value))
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, _COLLECTIONS) else ()


def _reveal(value: Any) -> Any:
    """Copy a value as JSON types, with secrets in the clear."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        value = dict(iter(value))
    if isinstance(value, Mapping):
        return {name: _reveal(item) for name, item in value.items()}
    if isinstance(value, _COLLECTIONS):
        return [_reveal(item) for item in value]
    return value


def _reveals(text: str, values: Iterable[str]) -> bool:
    """Return whether a text contains a value, or a long run of its characters, in any spelling."""
    text = text.casefold()
    for value in values:
        if not value.strip():
            continue
        if any(_contains(text, spelling.casefold()) for spelling in _spellings(value)):
            return True
    return False


def _spellings(value: str) -> tuple[str, ...]:
    escaped = value.encode("unicode_escape").decode()
    return value, value.strip(), repr(value)[1:-1], json.dumps(value)[1:-1], escaped


def _contains(text: str, value: str) -> bool:
    """Return whether a text contains a value; a short value counts only as a word of its own."""
    if len(value) < _REVEALING_LENGTH:
        return value in (re.split(r"\W+", text) if value.isalnum() else text)
    starts = range(len(value) - _REVEALING_LENGTH + 1)
    return any(value[at : at + _REVEALING_LENGTH] in text for at in starts)
