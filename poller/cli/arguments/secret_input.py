"""Secrets from a hidden prompt or from stdin, never from an argument, which `ps` shows."""

from __future__ import annotations

import getpass
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.collectors import credentials
from poller.collectors.credentials import Credential

if TYPE_CHECKING:
    from poller.collectors.api import Collector, Options

#: The environment variable that `collect`, `discover` and `snmp` read a secret from.
SECRET_VARIABLE = "POLLER_COLLECT_SECRET"  # noqa: S105  its name, not its value


def read(model: type[Credential], plain: Mapping[str, str]) -> Credential:
    """A credential of this kind: plain fields from the arguments, secrets typed or piped.

    Raises InvalidInput.
    """
    refuse_wrong_fields(model, plain)
    if sys.stdin.isatty():
        typed = _prompted(model, plain)
        return model.from_fields({**plain, **typed})

    piped = sys.stdin.read().strip("\r\n")
    return _piped(model, plain, piped)


def for_collector(collector: Collector, options: Options) -> Credential | None:
    """The credential of a poll without a database: from POLLER_COLLECT_SECRET, stdin or a prompt.

    None if the collector takes no credential, or needs none with these options.
    """
    from poller.collectors.api import needs_credential

    if not collector.credentials:
        return None

    text = os.environ.get(SECRET_VARIABLE)
    if text is None and not needs_credential(collector, options):
        return None
    if text is None and sys.stdin.isatty():
        return prompt(collector.credentials)
    if text is None:
        text = sys.stdin.read()

    if not text.strip("\r\n"):
        kinds = " or ".join(model.kind for model in collector.credentials)
        raise errors.InvalidInput(
            f"collector {collector.name} needs a secret ({kinds})",
            hint=f"set {SECRET_VARIABLE}, or pipe it to stdin",
        )

    return credentials.read(text, collector.credentials)


def prompt(accepted: Sequence[type[Credential]]) -> Credential:
    """Ask for a credential: the first kind by its fields, other kinds as a JSON object."""
    first, *others = accepted
    if not others or len(first.model_fields) > 1:
        return first.from_fields(_prompted(first, {}))

    kinds = " or ".join(model.kind for model in others)
    text = getpass.getpass(f"{first.kind}, or a JSON object for {kinds}: ")
    if not text:
        raise errors.InvalidInput("the secret is missing")

    return credentials.read(text, accepted)


def _prompted(model: type[Credential], plain: Mapping[str, str]) -> dict[str, str]:
    """The fields typed at the prompts; a field that was left empty is absent."""
    typed = {}
    for field, info in model.model_fields.items():
        label = field.replace("_", " ")
        if field in model.secret_fields():
            optional = "" if info.is_required() else " (empty for none)"
            typed[field] = getpass.getpass(f"{label}{optional}: ")
        elif info.is_required() and field not in plain:
            typed[field] = input(f"{label}: ")

    return {field: text for field, text in typed.items() if text}


def _piped(model: type[Credential], plain: Mapping[str, str], text: str) -> Credential:
    """A JSON object, or the secrets one per line in the order of the model's fields."""
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
        names = ", ".join(secrets)
        raise errors.InvalidInput(f"{len(lines)} lines for {len(secrets)} secrets: {names}")

    typed = dict(zip(secrets, lines, strict=False))
    return model.from_fields({**plain, **typed})


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise errors.InvalidInput("the piped text is not valid JSON") from None
    return dict(found)


def refuse_wrong_fields(model: type[Credential], plain: Mapping[str, str]) -> None:
    """Raise InvalidInput for a secret or unknown field among the arguments."""
    for field in plain:
        if field in model.secret_fields():
            raise errors.InvalidInput(
                f'"{field}" is secret and must not be an argument',
                hint="type it at the prompt, or pipe it to stdin",
            )
        if field not in model.plain_fields():
            takes = ", ".join(model.plain_fields()) or "no other fields"
            raise errors.InvalidInput(
                f'a {model.kind} credential has no "{field}"', hint=f"it takes {takes}"
            )
