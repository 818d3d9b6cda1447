"""The summary of `poller up`."""

from __future__ import annotations

from poller.cli.output import log_lines


def test_the_outcomes_of_polls_add_up() -> None:
    """A refused batch is no poll, and the targets are those at the end."""
    outcomes = {"failed": 180, "ok": 3816, "partial": 43, "refused": 6}
    text = log_lines._polls({"polls": 4039, "targets": 6, "outcomes": outcomes})
    assert text == "4,039 polls (3,816 ok, 43 partial, 180 failed), 6 refused; 6 targets at the end"
    assert (
        log_lines._polls({"polls": 0, "targets": 1, "outcomes": {}})
        == "0 polls; 1 target at the end"
    )
