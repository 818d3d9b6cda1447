"""Error texts of InfluxDB and its relatives: any body is read, and none is a reason to fail."""

from __future__ import annotations

import pytest

from poller.sinks.metric_stores import influx
from poller.sinks.store_connection import Answer


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error": "partial write"}', "partial write"),
        (b'{"message": "no bucket"}', "no bucket"),
        (b'{"error": 5}', '{"error": 5}'),
        (b'{"error": "\\ud800"}', "?"),
        (b"\xff", "\ufffd"),
    ],
)
def test_the_reason_is_found_in_any_body(body: bytes, text: str) -> None:
    """A text that is no UTF-8 loses a character, not the polls of the request."""
    assert influx._message(Answer(400, {}, body)) == text


def test_a_body_of_endless_depth_is_shown_as_it_is() -> None:
    """A store may answer with any JSON."""
    body = b'{"error":' + b"[" * 60_000
    assert influx._message(Answer(400, {}, body)).startswith('{"error":[[')
