"""Answers of stores to remote write: what they mean, whatever their headers say."""

from __future__ import annotations

import pytest

from poller.sinks.remote_write import store_answers
from poller.sinks.store_connection import Answer


@pytest.mark.parametrize(
    ("header", "samples"),
    [("0", 0), ("2000", 2000), ("", None), ("-1", None), ("\u0663", None), ("9" * 5000, None)],
)
def test_a_count_that_is_no_number_says_nothing(header: str, samples: int | None) -> None:
    """A store with a strange header is one without it."""
    answer = Answer(204, {"x-prometheus-remote-write-samples-written": header}, b"")
    assert store_answers.written(answer) == samples
