"""Where a secret must not be: in an error, a log line, a reading, or what the collector looks like."""

from __future__ import annotations

import logging
import secrets as dice
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pydantic import SecretStr

from poller.collectors.api import Credential
from poller.testing.hostile import Manner, hostile
from poller.testing.subject import BRIEF_S, Device, Failed, Inapplicable, Seen, Subject


async def secrets(subject: Subject) -> None:
    """A credential that the device does not accept is told to nobody, by the device's own answer or by ours."""
    if subject.credential is None or not subject.credential.secret_fields():
        raise Inapplicable("it is tested without a secret")
    wrong, secret = _wrong(subject.credential)
    for manner in (Manner.SILENT, Manner.HANGS_UP, Manner.BABBLES):
        with suppress(Inapplicable), hostile(manner) as port:
            await _look(subject, subject.at(port), BRIEF_S / 2, wrong, secret)
    await _look(subject, subject.device, BRIEF_S * 2, wrong, secret)


def _wrong(credential: Credential) -> tuple[Credential, str]:
    """The same with other secrets: long and unlike anything else, so that it is known again."""
    secret = f"secret-{dice.token_hex(12)}"
    given = {
        name: SecretStr(secret)
        for name in credential.secret_fields()
        if getattr(credential, name) is not None
    }
    return credential.model_copy(update=given), secret


async def _look(
    subject: Subject, device: Device, budget_s: float, wrong: Credential, secret: str
) -> None:
    collector = subject.make()
    with _logs() as lines:
        seen = await subject.poll(device, budget_s, credential=wrong, collector=collector)
    places = {
        "an error": " ".join(_texts(seen)),
        "a log line": " ".join(lines),
        "a reading": repr(seen.outcome.readings),
        "repr(collector)": f"{collector!r} {vars(collector) if hasattr(collector, '__dict__') else ''}",
    }
    for place, text in places.items():
        if secret in text:
            raise Failed(
                f"the secret is in {place}: use credential...get_secret_value() where it is sent, and only there"
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
    """Everything that anybody logs meanwhile, of every level."""
    lines: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.getMessage()} {record.exc_info or ''} {record.__dict__}")

    root, keeper = logging.getLogger(), Keeper(logging.DEBUG)
    level = root.level
    root.addHandler(keeper)
    root.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.setLevel(level)
        root.removeHandler(keeper)
