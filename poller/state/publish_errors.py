"""The one table from kombu's exceptions to ours, for code that publishes messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kombu import exceptions as theirs

from poller import errors
from poller.state import redis_errors

#: Every exception of the library that publishing can raise. The nearest ancestor decides.
TRANSLATION: dict[type[Exception], type[errors.PollerError]] = {
    theirs.KombuError: errors.StoreError,
    **dict.fromkeys(
        (
            theirs.OperationalError,
            theirs.InconsistencyError,  # a queue that was there is gone
            theirs.BatchPublishError,
            theirs.LimitExceeded,
            theirs.ConnectionLimitExceeded,
            theirs.ChannelLimitExceeded,
            theirs.HttpError,
        ),
        errors.StoreUnavailable,
    ),
    **dict.fromkeys(
        (
            theirs.NotBoundError,
            theirs.MessageStateError,
            theirs.VersionMismatch,
            theirs.SerializerNotInstalled,
            theirs.ContentDisallowed,
            theirs.SerializationError,
            theirs.EncodeError,
            theirs.DecodeError,
        ),
        errors.Bug,
    ),
}
#: kombu passes on some exceptions of redis-py and of the socket.
EXPECTED: tuple[type[Exception], ...] = (*TRANSLATION, *redis_errors.EXPECTED, OSError)


@contextmanager
def broker_errors() -> Iterator[None]:
    """Translate exceptions of publishing to ours."""
    try:
        yield
    except EXPECTED as error:
        raise translate(error) from error


def translate(error: Exception) -> errors.PollerError:
    """Return an exception of kombu, or of redis-py beneath it, as one of ours."""
    if isinstance(error, redis_errors.EXPECTED):
        return redis_errors.translate(error, "the broker")
    mro = type(error).__mro__
    kind = next((TRANSLATION[base] for base in mro if base in TRANSLATION), errors.StoreUnavailable)
    cause = f"{type(error).__name__}: {error}"
    if kind is errors.Bug:
        return kind("a message cannot be sent", cause, "this is a bug in poller")
    return kind(
        "cannot send messages to the broker",
        cause,
        "is Redis running? No batch is lost; the next tick publishes it again",
    )
