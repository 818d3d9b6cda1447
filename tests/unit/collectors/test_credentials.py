"""What a person types becomes a credential, and never comes back in a text."""

from __future__ import annotations

import json

import pytest

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
def test_read(text: str, accepted: tuple[type[Credential], ...], expected: type[Credential]) -> None:
    """Plain text is the preferred kind; a JSON object is the kind it names, or that has its fields."""
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
def test_refusals_name_the_field_and_not_the_secret(text: str, accepted: tuple[type[Credential], ...]) -> None:
    with pytest.raises(errors.InvalidInput) as raised:
        credentials.read(text, accepted)
    assert SECRET not in f"{raised.value} {raised.value.hint} {raised.value!r}"


def test_a_mistyped_field_is_named_and_changes_no_kind() -> None:
    """A JSON object with most of the fields of one kind is of that kind."""
    with pytest.raises(errors.InvalidInput, match=r'^snmpv3 credential: unknown field "auth_pasword"$') as raised:
        credentials.read(json.dumps({"username": "mon", "auth_pasword": SECRET}), (Community, SnmpV3))
    assert raised.value.hint == "did you mean auth_password?"
    with pytest.raises(errors.InvalidInput, match=r'^community credential: unknown field "x"$') as raised:
        credentials.read('{"x": 1, "community": "c"}', (Community, SnmpV3))
    assert raised.value.hint == "it takes community"


@pytest.mark.parametrize("field", ["auth_password", "priv_password"])
def test_an_empty_password_is_not_taken_for_none(field: str) -> None:
    """Who meant to encrypt shall not poll in the clear."""
    with pytest.raises(errors.InvalidInput, match=f"{field}: is empty"):
        SnmpV3.from_fields({**V3, field: ""})


@pytest.mark.parametrize("made", [Community.from_text(SECRET), Login.from_text(f"a:{SECRET}"), SnmpV3.from_fields(V3)])
def test_secrets_do_not_print(made: Credential) -> None:
    assert SECRET not in f"{made} {made!r} {made.model_dump()}"


@pytest.mark.parametrize("made", [Community.from_text(SECRET), Login.from_text(f"a:{SECRET}"), SnmpV3.from_fields(V3)])
def test_stored_and_read_back(made: Credential) -> None:
    assert credentials.from_json(made.to_json()) == made
