"""The words of receivers for errors of the HTTP client and the secret files that sinks use, too.

A URL that comes from a file is a secret, so that no error repeats it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from poller import errors

_WORDS = (
    ('sink "', 'receiver "'),
    ("of the sink", "of the receiver"),
    ("give the sink", "give the receiver"),
    ("the user that runs the worker", "the user that runs the scheduler"),
    ("nothing takes readings at this path", "nothing takes notices at this path"),
)
MASK = "(a URL from a file)"


@contextmanager
def worded(secrets: tuple[str, ...] = ()) -> Iterator[None]:
    """Re-raise a ConfigError or StoreError in the words of receivers, without the secrets."""
    try:
        yield
    except errors.StoreUnavailable as error:
        texts = _texts(error, secrets)
        raise errors.StoreUnavailable(*texts, retry_after_s=error.retry_after_s) from None
    except (errors.StoreError, errors.InvalidSetting) as error:
        raise type(error)(*_texts(error, secrets)) from None


def _texts(error: errors.PollerError, secrets: tuple[str, ...]) -> tuple[str, str, str]:
    return (
        _changed(error.message, secrets),
        _changed(error.cause, secrets),
        _changed(error.hint, secrets),
    )


def masked(text: str, secrets: tuple[str, ...]) -> str:
    """Return a text without the secrets, such as an answer that repeats the request."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def _changed(text: str, secrets: tuple[str, ...]) -> str:
    text = masked(text, secrets)
    for theirs, ours in _WORDS:
        text = text.replace(theirs, ours)
    return text
