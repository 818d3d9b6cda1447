"""Log lines of a thread that is interrupted."""

from __future__ import annotations

import ctypes
import io
import logging
import threading
import time

import pytest

from poller.observability.stderr_handler import StderrHandler


class Stop(BaseException):
    """Raised in a thread, as the cancellation of a job is."""


def test_a_thread_that_is_interrupted_at_a_line_leaves_no_lock() -> None:
    """It waits for the lock of the handler; the exception comes right after that wait."""
    handler = StderrHandler(io.StringIO())
    assert handler.lock is not None
    record = logging.makeLogRecord({"msg": "hello"})
    ended: list[type] = []

    def work() -> None:
        try:
            handler.handle(record)
            time.sleep(0)
        except Stop:
            ended.append(Stop)

    thread = threading.Thread(target=work)
    with handler.lock:
        thread.start()
        time.sleep(0.2)
        identity, stop = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Stop)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, stop)
        time.sleep(0.1)
    thread.join(5)
    assert ended == [Stop]
    assert handler.lock.acquire(timeout=5)
    handler.lock.release()
    handler.handle(record)


def test_a_closed_stream_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    """A line that nobody can read any more leaves no traceback on another stream."""
    stream = io.StringIO()
    handler = StderrHandler(stream)
    stream.close()
    handler.handle(logging.LogRecord("poller", logging.INFO, "", 0, "a line", None, None))
    handler.flush()
    assert capsys.readouterr().err == ""
