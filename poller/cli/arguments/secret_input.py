"""Secrets come from a hidden prompt or from stdin, never from an argument: `ps` and shell histories show those."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from poller import errors
from poller.collectors import credentials
from poller.collectors.credentials import Credential


def read(model: type[Credential], plain: Mapping[str, str]) -> Credential:
    """A credential of this kind from its plain fields and what is typed or piped. Raises InvalidInput."""
    _refuse_wrong_fields(model, plain)
    if sys.stdin.isatty():
        return model.from_fields({**plain, **_asked(model, plain)})
    return _piped(model, plain, sys.stdin.read().strip("\r\n"))


def ask(accepted: Sequence[type[Credential]]) -> Credential:
    """At a terminal, for a collector that takes any of these: the first by its fields, another as a JSON object."""
    first, *others = accepted
    if not others or len(first.model_fields) > 1:
        return first.from_fields(_asked(first, {}))
    kinds = " or ".join(model.kind for model in others)
    text = getpass.getpass(f"{first.kind}, or a JSON object for {kinds}: ")
    if not text:
        raise errors.InvalidInput("the secret is missing")
    return credentials.read(text, accepted)


def _asked(model: type[Credential], plain: Mapping[str, str]) -> dict[str, str]:
    answers = {}
    for field, info in model.model_fields.items():
        label = field.replace("_", " ")
        if field in model.secret_fields():
            optional = "" if info.is_required() else " (empty for none)"
            answers[field] = getpass.getpass(f"{label}{optional}: ")
        elif info.is_required() and field not in plain:
            answers[field] = input(f"{label}: ")
    return {field: text for field, text in answers.items() if text}


def _piped(model: type[Credential], plain: Mapping[str, str], text: str) -> Credential:
    """A JSON object, or the secrets one a line in the order of the model's fields."""
    if not text:
        raise errors.InvalidInput(
            "the secret is missing", hint="type it at the prompt of a terminal, or pipe it to stdin"
        )
    if not plain:
        return model.from_text(text)
    if text.lstrip().startswith("{"):
        return model.from_fields({**_object(text), **plain})
    lines = text.splitlines()
    secrets = model.secret_fields()
    if len(lines) > len(secrets):
        raise errors.InvalidInput(
            f"{len(lines)} lines for {len(secrets)} secrets: {', '.join(secrets)}"
        )
    return model.from_fields({**plain, **dict(zip(secrets, lines, strict=False))})


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise errors.InvalidInput("what was piped is not valid JSON") from None
    return dict(found)


def _refuse_wrong_fields(model: type[Credential], plain: Mapping[str, str]) -> None:
    for field in plain:
        if field in model.secret_fields():
            raise errors.InvalidInput(
                f'"{field}" is secret and must not be an argument',
                hint="it is asked for, or read from stdin",
            )
        if field not in model.plain_fields():
            takes = ", ".join(model.plain_fields()) or "no other fields"
            raise errors.InvalidInput(
                f'a {model.kind} credential has no "{field}"', hint=f"it takes {takes}"
            )
