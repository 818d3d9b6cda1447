"""The form of a credential is made from its kind, and never has a secret."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import Field, SecretStr

from poller import errors
from poller.collectors.credentials import BUILT_IN, Credential, SnmpV3
from poller.web.pages.access import credential_form
from poller.web.pages.device.target_form import FormField

SECRET = "planted-hunter22"


class Strange(Credential):
    """A kind of a plugin with fields of every sort."""

    kind = "strange"
    name: str
    port: int = 22
    mode: Literal["a", "b"] | None = None
    strict: bool = False
    keys: list[str] = Field(default_factory=list, description="one for each host")
    passphrase: SecretStr | None = None


def by_label(form: credential_form.CredentialForm) -> dict[str, FormField]:
    return {each.label: each for each in form.fields}


@pytest.mark.parametrize("kind", sorted(BUILT_IN))
def test_every_field_of_a_kind_is_an_input(kind: str) -> None:
    """Secret ones are passwords that a browser does not fill in."""
    model = BUILT_IN[kind]
    form = credential_form.build(model, has_name=True)
    names = [each.name for each in form.fields]
    assert names == ["name", *(f"field.{name}" for name in model.model_fields)]
    secret = {each.name for each in form.fields if each.is_secret}
    assert secret == {f"field.{name}" for name in model.secret_fields()}
    assert all(each.autocomplete == "new-password" for each in form.fields if each.is_secret)


def test_a_form_that_keeps_stored_fields_needs_none() -> None:
    """A choice may stay as it is, and no default is filled in."""
    fields = by_label(credential_form.build(SnmpV3, keeps=True))
    assert not any(each.is_required or each.text for each in fields.values())
    assert fields["Auth protocol"].choices[:2] == ("", "MD5")
    assert fields["Auth protocol"].empty == "(as before)"
    fresh = by_label(credential_form.build(SnmpV3))
    assert fresh["Username"].is_required
    assert fresh["Auth protocol"].text == "SHA"


def test_a_kind_of_a_plugin_may_have_any_fields() -> None:
    """A field called name is no clash, numbers are read from texts, and lists are JSON."""
    fields = by_label(credential_form.build(Strange))
    assert fields["Mode"].choices == ("a", "b")
    assert fields["Strict"].choices == ("true", "false")
    assert fields["Keys"].help == "one for each host"
    sent = {"name": "x", "field.name": "n", "field.port": "2222", "field.keys": '["k"]'}
    found = credential_form.values(Strange, sent)
    assert found == {"name": "n", "port": "2222", "keys": ["k"]}
    assert Strange.from_fields(found).port == 2222
    broken = credential_form.values(Strange, {"field.name": "n", "field.keys": f"[{SECRET}"})
    with pytest.raises(errors.InvalidInput) as caught:
        Strange.from_fields(broken)
    assert SECRET not in str(caught.value)


def test_a_refused_form_has_no_secret_and_the_error_at_its_field() -> None:
    """What else was typed is kept."""
    sent = {"field.username": "mon", "field.auth_password": SECRET, "field.auth_protocol": "ROT13"}
    with pytest.raises(errors.InvalidInput) as caught:
        SnmpV3.from_fields(credential_form.values(SnmpV3, sent))
    form = credential_form.refused(credential_form.build(SnmpV3), sent, caught.value)
    fields = by_label(form)
    assert fields["Username"].text == "mon"
    assert fields["Auth password"].text == ""
    assert [label for label, each in fields.items() if each.error] == ["Auth protocol"]
    assert SECRET not in repr(form)


@pytest.mark.parametrize(
    "error",
    [
        errors.AlreadyExists('there is a credential named "a" already'),
        errors.InvalidInput("the credential name is empty"),
    ],
)
def test_an_error_of_the_name_stands_at_the_name(error: errors.PollerError) -> None:
    """Of a new credential."""
    form = credential_form.build(SnmpV3, has_name=True)
    found = credential_form.refused(form, {"name": "a"}, error)
    assert by_label(found)["Name"].error == str(error)
