"""`poller explain` explains every code and suggests the nearest one for an unknown code."""

from __future__ import annotations

import json

import pytest

from poller.cli import main
from poller.domain.failures import error_codes
from poller.presentation import code_explanations


@pytest.mark.parametrize("item", code_explanations.entries(), ids=lambda item: item["code"])
def test_every_code_is_found(item: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Upper and lower case are accepted."""
    assert main.run(["explain", item["code"].lower(), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["code"], said["meaning"], said["try"]) == (
        item["code"],
        item["meaning"],
        item["try"],
    )


def test_a_code_of_a_run_shows_its_consequences(capsys: pytest.CaptureFixture[str]) -> None:
    """Category, retry, breaker and dead letter, as in the table of the failure policy."""
    assert main.run(["explain", "auth_failed", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["category"] == "permanent"
    assert shown["retried"] is False
    assert shown["breaker"] == "at the first failure, for breaker_auth_s"
    assert shown["dead_letter"] == "at the second refusal"
    assert main.run(["explain", "timeout"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-5:] == [
        "category: transient",
        "retried: yes",
        "breaker: after breaker_failures failures",
        "dead letter: when the breaker is open for deadletter_after_s",
        "device: no response",
    ]


def test_every_code_is_unique() -> None:
    """A repeated code would give the wrong explanation."""
    codes = [item["code"].lower() for item in code_explanations.entries()]
    assert len(set(codes)) == len(codes)


def test_all_exit_codes_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """`poller explain exit-codes` lists all of them."""
    assert main.run(["explain", "exit-codes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    exits = [str(code) for code in code_explanations.EXIT_CODES]
    assert [line.split("\t")[0] for line in lines[1:]] == exits


def test_without_a_code_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Codes of runs come first."""
    assert main.run(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(code_explanations.entries()) + 1
    assert lines[1].startswith(next(iter(error_codes.TABLE)))


def test_an_unknown_code_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 3, as for every name that does not exist."""
    assert main.run(["explain", "tiemout"]) == 3
    assert "try: poller explain timeout" in capsys.readouterr().err


def test_a_code_like_no_other_gets_one_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """The hint is the command that lists all codes."""
    assert main.run(["explain", "foo"]) == 3
    assert capsys.readouterr().err.endswith("  try: poller explain\n")
