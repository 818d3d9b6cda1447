"""What a collector may be given to log in with. Secret fields are `SecretStr`: they never print.

A credential is stored encrypted as one JSON object with its `kind`. A plugin may bring its own model.
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

#: Whoever sees so many characters of a secret in a row sees too much of it; fewer are in many a sentence.
_TELLING = 5
_SEVERAL = (list, tuple, set, frozenset)


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
        if len(names) == 1 and not [
            n for n in cls.plain_fields() if cls.model_fields[n].is_required()
        ]:
            return cls.from_fields({names[0]: text})
        raise errors.InvalidInput(
            f"a {cls.kind} credential has several parts",
            hint="give a JSON object with " + ", ".join(cls.model_fields),
        )

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """Validate; the error names the field and never repeats a value, whoever wrote its text."""
        try:
            return cls.model_validate(fields)
        except pydantic.ValidationError as error:
            raise cls._refused(error, fields) from None
        except BaseException as error:  # noqa: BLE001  a model may raise anything, and its text may be the secret
            name = type(error).__name__
            raise errors.InvalidInput(
                f"{cls.kind} credential: it cannot be checked", cause=name
            ) from None

    @classmethod
    def _refused(
        cls, error: pydantic.ValidationError, fields: Mapping[str, Any]
    ) -> errors.InvalidInput:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            return cls._unknown(field)
        text, hint = first["msg"].removeprefix("Value error, "), ""
        if _tells(text, cls._hidden(fields)):
            text, hint = (
                "is not valid",
                "what its model says of it is not shown: it repeats the secret",
            )
        return errors.InvalidInput(
            ": ".join(filter(None, (f"{cls.kind} credential", field, text))), hint=hint
        )

    @classmethod
    def _hidden(cls, fields: Mapping[str, Any]) -> Iterator[str]:
        """What no text may repeat: all but the plain fields, and of these what holds others."""
        plain = cls.plain_fields()
        for name, value in fields.items():
            if name not in plain or isinstance(value, (Mapping, BaseModel, *_SEVERAL)):
                yield from _texts(_opened(value))

    @classmethod
    def _unknown(cls, field: str) -> errors.InvalidInput:
        meant = did_you_mean.nearest(field, cls.model_fields)
        hint = f"did you mean {meant}?" if meant else f"it takes {', '.join(cls.model_fields)}"
        return errors.InvalidInput(
            f'{cls.kind} credential: unknown field "{naming.printable(field)}"', hint=hint
        )

    def secrets(self) -> list[str]:
        """The secret texts themselves: for those who must keep them out of logs."""
        return list(_secrets(self))

    def to_json(self) -> str:
        """The text that is encrypted, secrets in the clear: for the vault only."""
        fields = {name: _opened(value) for name, value in self if value is not None}
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
    """A stored credential back to its model."""
    fields = _json_object(text)
    kind = str(fields.pop("kind", ""))
    known = {**(models or {}), **BUILT_IN}
    if kind not in known:
        raise errors.InvalidInput(
            f'unknown credential kind "{kind}"', hint="use " + ", ".join(known)
        )
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


def _secrets(value: Any) -> Iterator[str]:
    """At any depth."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    for item in _items(value):
        yield from _secrets(item)


def _opened(value: Any) -> Any:
    """The same as JSON has it, secrets in the clear."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        value = dict(iter(value))
    if isinstance(value, Mapping):
        return {name: _opened(item) for name, item in value.items()}
    return [_opened(item) for item in value] if isinstance(value, _SEVERAL) else value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
    for item in _items(value):
        yield from _texts(item)


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, BaseModel):
        value = dict(iter(value))
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, _SEVERAL) else ()


def _tells(text: str, values: Iterable[str]) -> bool:
    """Is one of them in it, or more of one than chance would have it, however it is written?"""
    text = text.casefold()
    return any(
        _is_in(text, spelled.casefold())
        for value in values
        if value.strip()
        for spelled in _spellings(value)
    )


def _spellings(value: str) -> tuple[str, ...]:
    escaped = value.encode("unicode_escape").decode()
    return value, value.strip(), repr(value)[1:-1], json.dumps(value)[1:-1], escaped


def _is_in(text: str, value: str) -> bool:
    """A short word counts where it stands alone: a single letter is in every text."""
    if len(value) < _TELLING:
        return value in (re.split(r"\W+", text) if value.isalnum() else text)
    return any(value[at : at + _TELLING] in text for at in range(len(value) - _TELLING + 1))
