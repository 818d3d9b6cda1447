"""The details of a result without secrets: people and programs read them in the ledger."""

from __future__ import annotations

from typing import Any

from poller.domain.jobs import run_details
from poller.security.redaction import Redactor


def without_secrets(details: Any, redactor: Redactor) -> dict[str, Any]:
    """Return the details as they are stored, with secrets masked in values and in names."""
    masked = redactor.fields(run_details.storable(details))
    return {redactor.text(name): _named_safely(each, redactor) for name, each in masked.items()}


def _named_safely(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, dict):
        return {redactor.text(name): _named_safely(each, redactor) for name, each in value.items()}
    if isinstance(value, list):
        return [_named_safely(each, redactor) for each in value]
    return value
