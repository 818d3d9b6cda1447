"""The one table from kombu's exceptions to ours: for whoever publishes a message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kombu import exceptions as theirs

from poller import errors
from poller.state import redis_errors

#: Every exception the library defines for those who publish; the nearest class in the ancestry decides.
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
#: kombu lets some of the client's exceptions and of the socket's pass as they are.
EXPECTED: tuple[type[Exception], ...] = (*TRANSLATION, *redis_errors.EXPECTED, OSError)


@contextmanager
def broker_errors() -> Iterator[None]:
    """Whatever publishing raises inside leaves as one of ours."""
    try:
        yield
    except EXPECTED as error:
        raise translate(error) from error


def translate(error: Exception) -> errors.PollerError:
    """An exception of kombu, or of the client beneath it, as one of ours."""
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
        "is Redis running? Nothing is lost; it is tried again",
    )
