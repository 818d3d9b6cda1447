"""Typed text becomes a credential, and no error text repeats a secret."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, SecretStr, field_validator

from poller import errors
from poller.collectors import credentials
from poller.collectors.credentials import Community, Credential, Login, SnmpV3, Token

SECRET = "hunter2hunter2"
V3 = {"username": "mon", "auth_password": SECRET, "priv_password": SECRET}


@pytest.mark.parametrize(
    ("text", "accepted", "expected"),
    [
        (f"{SECRET}\n", (Community, SnmpV3), Community),
        (json.dumps({"community": SECRET}), (Community, SnmpV3), Community),
        (json.dumps(V3), (Community, SnmpV3), SnmpV3),
        (json.dumps({"kind": "snmpv3", **V3}), (Community, SnmpV3), SnmpV3),
        (f"admin:{SECRET}:x", (Login,), Login),
        (SECRET, (Token,), Token),
    ],
)
def test_read(
    text: str, accepted: tuple[type[Credential], ...], expected: type[Credential]
) -> None:
    """Plain text is of the preferred kind; a JSON object names its kind or shares its fields."""
    read = credentials.read(text, accepted)
    assert type(read) is expected
    assert SECRET in read.to_json()


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        (f'{{"kind": "{SECRET}"}}', (Community,)),
        (f'{{"comunity": "{SECRET}"}}', (Community, SnmpV3)),
        (f"{{{SECRET}", (Community,)),
        (SECRET, (Login,)),
        (SECRET, (SnmpV3,)),
        (json.dumps({"username": "mon", "priv_password": SECRET}), (SnmpV3,)),
        (json.dumps({"username": "mon", "auth_protocol": SECRET}), (SnmpV3,)),
    ],
)
def test_refusals_name_the_field_and_not_the_secret(
    text: str, accepted: tuple[type[Credential], ...]
) -> None:
    with pytest.raises(errors.InvalidInput) as raised:
        credentials.read(text, accepted)
    assert SECRET not in f"{raised.value} {raised.value.hint} {raised.value!r}"


def test_a_mistyped_field_is_named_and_changes_no_kind() -> None:
    """A JSON object with most of the fields of one kind is of that kind."""
    with pytest.raises(
        errors.InvalidInput, match=r'^snmpv3 credential: unknown field "auth_pasword"$'
    ) as raised:
        credentials.read(
            json.dumps({"username": "mon", "auth_pasword": SECRET}), (Community, SnmpV3)
        )
    assert raised.value.hint == "did you mean auth_password?"
    with pytest.raises(
        errors.InvalidInput, match=r'^community credential: unknown field "x"$'
    ) as raised:
        credentials.read('{"x": 1, "community": "c"}', (Community, SnmpV3))
    assert raised.value.hint == "it takes community"


@pytest.mark.parametrize("field", ["auth_password", "priv_password"])
def test_an_empty_password_is_not_taken_for_none(field: str) -> None:
    """An empty password must not turn encryption off."""
    with pytest.raises(errors.InvalidInput, match=f"{field}: is empty"):
        SnmpV3.from_fields({**V3, field: ""})


@pytest.mark.parametrize(
    "made", [Community.from_text(SECRET), Login.from_text(f"a:{SECRET}"), SnmpV3.from_fields(V3)]
)
def test_secrets_do_not_print(made: Credential) -> None:
    assert SECRET not in f"{made} {made!r} {made.model_dump()}"


@pytest.mark.parametrize(
    "made", [Community.from_text(SECRET), Login.from_text(f"a:{SECRET}"), SnmpV3.from_fields(V3)]
)
def test_stored_and_read_back(made: Credential) -> None:
    assert credentials.from_json(made.to_json()) == made


class Inner(BaseModel):
    pin: SecretStr


class Strict(Credential):
    """A model of a plugin that repeats the secret in its errors."""

    kind = "strict"
    says: ClassVar[Callable[[Any], Any]] = staticmethod(lambda value: value)
    secret: SecretStr = SecretStr("")
    keys: list[SecretStr] = []
    pins: frozenset[SecretStr] = frozenset()
    inner: Inner | None = None
    user: str = ""

    @field_validator("secret", "keys", "inner", "user")
    @classmethod
    def _says(cls, value: Any) -> Any:
        return cls.says(value)


def _raise(error: BaseException) -> Any:
    raise error


ODD = "a'b\"c\\d\n\u00e9\tf"


def said(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], error: Callable[[Any], BaseException]
) -> str:
    monkeypatch.setattr(Strict, "says", lambda value: _raise(error(value)))
    with pytest.raises(errors.InvalidInput) as raised:
        Strict.from_fields(fields)
    return f"{raised.value} {raised.value.hint}"


@pytest.mark.parametrize("secret", [SECRET, ODD, "1234", "x", "ab cd"])
@pytest.mark.parametrize(
    "spelled", [str, repr, ascii, json.dumps, str.upper, lambda text: f"<{text[: len(text)]}>"]
)
def test_what_a_model_of_a_plugin_says_of_a_secret_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, secret: str, spelled: Callable[[str], str]
) -> None:
    """However it is written, and wherever it stands."""

    def error(value: SecretStr) -> ValueError:
        return ValueError(f"{spelled(value.get_secret_value())} is not of the form k:v")

    text = said(monkeypatch, {"secret": secret}, error)
    assert text.startswith("strict credential: secret: is not valid")
    assert "form" not in text


def test_nor_is_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = said(
        monkeypatch, {"secret": SECRET}, lambda value: ValueError(f"begins with {SECRET[:6]}")
    )
    assert text.startswith("strict credential: secret: is not valid")


def test_nor_one_that_stands_deeper_or_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for fields in (
        {"keys": ["fine", SECRET]},
        {"inner": {"pin": SECRET}},
        {"user": "mon", "secrt": SECRET},
    ):
        text = said(monkeypatch, fields, lambda value: ValueError(f"odd: {SECRET}"))
        assert SECRET not in text
        assert text.startswith(f"strict credential: {next(iter(fields))}: is not valid")


def test_an_exception_of_a_model_is_reported_without_its_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for error in (KeyError(SECRET), SystemExit(SECRET), errors.InvalidInput(SECRET)):
        text = said(monkeypatch, {"secret": SECRET}, lambda value, error=error: error)  # type: ignore[misc]
        assert text.startswith("strict credential: it cannot be checked")
        assert SECRET not in text


def test_a_message_of_a_model_without_the_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few shared letters do not reveal a secret, and a user name is no secret."""
    for secret in (SECRET, "x", "formal", ""):
        text = said(
            monkeypatch, {"secret": secret}, lambda value: ValueError("is not of the form k:v")
        )
        assert text.startswith("strict credential: secret: is not of the form k:v")
    assert "'mon' has no realm" in said(
        monkeypatch, {"user": "mon"}, lambda value: ValueError(f"{value!r} has no realm")
    )
    lab = {"username": "mon", "priv_password": "privpass"}
    with pytest.raises(errors.InvalidInput, match="priv_password needs auth_password"):
        SnmpV3.from_fields(lab)


def test_secrets_at_any_depth_are_stored_and_known() -> None:
    """Logs mask the secrets of nested models, too."""
    made = Strict.from_fields(
        {"secret": "one", "keys": ["two", "three"], "pins": ["six"], "inner": {"pin": "four"}}
    )
    assert made.secrets() == ["one", "two", "three", "six", "four"]
    assert (
        Strict.from_text(
            json.dumps({k: v for k, v in json.loads(made.to_json()).items() if k != "kind"})
        )
        == made
    )
