"""Unknown words on the command line: the error suggests the right word."""

from __future__ import annotations

import pytest

from poller.cli import main


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("device remove x", "rm"),
        ("target delete x", "rm"),
        ("target info x", "show"),
        ("credential create x", "add"),
        ("site update x", "edit"),
        ("start", "up"),
        ("collect snmp 127.0.0.1 --output prom", "prometheus"),
        ("collect snmp 127.0.0.1 --output jsno", "json"),
    ],
)
def test_words_of_other_programs_get_a_suggestion(
    capsys: pytest.CaptureFixture[str], words: str, meant: str
) -> None:
    """The suggested command is not executed."""
    assert main.run(words.split()) == 2
    assert f"try: did you mean {meant}? (or: poller" in capsys.readouterr().err


def test_an_unknown_word_gets_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """There is no guess."""
    assert main.run(["device", "frobnicate"]) == 2
    assert "try: poller device --help\n" in capsys.readouterr().err
