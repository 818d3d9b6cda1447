"""`poller device show`: the words for the state of a target and its next poll."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from poller.cli.commands import device_show
from poller.cli.output import render
from poller.domain.why.causes import Cause


@pytest.mark.parametrize(
    ("item", "state", "following"),
    [
        ({"cause": "healthy", "state": "ok", "next_poll_in_seconds": 14}, "ok", "in 14 s"),
        (
            {"cause": "overdue", "state": "ok", "next_poll_in_seconds": -75},
            "ok",
            "1 m 15 s overdue",
        ),
        ({"cause": "polling", "state": "ok", "place": "in_flight"}, "ok", "in flight"),
        ({"cause": "paused", "state": "ok", "next_poll_in_seconds": 60}, "paused", "in 1 m 0 s"),
        ({"cause": "disabled", "state": "ok", "next_poll_in_seconds": 9}, "disabled", ""),
        ({"cause": "site_dark", "state": "failing", "next_poll_in_seconds": 9}, "site dark", ""),
        ({"cause": "redis_away", "state": None, "next_poll_in_seconds": None}, "", ""),
        ({}, "", ""),
    ],
)
def test_a_target_has_a_state_and_a_next_poll(
    item: dict[str, Any], state: str, following: str
) -> None:
    """What a person stopped is not what the last poll found; nothing is said without a store."""
    assert (device_show._state(item), device_show._next_poll(item)) == (state, following)


def test_many_targets_that_are_well_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that are not well keep their sentences."""
    well = [{"cause": Cause.HEALTHY, "target": f"t{n}", "sentence": "Well."} for n in range(5)]
    bad = {"cause": Cause.FAILING, "target": "bad", "sentence": "Failing."}
    device_show._explain("sw1", [bad, *well])
    assert capsys.readouterr().out == "bad: Failing.\n5 other targets polled as planned\n\n"
    device_show._explain("sw1", well[:2])
    assert capsys.readouterr().out == "t0: Well.\nt1: Well.\n\n"


def test_a_sentence_is_wrapped_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal; a pipe gets one line, for grep."""
    sentence = "snmp: Polled every 60 s; " + "the last poll was good, " * 6
    render.paragraph(sentence)
    assert capsys.readouterr().out == f"{sentence}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    render.paragraph(sentence)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert " ".join(line.strip() for line in lines) == sentence.strip()
