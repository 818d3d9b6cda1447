"""The meaning of a store's answer: taken, refused, away, or no remote write 2.0."""

from __future__ import annotations

from typing import Final

from poller.sinks.store_connection import Answer

#: The store looked at the samples and does not take them: never sent again.
_REFUSED: Final = frozenset({400, 413, 422})
#: Prometheus before 2.49 answers with 500 if a sample is older than its out-of-order window, and
#: would do so for ever.
_REFUSALS_AS_500: Final = ("too old sample", "out of bounds", "out of order sample")
_WRITTEN: Final = "x-prometheus-remote-write-samples-written"
_LONGEST_NUMBER: Final = 18  # digits
_UNSUPPORTED: Final = 415


def is_taken(answer: Answer) -> bool:
    return 200 <= answer.status < 300


def refusal(answer: Answer) -> str:
    """Return why the store refuses the samples of a request; "" if it does not refuse them."""
    if answer.status in _REFUSED:
        return answer.text or f"status {answer.status}"
    if answer.status == 500 and any(text in answer.text for text in _REFUSALS_AS_500):
        return answer.text
    return ""


def written(answer: Answer) -> int | None:
    """Return the samples that a store with remote write 2.0 says it wrote; None: it says nothing.

    A store that knows 1.0 only takes a request of 2.0 for an empty one, and answers with success.
    """
    text = answer.headers.get(_WRITTEN, "")
    is_number = text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
    return int(text) if is_number else None


def speaks_v2(answer: Answer) -> bool:
    """Whether the answer to a request of 2.0 can come from a store that knows 2.0."""
    if answer.status == _UNSUPPORTED:
        return False
    if is_taken(answer) or answer.status == 400:
        return written(answer) is not None
    return True
