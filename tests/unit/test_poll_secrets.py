"""The secrets of the poll at hand are masked at any length in all that the poll says."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from poller import errors, poll_secrets
from poller.collectors import api
from poller.collectors.credentials import Community
from poller.observability import logs
from poller.security.redaction import Redactor
from tests.unit.collectors import scripted

SHORT = "x7q"


@pytest.fixture(autouse=True)
def short_secret(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every scripted poll has a community of three characters."""
    monkeypatch.setattr(scripted, "SECRET", SHORT)
    yield
    logging.getLogger().handlers.clear()


@pytest.mark.parametrize(
    "error",
    [
        ValueError(f"login with {SHORT} failed"),
        errors.DeviceAuthFailed(f'community "{SHORT}" refused', f"sent={SHORT}", f"try {SHORT}9"),
    ],
)
def test_an_error_text_has_no_short_secret(error: Exception) -> None:
    """The text of the outcome becomes the run row, the event and the dead letter."""
    outcome = scripted.run_script(scripted.raising(error))
    assert SHORT not in outcome.message
    assert "***" in outcome.message


def test_the_name_of_a_failed_part_has_no_short_secret() -> None:
    """A plugin may name a part after anything."""
    part = api.PartFailed(f"login/{SHORT}", errors.DeviceTimeout("no answer"))
    outcome = scripted.run_script(scripted.yielding(part))
    assert outcome.message == "login/***: no answer"


def test_a_log_line_of_the_poll_has_no_short_secret(capsys: pytest.CaptureFixture[str]) -> None:
    """Lines of the collector and of its libraries, and the traceback of a crash."""

    async def script(_: api.Poll) -> AsyncIterator[Any]:
        logs.get("collector").warning("refused", answer=f"bad community {SHORT}")
        logging.getLogger("library").warning("sent %s", SHORT)
        yield scripted.ONE
        raise ValueError(f"odd {SHORT}")

    logs.configure(redact=Redactor().fields)
    scripted.run_script(script)
    log = capsys.readouterr().err
    assert "bad community ********" in log
    assert "sent ********" in log
    assert SHORT not in log


def test_a_thread_of_a_blocking_collector_is_masked_as_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread has a context of its own, which the next poll does not inherit."""
    monkeypatch.setattr(scripted.Scripted, "blocking", True, raising=False)

    def script(_: api.Poll) -> Iterator[Any]:
        logs.get("collector").warning("refused", answer=f"bad community {SHORT}")
        yield scripted.ONE

    logs.configure(redact=Redactor().fields)
    scripted.run_script(script)
    assert "bad community ********" in capsys.readouterr().err
    assert Redactor().text(f"said outside {SHORT}") == f"said outside {SHORT}"


def test_a_short_secret_takes_its_whole_word() -> None:
    """Half a word would tell the other half."""
    masked = poll_secrets.mask("the interface te-1 of site: lte", ["te"], "***")
    assert masked == "the *** ***-1 of ***: ***"
    assert poll_secrets.mask("a long-secret-text b", ["long-secret"], "***") == "a ***-text b"
    assert poll_secrets.mask("nothing", ["", "."], "***") == "nothing"


def test_a_long_text_of_a_device_is_masked_in_one_pass() -> None:
    """A device that sends one endless word does not hold its worker for minutes."""
    text = "te " + "x" * 200_000
    assert poll_secrets.mask(text, ["te"], "***") == "*** " + "x" * 200_000


def test_a_credential_names_its_secrets() -> None:
    """What the masking asks for."""
    assert Community(community="abc").secrets() == ["abc"]
