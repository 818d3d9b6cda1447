"""The last words of `poller up` are true."""

from __future__ import annotations

from poller.cli.output import log_lines


def test_what_was_polled_adds_up() -> None:
    """What was refused is no poll, and the targets are those that are left."""
    outcomes = {"failed": 180, "ok": 3816, "partial": 43, "refused": 6}
    text = log_lines._polls({"polls": 4039, "targets": 6, "outcomes": outcomes})
    assert text == "4,039 polls (3,816 ok, 43 partial, 180 failed), 6 refused; 6 targets at the end"
    assert (
        log_lines._polls({"polls": 0, "targets": 1, "outcomes": {}})
        == "0 polls; 1 target at the end"
    )
