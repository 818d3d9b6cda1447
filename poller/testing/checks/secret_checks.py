"""Checks that no secret is in an error, a log line, a reading or the collector's repr."""

from __future__ import annotations

import logging
import secrets as random_secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pydantic import SecretStr

from poller.collectors.api import Credential
from poller.testing.hostile import Manner, hostile
from poller.testing.subject import BRIEF_S, Device, Failed, Inapplicable, Seen, Subject


async def secrets(subject: Subject) -> None:
    """A secret that the device does not accept appears in no error, log line, reading or repr."""
    if subject.credential is None or not subject.credential.secret_fields():
        raise Inapplicable("the suite has no credential with a secret")
    wrong, secret = _wrong_credential(subject.credential)
    for manner in (Manner.SILENT, Manner.HANGS_UP, Manner.BABBLES):
        with suppress(Inapplicable), hostile(manner) as port:
            await _check_secret(subject, subject.at(port), BRIEF_S / 2, wrong, secret)
    await _check_secret(subject, subject.device, BRIEF_S * 2, wrong, secret)


def _wrong_credential(credential: Credential) -> tuple[Credential, str]:
    """Return the credential with a random secret, and that secret: it is unlike any other text."""
    secret = f"secret-{random_secrets.token_hex(12)}"
    replaced = {
        name: SecretStr(secret)
        for name in credential.secret_fields()
        if getattr(credential, name) is not None
    }
    return credential.model_copy(update=replaced), secret


async def _check_secret(
    subject: Subject, device: Device, budget_s: float, wrong: Credential, secret: str
) -> None:
    collector = subject.make()
    with _logs() as lines:
        seen = await subject.poll(device, budget_s, credential=wrong, collector=collector)
    attributes = getattr(collector, "__dict__", "")
    places = {
        "an error": " ".join(_texts(seen)),
        "a log line": " ".join(lines),
        "a reading": repr(seen.outcome.readings),
        "repr(collector)": f"{collector!r} {attributes}",
    }
    for place, text in places.items():
        if secret in text:
            raise Failed(
                f"the secret is in {place}: "
                "call get_secret_value() only where the secret is sent to the device"
            )


def _texts(seen: Seen) -> Iterator[str]:
    for error in seen.ear.raised:
        yield f"{error} {error!r}"
        if error.__cause__ is not None:
            yield f"{error.__cause__} {error.__cause__!r}"
    for failure in seen.drained.failures:
        yield str(failure.error)


@contextmanager
def _logs() -> Iterator[list[str]]:
    """Collect every log record of every level while the context lasts."""
    lines: list[str] = []

    class Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.getMessage()} {record.exc_info or ''} {record.__dict__}")

    root = logging.getLogger()
    handler = Collecting(logging.DEBUG)
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
