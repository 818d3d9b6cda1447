"""Detaches an error from the frames it passed through.

A frame keeps the local variables of its function: the rows of a table, the body of a response. An
error that is stored, or that a local variable of its own frame names, keeps them in a cycle until
the next garbage collection of old objects, which is rare in a worker.
"""

from __future__ import annotations

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


def drop_frames(error: E) -> E:
    """Remove the tracebacks of an error and of all errors behind it; return the error.

    Frames themselves are not cleared: a shared exception may name the frame of a running poll.
    """
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        each.__traceback__ = None
        waiting += [behind for behind in (each.__cause__, each.__context__) if behind is not None]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
    return error
