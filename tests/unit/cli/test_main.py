"""A word that the command line does not know: which one was meant?"""

from __future__ import annotations

import pytest

from poller.cli import main


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("device remove x", "rm"),
        ("target delete x", "rm"),
        ("target show x", "list"),
        ("credential create x", "add"),
        ("site update x", "edit"),
        ("start", "up"),
        ("collect snmp 127.0.0.1 --output prom", "prometheus"),
        ("collect snmp 127.0.0.1 --output jsno", "json"),
    ],
)
def test_what_other_programs_call_it_is_understood(
    capsys: pytest.CaptureFixture[str], words: str, meant: str
) -> None:
    """And said, not done."""
    assert main.run(words.split()) == 2
    assert f"try: did you mean {meant}? (or: poller" in capsys.readouterr().err


def test_a_word_that_nobody_uses_gets_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is guessed."""
    assert main.run(["device", "frobnicate"]) == 2
    assert "try: poller device --help\n" in capsys.readouterr().err
