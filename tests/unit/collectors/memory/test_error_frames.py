"""Errors without the frames they passed through."""

from __future__ import annotations

import pytest

from poller.collectors.memory.error_frames import drop_frames


def failed() -> BaseException:
    try:
        try:
            raise OSError("first")
        except OSError:
            raise ValueError("second") from None
    except ValueError as error:
        return error


def test_the_whole_chain_loses_its_tracebacks() -> None:
    error = failed()
    assert error.__traceback__ is not None
    assert drop_frames(error) is error
    assert error.__traceback__ is None
    assert error.__context__ is not None
    assert error.__context__.__traceback__ is None


def test_members_of_a_group_lose_theirs() -> None:
    member = failed()
    with pytest.raises(BaseExceptionGroup) as raised:
        raise BaseExceptionGroup("several", [member])
    drop_frames(raised.value)
    assert member.__traceback__ is None


def test_a_chain_that_is_a_ring_ends() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert drop_frames(first) is first
